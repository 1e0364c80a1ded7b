//===- hostile_text.h - Checks of text that means harm ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_DRIVER_HOSTILE_TEXT_H
#define TESSERA_TEST_UNIT_DRIVER_HOSTILE_TEXT_H

#include "driver/program.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tessera::hostile {

inline const char *const header =
    "module attributes {tile.version = 1 : i64} {\n";

inline std::string inModule(const std::string &text) {
  return header + text + "\n}\n";
}
inline std::string inKernel(const std::string &body) {
  return inModule("tile.kernel @k(%x: !tile.view<f32, 1, read>, %y: "
                  "!tile.view<f32, 1, write>, %s: f32, %c: i1) {\n" +
                  body + "\n}");
}
inline std::string repeated(const std::string &part, size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i)
    text += part;
  return text;
}

inline Error errorOf(const std::string &text, const std::string &kernel = "") {
  auto start = std::chrono::steady_clock::now();
  Result<Program> program = Program::fromText(text, "t.mlir", kernel);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  if (program) {
    ADD_FAILURE() << "accepted " << text.substr(0, 200);
    return {};
  }
  return program.error();
}

/// Expects a Diagnostic error at a known line.
inline Error diagnosed(const std::string &text) {
  Error error = errorOf(text);
  EXPECT_EQ(error.family, ErrorFamily::Diagnostic) << error.str();
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(error.where.file, "t.mlir") << error.str();
  EXPECT_GE(error.where.line, 1u) << error.str();
  return error;
}

} // namespace tessera::hostile

#endif // TESSERA_TEST_UNIT_DRIVER_HOSTILE_TEXT_H
