//===- math/vector_math_test.cpp - The vector math library ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Special values, a coarse sample of every function, tier and ISA against its
// bounds, the stated bounds' hash, and that the library is usable through a
// builder with one value type, as an emitting builder has. The fine sample is
// `tessera-sweep --sample 64`.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/math_accuracy.h"
#include "sweep/accuracy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace tessera;
using namespace tessera::sweep;
using vmath::Accuracy;
using vmath::Function;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct SpecialCase {
  Function function;
  double x, y;
};

/// Values that must come out to the last bit in every tier.
const SpecialCase specialCases[] = {
    {Function::Exp, 0.0, 1},
    {Function::Exp, -0.0, 1},
    {Function::Exp, inf, inf},
    {Function::Exp, -inf, 0},
    {Function::Exp, 1e30, inf},
    {Function::Exp, -1e30, 0},
    {Function::Exp2, 3, 8},
    {Function::Exp2, -inf, 0},
    {Function::Exp2, inf, inf},
    {Function::Exp2, -126, 0x1p-126},
    {Function::Expm1, -0.0, -0.0},
    {Function::Expm1, 0.0, 0.0},
    {Function::Expm1, -inf, -1},
    {Function::Expm1, inf, inf},
    {Function::Sigmoid, 0.0, 0.5},
    {Function::Sigmoid, inf, 1},
    {Function::Sigmoid, -inf, 0},
    {Function::Silu, -0.0, -0.0},
    {Function::Silu, inf, inf},
    {Function::Silu, -inf, nan},
    {Function::GeluTanh, -0.0, -0.0},
    {Function::GeluTanh, inf, inf},
    {Function::GeluTanh, -inf, nan},
    {Function::GeluTanh, 1e30, 1e30},
    {Function::GeluTanh, -1e30, -0.0},
    {Function::Tanh, -0.0, -0.0},
    {Function::Tanh, inf, 1},
    {Function::Tanh, -inf, -1},
    {Function::Erf, -0.0, -0.0},
    {Function::Erf, inf, 1},
    {Function::Erf, -inf, -1},
    {Function::Log, 1, 0},
    {Function::Log, 0.0, -inf},
    {Function::Log, -0.0, -inf},
    {Function::Log, inf, inf},
    {Function::Log, -1, nan},
    {Function::Log, -inf, nan},
    {Function::Log2, 8, 3},
    {Function::Log2, 0x1p-126, -126},
    {Function::Log2, 0.0, -inf},
    {Function::Log1p, -0.0, -0.0},
    {Function::Log1p, -1, -inf},
    {Function::Log1p, -2, nan},
    {Function::Log1p, inf, inf},
    {Function::Rsqrt, 4, 0.5},
    {Function::Rsqrt, 0.0, inf},
    {Function::Rsqrt, -0.0, -inf},
    {Function::Rsqrt, inf, 0},
    {Function::Rsqrt, -1, nan},
    {Function::Sin, -0.0, -0.0},
    {Function::Sin, inf, nan},
    {Function::Cos, -0.0, 1},
    {Function::Cos, -inf, nan},
};

template <class E> const Kernel<E> &kernelOf(Isa, Function, unsigned);
template <>
const Kernel<float> &kernelOf(Isa isa, Function function, unsigned tier) {
  return kernels(isa).f32[unsigned(function)][tier];
}
template <>
const Kernel<double> &kernelOf(Isa isa, Function function, unsigned tier) {
  return kernels(isa).f64[unsigned(function)][tier];
}

