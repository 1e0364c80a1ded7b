//===- dsl/trace_text.h - Kernels as text, for tests ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Traces a kernel and hands out its text, of which tests look for parts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_DSL_TRACE_TEXT_H
#define TESSERA_TEST_UNIT_DSL_TRACE_TEXT_H

#include "tessera/dsl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {

/// The kernel's text; a failure of the test when it does not trace.
inline std::string textOf(const Kernel &kernel,
                          const TraceOptions &options = {}) {
  Result<std::string> text = kernel.text(options);
  if (text)
    return *text;
  for (const Error &error : kernel.diagnostics(options))
    ADD_FAILURE() << error.str();
  return "";
}

/// How often `part` occurs in `text`.
inline int countOf(const std::string &text, const std::string &part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

} // namespace tessera

#endif // TESSERA_TEST_UNIT_DSL_TRACE_TEXT_H
