//===- kernels/oracle/activations.cpp - Elementwise operators and RoPE ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GELU is the tanh form, 0.5 x (1 + tanh z) with z = k (x + c x^3) and k =
// sqrt(2 / pi), which is the same real function as x sigmoid(2 z). Executions
// use either, so both are evaluated and the larger radius counts.
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"
#include "kernels/oracle/gelu.h"

namespace tessera::oracle {
namespace {

constexpr long double sqrtTwoOverPi = 0.797884560802865355879892119868763737L;
constexpr long double cubic = 0.044715L;

/// A value computed by chained bounded operations.
struct Chain {
  const Arithmetic &rules;
  Bounded value;

  Chain operator+(const Chain &other) const {
    return {rules, add(value, other.value, rules)};
  }
  Chain operator-(const Chain &other) const {
    return {rules, sub(value, other.value, rules)};
  }
  Chain operator*(const Chain &other) const {
    return {rules, mul(value, other.value, rules)};
  }
};

} // namespace

ValueAndSlope gelu(const Bounded &input, bool wantsSlope,
                   const Arithmetic &rules) {
  auto constant = [&](long double c) {
    return Chain{rules, bounded::constant(c, rules)};
  };
  auto exactly = [&](long double c) { return Chain{rules, Bounded::exact(c)}; };
  Chain x{rules, input}, one = exactly(1), half = exactly(0.5L);
  Chain k = constant(sqrtTwoOverPi), c = constant(cubic);
  Chain inner = x + c * (x * x * x);
  Chain z = k * inner;
  Chain t{rules, tanh(z.value, rules)};
  Chain s{rules, sigmoid((exactly(2) * z).value, rules)};
  Chain tanhValue = half * x * (one + t), sigmoidValue = x * s;
  ValueAndSlope result;
  result.value = either(sigmoidValue.value, tanhValue.value);
  if (!wantsSlope)
    return result;

  // Far out t and s are 1 or 0, and what multiplies their slope does not count.
  Bounded far = Bounded::exact(32);
  Chain near{rules, max(min(input, far), neg(far))};
  Chain slopeOfZ = k * (one + constant(3 * cubic) * (near * near));
  Chain tanhSlope = half * (one + t) + half * x * (one - t * t) * slopeOfZ;
  Chain sigmoidSlope = s + x * s * (one - s) * (exactly(2) * slopeOfZ);
  result.slope = either(sigmoidSlope.value, tanhSlope.value);
  return result;
}

Result<OracleResult> geluResidual(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  Floats residual = inputs.floatsOf("r", x.extents);
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  FloatOutput y(args, x.extents);
  perElement(args, elementCount(x.extents), [&](int64_t i) {
    y.place(i, add(gelu(x.bounded(i), /*wantsSlope=*/false, rules).value,
                   residual.bounded(i), rules));
  });
  return resultOf("y", y.take());
}

Result<OracleResult> geluPair(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, x.extents), dy(args, x.extents);
  perElement(args, elementCount(x.extents), [&](int64_t i) {
    ValueAndSlope result =
        gelu(x.bounded(i), /*wantsSlope=*/true, args.arithmetic);
    y.place(i, result.value);
    dy.place(i, result.slope);
  });
  return resultOf("y", y.take(), "dy", dy.take());
}

Result<OracleResult> sigmoidPair(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  FloatOutput y(args, x.extents), dy(args, x.extents);
  perElement(args, elementCount(x.extents), [&](int64_t i) {
    Bounded value = sigmoid(x.bounded(i), rules);
    // Or from e = exp(-|x|): 1 / (1 + e), times e where x is negative.
    Bounded e = exp(neg(abs(x.bounded(i))), rules);
    Bounded upper =
        div(Bounded::exact(1), add(Bounded::exact(1), e, rules), rules);
    Bounded lower = mul(e, upper, rules);
    y.place(i, either(value, x.at(i) >= 0 ? upper : lower));
    // The derivative is y (1 - y), y sigmoid(-x) or y - y y. The value is the
    // second's, which does not cancel; the radius covers all three.
    Bounded product = mul(value, sigmoid(neg(x.bounded(i)), rules), rules);
    Bounded factored = mul(value, sub(Bounded::exact(1), value, rules), rules);
    Bounded expanded = sub(value, mul(value, value, rules), rules);
    dy.place(i, either(either(product, factored),
                       either(expanded, mul(lower, upper, rules))));
  });
  return resultOf("y", y.take(), "dy", dy.take());
}

Result<OracleResult> swiglu(const OracleArgs &args) {
  Inputs inputs(args);
  Floats gate = inputs.floats("gate", 2);
  Floats up = inputs.floatsOf("up", gate.extents);
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  FloatOutput y(args, gate.extents);
  perElement(args, elementCount(gate.extents), [&](int64_t i) {
    Bounded silu = mul(gate.bounded(i), sigmoid(gate.bounded(i), rules), rules);
    y.place(i, mul(silu, up.bounded(i), rules));
  });
  return resultOf("y", y.take());
}

Result<OracleResult> affineLeaky(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  AffineLeaky leaky(inputs, args.arithmetic);
  FloatOutput y(args, x.extents);
  perElement(args, elementCount(x.extents),
             [&](int64_t i) { y.place(i, leaky(x.bounded(i))); });
  return resultOf("y", y.take());
}

Result<OracleResult> rope(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  int64_t rows = x.extents[0], cols = x.extents[1], half = cols / 2;
  if (cols % 2 != 0)
    inputs.fail("x", "has an odd number of columns, expected an even one");
  Floats cosine = inputs.floatsOf("cos", {rows, half});
  Floats sine = inputs.floatsOf("sin", {rows, half});
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  bool interleaved = inputs.flag("interleaved");
  FloatOutput y(args, x.extents);
  inParallel(args, rows, [&](int64_t row) {
    for (int64_t col = 0; col < cols; ++col) {
      int64_t pair = interleaved ? col / 2 : col % half;
      bool isFirst = interleaved ? col % 2 == 0 : col < half;
      int64_t first = interleaved ? 2 * pair : pair;
      int64_t second = interleaved ? first + 1 : pair + half;
      Bounded c = cosine.bounded(row, pair), s = sine.bounded(row, pair);
      Bounded a = x.bounded(row, first), b = x.bounded(row, second);
      y.place(row * cols + col,
              isFirst ? sub(mul(a, c, rules), mul(b, s, rules), rules)
                      : add(mul(b, c, rules), mul(a, s, rules), rules));
    }
  });
  return resultOf("y", y.take());
}

} // namespace tessera::oracle