template <class E> void checkSpecials() {
  for (unsigned isa = 0; isa < isaCount; ++isa) {
    if (!hostSupports(Isa(isa)))
      continue;
    for (unsigned tier = 0; tier < tierCount; ++tier) {
      for (const SpecialCase &c : specialCases) {
        // Neighbours of every kind must not disturb an element.
        std::vector<E> in(kernelStep), out(kernelStep);
        for (unsigned i = 0; i < kernelStep; ++i)
          in[i] = E(i % 4 == 0   ? nan
                    : i % 4 == 1 ? c.x
                    : i % 4 == 2 ? 1e35
                                 : -inf);
        kernelOf<E>(Isa(isa), c.function, tier)
            .vector(in.data(), out.data(), kernelStep);
        E y = out[1];
        std::string what = std::string(vmath::name(c.function)) + "(" +
                           std::to_string(c.x) + ") " + name(Isa(isa)) +
                           (tier ? " default" : " strict");
        if (std::isnan(c.y)) {
          EXPECT_TRUE(std::isnan(y)) << what << " " << y;
        } else {
          EXPECT_EQ(y, E(c.y)) << what;
          EXPECT_EQ(std::signbit(y), std::signbit(c.y)) << what;
        }
        EXPECT_TRUE(std::isnan(out[0])) << what << " beside NaN";
      }
    }
  }
}

TEST(VectorMath, SpecialValuesF32) { checkSpecials<float>(); }
TEST(VectorMath, SpecialValuesF64) { checkSpecials<double>(); }

TEST(VectorMath, SubnormalResultsAreNotFlushed) {
  for (unsigned isa = 0; isa < isaCount; ++isa) {
    if (!hostSupports(Isa(isa)))
      continue;
    for (unsigned tier = 0; tier < tierCount; ++tier)
      for (Function function : {Function::Exp, Function::Sigmoid}) {
        std::vector<float> in(kernelStep, -100.0f), out(kernelStep);
        kernelOf<float>(Isa(isa), function, tier)
            .vector(in.data(), out.data(), kernelStep);
        // e^-100 is 26.55 steps of 2^-149.
        EXPECT_NEAR(out[0], 0x1.a8cp-145f, 0x1p-149f);
      }
  }
}

/// From below the least subnormal number to beyond the largest power of two:
/// every way to put 2^n together.
template <class E> void checkPowersOfTwo() {
  using Limits = std::numeric_limits<E>;
  const int least = Limits::min_exponent - Limits::digits;
  for (unsigned isa = 0; isa < isaCount; ++isa) {
    if (!hostSupports(Isa(isa)))
      continue;
    for (unsigned tier = 0; tier < tierCount; ++tier)
      for (int n = least - 3; n <= Limits::max_exponent + 3; ++n) {
        std::vector<E> in(kernelStep, E(n)), out(kernelStep);
        kernelOf<E>(Isa(isa), Function::Exp2, tier)
            .vector(in.data(), out.data(), kernelStep);
        EXPECT_EQ(out[0], std::ldexp(E(1), n)) << name(Isa(isa)) << " 2^" << n;
      }
  }
}

TEST(VectorMath, PowersOfTwoAreExactF32) { checkPowersOfTwo<float>(); }
TEST(VectorMath, PowersOfTwoAreExactF64) { checkPowersOfTwo<double>(); }

/// Without scalef neither term of the quotient is subnormal where its value is,
/// so that values of half the least number and more come out as that.
TEST(VectorMath, SmallestSigmoidIsRoundedOnce) {
  for (Isa isa : {Isa::Avx2, Isa::Baseline}) {
    if (!hostSupports(isa))
      continue;
    for (unsigned tier = 0; tier < tierCount; ++tier) {
      // 0.59 of 2^-149, and 0.44.
      std::vector<float> in(kernelStep, -103.8f), out(kernelStep);
      in[1] = -104.1f;
      kernelOf<float>(isa, Function::Sigmoid, tier)
          .vector(in.data(), out.data(), kernelStep);
      EXPECT_EQ(out[0], 0x1p-149f) << name(isa) << " " << tier;
      EXPECT_EQ(out[1], 0.0f) << name(isa) << " " << tier;
      // 0.59 of 2^-1074, and 0.44.
      std::vector<double> in64(kernelStep, -744.96), out64(kernelStep);
      in64[1] = -745.26;
      kernelOf<double>(isa, Function::Sigmoid, tier)
          .vector(in64.data(), out64.data(), kernelStep);
      EXPECT_EQ(out64[0], 0x1p-1074) << name(isa) << " " << tier;
      EXPECT_EQ(out64[1], 0.0) << name(isa) << " " << tier;
    }
  }
}

