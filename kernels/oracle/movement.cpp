//===- kernels/oracle/movement.cpp - copy, add, transpose, embedding ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

namespace tessera::oracle {

Result<OracleResult> copy(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, x.extents);
  perElement(args, elementCount(x.extents),
             [&](int64_t i) { y.place(i, x.bounded(i)); });
  return resultOf("y", y.take());
}

Result<OracleResult> addArrays(const OracleArgs &args) {
  Inputs inputs(args);
  Floats a = inputs.floats("a", 2);
  Floats b = inputs.floatsOf("b", a.extents);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, a.extents);
  perElement(args, elementCount(a.extents), [&](int64_t i) {
    y.place(i, add(a.bounded(i), b.bounded(i), args.arithmetic));
  });
  return resultOf("y", y.take());
}

Result<OracleResult> transpose(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  int64_t rows = x.extents[0], cols = x.extents[1];
  FloatOutput y(args, {cols, rows});
  inParallel(args, cols, [&](int64_t col) {
    for (int64_t row = 0; row < rows; ++row)
      y.place(col * rows + row, x.bounded(row, col));
  });
  return resultOf("y", y.take());
}

Result<OracleResult> embedding(const OracleArgs &args) {
  Inputs inputs(args);
  Integers ids = inputs.integers("ids", 1);
  Floats table = inputs.floats("table", 2);
  if (inputs.error())
    return *inputs.error();
  int64_t tokens = ids.extents[0];
  int64_t vocabulary = table.extents[0], cols = table.extents[1];
  FloatOutput y(args, {tokens, cols});
  inParallel(args, tokens, [&](int64_t token) {
    int64_t id = ids.at(token);
    bool inRange = id >= 0 && id < vocabulary;
    // Unchecked, an id out of range reads the gather's fill.
    for (int64_t col = 0; col < cols; ++col)
      y.place(token * cols + col,
              inRange ? table.bounded(id, col) : Bounded::exact(0));
  });
  return resultOf("y", y.take());
}

} // namespace tessera::oracle
