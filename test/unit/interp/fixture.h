//===- fixture.h - Running Tile IR texts in tests ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses a kernel from text and runs it in the reference interpreter on arrays
// that are std::vectors.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_INTERP_FIXTURE_H
#define TESSERA_TEST_UNIT_INTERP_FIXTURE_H

#include "dialect/tile_dialect.h"
#include "interp/interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tessera::interp::test {

inline constexpr float NaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float Inf = std::numeric_limits<float>::infinity();

template <typename T> constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return DType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::F64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::I8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::U8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::I16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::U16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::I32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::U32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::I64;
  else
    return DType::U64;
}

/// The spelling of a view's element type in the text form.
template <typename T> std::string spelling() {
  switch (dtypeOf<T>()) {
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  default:
    return (std::is_unsigned_v<T> ? "ui" : "i") + std::to_string(8 * sizeof(T));
  }
}

/// A dense view of the elements; the shape is one axis unless given.
template <typename T>
TensorRef view(std::vector<T> &elements, std::vector<int64_t> extents = {}) {
  if (extents.empty())
    extents = {static_cast<int64_t>(elements.size())};
  TensorRef tensor;
  // A view of no elements still has an address.
  static T nothing;
  tensor.data = elements.empty() ? &nothing : elements.data();
  tensor.dtype = dtypeOf<T>();
  tensor.extents = extents;
  tensor.strides.assign(extents.size(), 1);
  for (size_t axis = extents.size(); axis-- > 1;)
    tensor.strides[axis - 1] = tensor.strides[axis] * extents[axis];
  return tensor;
}

/// A dense view of elements stored as a type that C++ lacks.
template <typename T>
TensorRef view(std::vector<T> &elements, DType dtype,
               std::vector<int64_t> extents = {}) {
  TensorRef tensor = view(elements, std::move(extents));
  tensor.dtype = dtype;
  return tensor;
}

/// A program of one kernel.
class Program {
public:
  /// `signature` is the parameter list, `body` the ops.
  Program(const std::string &signature, const std::string &body,
          const std::string &attributes = "") {
    tile::loadTileDialects(context);
    text = "module attributes {tile.version = 1 : i64} {\ntile.kernel @k(" +
           signature + ") " + attributes + " {\n" + body + "\n}\n}\n";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "k.mlir");
    EXPECT_TRUE(module) << text;
  }

  tile::KernelOp kernel() { return *module->getOps<tile::KernelOp>().begin(); }

  Result<void> run(std::vector<Argument> arguments,
                   const InterpretOptions &options = {}) {
    if (!module)
      return Error{ErrorFamily::Internal, "test.parse", "did not parse", {}};
    return interpret(kernel(), arguments, options, &report);
  }

  /// Runs and expects success.
  void check(std::vector<Argument> arguments,
             const InterpretOptions &options = {}) {
    Result<void> result = run(std::move(arguments), options);
    EXPECT_TRUE(result.ok()) << result.error().str() << "\n" << text;
  }

  InterpretReport report;
  std::string text;

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Element by element: NaN equals NaN, and zeros agree in sign.
template <typename T>
void expectSame(const std::vector<T> &actual, const std::vector<T> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << i << ": " << actual[i];
        continue;
      }
      EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << i;
    }
    EXPECT_EQ(actual[i], expected[i]) << "element " << i;
  }
}

/// Applies an elementwise op to vectors along one dimension. `op` uses %a, and
/// %b for a binary one, of type TILE, and defines %r of type RESULT.
template <typename R, typename T>
std::vector<R> elementwise(std::string op, std::vector<T> a,
                           std::vector<T> b = {}) {
  if (b.empty())
    b = a;
  std::string in = spelling<T>(), out = spelling<R>();
  auto compute = [](std::string name) {
    return name[0] == 'u' ? name.substr(1) : name;
  };
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = op.find(from)) != std::string::npos;)
      op.replace(at, from.size(), to);
  };
  auto tile = [&](const std::string &name) {
    return "tensor<?x" + compute(name) + ", [\"n\"]>";
  };
  replace("TILE", tile(in));
  replace("RESULT", tile(out));
  auto type = [](const std::string &name, const char *access) {
    return "!tile.view<" + name + ", 1, " + access + ">";
  };
  Program program(
      "%x: " + type(in, "read") + ", %y: " + type(in, "read") +
          ", %z: " + type(out, "write"),
      "%e = tile.extent %x, 0 : " + type(in, "read") +
          "\ntile.dim \"n\" = %e\n" +
          "%a = tile.load %x[\"n\"] : " + type(in, "read") + " -> " + tile(in) +
          "\n%b = tile.load %y[\"n\"] : " + type(in, "read") + " -> " +
          tile(in) + "\n" + op + "\ntile.store %r, %z[\"n\"] : " + tile(out) +
          ", " + type(out, "write"));
  std::vector<R> result(a.size());
  program.check({view(a), view(b), view(result)});
  return result;
}

} // namespace tessera::interp::test

#endif // TESSERA_TEST_UNIT_INTERP_FIXTURE_H