/// Every function on one argument in 2^14 (f32) and 50,000 arguments (f64).
class VectorMathBounds : public testing::TestWithParam<unsigned> {};

void checkMeasured(Function function, bool isF64, const Results &results) {
  for (unsigned isa = 0; isa < isaCount; ++isa) {
    if (!hostSupports(Isa(isa)))
      continue;
    for (unsigned tier = 0; tier < tierCount; ++tier) {
      const Measured &m = results.of[isa][tier];
      SCOPED_TRACE(std::string(vmath::name(function)) +
                   (isF64 ? " f64 " : " f32 ") + name(Isa(isa)) +
                   (tier ? " default" : " strict"));
      EXPECT_LT(m.ulp.value, wrongResult) << "at " << m.ulp.at;
      EXPECT_EQ(m.laneDifferences, 0u) << "at " << m.laneDifferenceAt;
      Bound bound = tierBound(function, Accuracy(tier));
      vmath::StatedBound stated = vmath::statedBound(
          function, isF64, Accuracy(tier), vmath::MathIsa(isa));
      const Extreme &against = stated.perX != 0 ? m.beyondX : m.ulp;
      EXPECT_LE(against.value, stated.constant) << "at " << against.at;
      if (bound.constant != 0) {
        EXPECT_LE(stated.constant, bound.constant);
        EXPECT_LE(stated.perX, bound.perX);
      }
      if (bound.absolute != 0) {
        EXPECT_LE(m.absolute.value, stated.absolute);
        EXPECT_LE(stated.absolute, bound.absolute);
      }
    }
  }
}

