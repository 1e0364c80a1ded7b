//===- kernels/oracle/contractions.cpp - gemm and bmm ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"
#include "kernels/oracle/gelu.h"
#include "kernels/oracle/products.h"

namespace tessera::oracle {
namespace {

/// A matrix of a batch, read as it is or transposed.
struct Operand {
  const Floats &array;
  bool transposed;

  const double *begin(int64_t batch) const {
    return array.data.data() + batch * rows() * cols();
  }
  int64_t rowStride() const { return transposed ? 1 : extent(1); }
  int64_t colStride() const { return transposed ? extent(1) : 1; }
  int64_t rows() const { return extent(transposed ? 1 : 2); }
  int64_t cols() const { return extent(transposed ? 2 : 1); }

private:
  int64_t extent(size_t fromEnd) const {
    return array.extents[array.extents.size() - fromEnd];
  }
};

/// Calls visit(row, col, sum) with the sums of one batch, in any order.
template <typename Visit>
void forEachSum(const Operand &a, const Operand &b, int64_t batch,
                const OracleArgs &args, const Visit &visit) {
  // Rows that share a panel of b while it is near.
  constexpr int64_t rowsPerTask = 64;
  int64_t terms = a.cols();
  Factors factors(b.begin(batch), b.rows(), b.cols(), b.rowStride(),
                  b.colStride());
  std::vector<Row> rows(static_cast<size_t>(a.rows()));
  inParallel(args, a.rows(), [&](int64_t row) {
    rows[static_cast<size_t>(row)].setExact(
        a.begin(batch) + row * a.rowStride(), a.colStride(), terms);
  });
  Products products(args.arithmetic, args.products);
  int64_t blocks = (a.rows() + rowsPerTask - 1) / rowsPerTask;
  inParallel(args, factors.panels() * blocks, [&](int64_t task) {
    int64_t panel = task / blocks, first = task % blocks * rowsPerTask;
    int64_t last = std::min(first + rowsPerTask, a.rows());
    for (int64_t row = first; row < last; ++row)
      products.sums(rows[static_cast<size_t>(row)], factors, panel,
                    [&](int64_t col, const bounded::Summation &sum) {
                      visit(row, col, sum);
                    });
  });
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
  forEachSum(a, b, /*batch=*/0, args,
             [&](int64_t row, int64_t col, const bounded::Summation &sum) {
               Bounded product = sum.finishContraction();
               int64_t index = row * b.cols() + col;
               if (!accumulates) {
                 c.place(index, product);
                 return;
               }
               // An accumulator may also start from beta c0, which is one more
               // term in the sum.
               Bounded start = mul(beta, c0.bounded(row, col), rules);
               bounded::Summation whole = sum;
               whole.add(start);
               c.place(index, either(add(product, start, rules),
                                     whole.finishContraction()));
             });
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
  forEachSum(a, b, /*batch=*/0, args,
             [&](int64_t row, int64_t col, const bounded::Summation &sum) {
               c.place(row * b.cols() + col, leaky(sum.finishContraction()));
             });
  return resultOf("c", c.take());
}

/// By the number of the setting `activation`: none, relu, gelu, silu.
static Bounded activated(const Bounded &z, int64_t activation,
                         const Arithmetic &rules) {
  switch (activation) {
  case 1:
    return max(z, Bounded::exact(0));
  case 2:
    return gelu(z, /*wantsSlope=*/false, rules).value;
  case 3:
    return mul(z, sigmoid(z, rules), rules);
  default:
    return z;
  }
}

Result<OracleResult> gemmEpilogue(const OracleArgs &args) {
  Inputs inputs(args);
  Floats aData = inputs.floats("a", 2), bData = inputs.floats("b", 2);
  Operand a{aData, false}, b{bData, false};
  if (!inputs.error() && a.cols() != b.rows())
    inputs.fail("b", "has contraction extent " + std::to_string(b.rows()) +
                         ", expected " + std::to_string(a.cols()) +
                         " as 'a' has");
  bool hasBias = inputs.has("bias"), hasResidual = inputs.has("residual");
  Floats bias, residual;
  if (hasBias)
    bias = inputs.floatsOf("bias", {b.cols()});
  if (hasResidual)
    residual = inputs.floatsOf("residual", {a.rows(), b.cols()});
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  Bounded scale = bounded::parameter(inputs.scalar("scale", 1), rules);
  auto activation = static_cast<int64_t>(inputs.scalar("activation", 0));
  FloatOutput c(args, {a.rows(), b.cols()});
  forEachSum(a, b, /*batch=*/0, args,
             [&](int64_t row, int64_t col, const bounded::Summation &sum) {
               Bounded product = sum.finishContraction();
               Bounded z = hasBias
                               ? fma(product, scale, bias.bounded(col), rules)
                               : mul(product, scale, rules);
               Bounded y = activated(z, activation, rules);
               if (hasResidual)
                 y = add(y, residual.bounded(row, col), rules);
               c.place(row * b.cols() + col, y);
             });
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
    forEachSum(a, b, batch, args,
               [&](int64_t row, int64_t col, const bounded::Summation &sum) {
                 c.place((batch * a.rows() + row) * b.cols() + col,
                         sum.finishContraction());
               });
  return resultOf("c", c.take());
}

} // namespace tessera::oracle
