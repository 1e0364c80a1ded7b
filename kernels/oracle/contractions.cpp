//===- kernels/oracle/contractions.cpp - gemm and bmm ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

namespace tessera::oracle {
namespace {

/// A matrix of a batch, read as it is or transposed.
struct Operand {
  const Floats &array;
  bool transposed;

  long double at(int64_t batch, int64_t i, int64_t j) const {
    size_t rank = array.extents.size();
    int64_t rows = array.extents[rank - 2], cols = array.extents[rank - 1];
    int64_t row = transposed ? j : i, col = transposed ? i : j;
    return array.at((batch * rows + row) * cols + col);
  }
  int64_t rows() const { return extent(transposed ? 1 : 2); }
  int64_t cols() const { return extent(transposed ? 2 : 1); }

private:
  int64_t extent(size_t fromEnd) const {
    return array.extents[array.extents.size() - fromEnd];
  }
};

Bounded dot(const Operand &a, const Operand &b, int64_t batch, int64_t row,
            int64_t col, const Arithmetic &rules) {
  bounded::Summation sum(rules);
  for (int64_t k = 0; k < a.cols(); ++k)
    sum.addProduct(a.at(batch, row, k), b.at(batch, k, col));
  return sum.finishContraction();
}

} // namespace

Result<OracleResult> gemm(const OracleArgs &args) {
  Inputs inputs(args);
  Floats aData = inputs.floats("a", 2), bData = inputs.floats("b", 2);
  Operand a{aData, inputs.flag("trans_a")}, b{bData, inputs.flag("trans_b")};
  if (!inputs.error() && a.cols() != b.rows())
    inputs.fail("b", "has contraction extent " + std::to_string(b.rows()) +
                         ", expected " + std::to_string(a.cols()) +
                         " as 'a' has");
  bool accumulates = inputs.has("c0");
  Floats c0;
  if (accumulates)
    c0 = inputs.floatsOf("c0", {a.rows(), b.cols()});
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  Bounded beta = bounded::parameter(inputs.scalar("beta", 1), rules);
  FloatOutput c(args, {a.rows(), b.cols()});
  for (int64_t row = 0; row < a.rows(); ++row)
    for (int64_t col = 0; col < b.cols(); ++col) {
      Bounded product = dot(a, b, /*batch=*/0, row, col, rules);
      if (!accumulates) {
        c.push(product);
        continue;
      }
      // An accumulator may also start from beta c0, which is one more term in
      // the sum.
      Bounded start = mul(beta, c0.bounded(row, col), rules);
      bounded::Summation sum(rules);
      for (int64_t k = 0; k < a.cols(); ++k)
        sum.addProduct(a.at(0, row, k), b.at(0, k, col));
      sum.add(start);
      c.push(either(add(product, start, rules), sum.finishContraction()));
    }
  return resultOf("c", c.take());
}

Result<OracleResult> gemmAffineLeaky(const OracleArgs &args) {
  Inputs inputs(args);
  Floats aData = inputs.floats("a", 2), bData = inputs.floats("b", 2);
  Operand a{aData, false}, b{bData, false};
  if (!inputs.error() && a.cols() != b.rows())
    inputs.fail("b", "has contraction extent " + std::to_string(b.rows()) +
                         ", expected " + std::to_string(a.cols()) +
                         " as 'a' has");
  if (inputs.error())
    return *inputs.error();
  AffineLeaky leaky(inputs, args.arithmetic);
  FloatOutput c(args, {a.rows(), b.cols()});
  for (int64_t row = 0; row < a.rows(); ++row)
    for (int64_t col = 0; col < b.cols(); ++col)
      c.push(leaky(dot(a, b, /*batch=*/0, row, col, args.arithmetic)));
  return resultOf("c", c.take());
}

Result<OracleResult> bmm(const OracleArgs &args) {
  Inputs inputs(args);
  Floats aData = inputs.floats("a", 3), bData = inputs.floats("b", 3);
  Operand a{aData, inputs.flag("trans_a")}, b{bData, inputs.flag("trans_b")};
  if (!inputs.error() && a.cols() != b.rows())
    inputs.fail("b", "has contraction extent " + std::to_string(b.rows()) +
                         ", expected " + std::to_string(a.cols()) +
                         " as 'a' has");
  if (!inputs.error() && aData.extents[0] != bData.extents[0])
    inputs.fail("b", "has batch extent " + std::to_string(bData.extents[0]) +
                         ", expected " + std::to_string(aData.extents[0]) +
                         " as 'a' has");
  if (inputs.error())
    return *inputs.error();
  FloatOutput c(args, {aData.extents[0], a.rows(), b.cols()});
  for (int64_t batch = 0; batch < aData.extents[0]; ++batch)
    for (int64_t row = 0; row < a.rows(); ++row)
      for (int64_t col = 0; col < b.cols(); ++col)
        c.push(dot(a, b, batch, row, col, args.arithmetic));
  return resultOf("c", c.take());
}

} // namespace tessera::oracle