TEST_P(VectorMathBounds, Hold) {
  Function function = Function(GetParam());
  Results f32, f64;
  constexpr unsigned sample = 1 << 14;
  sweepF32(function, sample, 0, f32Inputs(sample), f32);
  checkMeasured(function, false, f32);
  sweepF64(function, 0, 50'000, f64);
  checkMeasured(function, true, f64);
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMathBounds,
                         testing::Range(0u, vmath::functionCount),
                         [](const auto &info) {
                           return vmath::name(Function(info.param));
                         });

TEST(VectorMath, StatedBoundsBelongToTheseSources) {
  EXPECT_EQ(sourceHash(TESSERA_SOURCE_DIR), vmath::statedSourceHash())
      << "run the full sweep (./dev sweep)";
}

/// A builder whose three types are one, like an IR value; it computes on one
/// element and counts the operations.
template <class T, bool withFMA> struct CountingBuilder {
  static constexpr bool isF32 = T::width == 32;
  using Float = std::conditional_t<isF32, float, double>;
  using Bits = std::conditional_t<isF32, uint32_t, uint64_t>;
  struct Value {
    Bits bits = 0;
  };
  using Int = Value;
  using Mask = Value;

  unsigned operations = 0;

  Float f(Value v) { return std::bit_cast<Float>(v.bits); }
  Value of(Float v) {
    ++operations;
    return {std::bit_cast<Bits>(v)};
  }
  Value ofBits(Bits v) {
    ++operations;
    return {v};
  }
  Value constF(double c) {
    EXPECT_TRUE(Float(c) == c || c != c) << "constant not exact: " << c;
    return {std::bit_cast<Bits>(Float(c))};
  }
  Value constI(int64_t c) { return {Bits(c)}; }
  Value add(Value a, Value c) { return of(f(a) + f(c)); }
  Value sub(Value a, Value c) { return of(f(a) - f(c)); }
  Value mul(Value a, Value c) { return of(f(a) * f(c)); }
  Value div(Value a, Value c) { return of(f(a) / f(c)); }
  bool hasFMA() { return withFMA; }
  Value fma(Value a, Value c, Value d) {
    return of(withFMA ? std::fma(f(a), f(c), f(d)) : f(a) * f(c) + f(d));
  }
  Value neg(Value a) { return of(-f(a)); }
  Value abs(Value a) { return of(std::fabs(f(a))); }
  Value sqrt(Value a) { return of(std::sqrt(f(a))); }
  Value min(Value a, Value c) { return of(f(a) < f(c) ? f(a) : f(c)); }
  Value max(Value a, Value c) { return of(f(a) > f(c) ? f(a) : f(c)); }
  Value lt(Value a, Value c) { return ofBits(f(a) < f(c)); }
  Value eq(Value a, Value c) { return ofBits(f(a) == f(c)); }
  Value select(Value m, Value a, Value c) {
    return ofBits((m.bits ? a : c).bits);
  }
  Value toBits(Value a) { return a; }
  Value fromBits(Value a) { return a; }
  Value iadd(Value a, Value c) { return ofBits(a.bits + c.bits); }
  Value isub(Value a, Value c) { return ofBits(a.bits - c.bits); }
  Value imul(Value a, Value c) { return ofBits(a.bits * c.bits); }
  Value iand(Value a, Value c) { return ofBits(a.bits & c.bits); }
  Value ior(Value a, Value c) { return ofBits(a.bits | c.bits); }
  Value ixor(Value a, Value c) { return ofBits(a.bits ^ c.bits); }
  Value shl(Value a, unsigned n) { return ofBits(a.bits << n); }
  Value lshr(Value a, unsigned n) { return ofBits(a.bits >> n); }
  Value shlv(Value a, Value c) {
    EXPECT_LT(c.bits, T::width);
    return ofBits(a.bits << c.bits);
  }
  Value ieq(Value a, Value c) { return ofBits(a.bits == c.bits); }
  Value iselect(Value m, Value a, Value c) { return select(m, a, c); }
  bool hasScalef() { return false; }
  Value scalef(Value a, Value) {
    ADD_FAILURE() << "scalef without hasScalef";
    return a;
  }
  /// Without control flow: always the full form.
  template <class Then> Value ifAny(Value, Value, Then then) { return then(); }
};

template <class T, bool withFMA> void checkCounting(Isa isa) {
  if (!hostSupports(isa))
    return;
  using Builder = CountingBuilder<T, withFMA>;
  using Float = typename Builder::Float;
  for (unsigned i = 0; i < vmath::functionCount; ++i)
    for (unsigned tier = 0; tier < tierCount; ++tier)
      for (double x : {0.3, -2.5, 1e-30, 40.0, 1e10, inf, nan}) {
        Builder builder;
        auto y = vmath::evaluate<T>(builder, Function(i), builder.of(Float(x)),
                                    Accuracy(tier));
        EXPECT_LT(builder.operations, 600u) << vmath::name(Function(i));
        Float in = Float(x), expected;
        kernelOf<Float>(isa, Function(i), tier).scalar(&in, &expected, 1);
        Float got = builder.f(y);
        EXPECT_TRUE(std::bit_cast<typename Builder::Bits>(expected) == y.bits ||
                    (std::isnan(expected) && std::isnan(got)))
            << vmath::name(Function(i)) << " " << x << ": " << got << " and "
            << expected;
      }
}

TEST(VectorMath, OneTypedBuilderGivesTheSameBits) {
  checkCounting<vmath::F32, true>(Isa::Avx2);
  checkCounting<vmath::F64, true>(Isa::Avx2);
  checkCounting<vmath::F32, false>(Isa::Baseline);
  checkCounting<vmath::F64, false>(Isa::Baseline);
}

/// What loops over activations spend most of their time on, where 2^n takes
/// several operations: their number bounds these loops.
TEST(VectorMath, OperationsWithoutScalef) {
  const struct {
    Function function;
    unsigned operations;
  } most[] = {{Function::Exp, 17},
              {Function::Exp2, 16},
              {Function::Sigmoid, 14},
              {Function::Tanh, 19},
              {Function::Erf, 33}};
  for (const auto &[function, operations] : most) {
    CountingBuilder<vmath::F32, true> builder;
    vmath::evaluate<vmath::F32>(builder, function, {}, Accuracy::Default);
    EXPECT_LE(builder.operations, operations) << vmath::name(function);
  }
}

} // namespace
