//===- sweep/accuracy.cpp - Measured accuracy of the vector math ---*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See accuracy.h.
//
//===----------------------------------------------------------------------===//

#include "sweep/accuracy.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

namespace tessera::sweep {

using vmath::Accuracy;
using vmath::Function;

void Measured::merge(const Measured &other) {
  ulp.raise(other.ulp.value, other.ulp.at);
  beyondX.raise(other.beyondX.value, other.beyondX.at);
  absolute.raise(other.absolute.value, other.absolute.at);
  points += other.points;
  if (other.laneDifferences && !laneDifferences)
    laneDifferenceAt = other.laneDifferenceAt;
  laneDifferences += other.laneDifferences;
}

void Results::merge(const Results &other) {
  for (unsigned isa = 0; isa < isaCount; ++isa)
    for (unsigned tier = 0; tier < tierCount; ++tier)
      of[isa][tier].merge(other.of[isa][tier]);
}

namespace {

/// The reference formula in `Real`, double or long double.
template <class Real> Real reference(Function function, Real x) {
  Real one = 1;
  switch (function) {
  case Function::Exp:
    return std::exp(x);
  case Function::Exp2:
    return std::exp2(x);
  case Function::Expm1:
    return std::expm1(x);
  case Function::Sigmoid:
    return one / (one + std::exp(-x));
  case Function::Silu:
    return x * (one / (one + std::exp(-x)));
  case Function::GeluTanh: {
    // 2 sqrt(2/pi) and 0.044715 in Real.
    Real scale = 1.595769121605730711759542081L;
    Real inner = scale * (x + Real(0.044715L) * x * x * x);
    return x * (one / (one + std::exp(-inner)));
  }
  case Function::Tanh:
    return std::tanh(x);
  case Function::Erf:
    return std::erf(x);
  case Function::Log:
    return std::log(x);
  case Function::Log2:
    return std::log2(x);
  case Function::Log1p:
    return std::log1p(x);
  case Function::Rsqrt:
    return one / std::sqrt(x);
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  }
  return x;
}

/// Error of y in ULP of E, with infinity standing for the value after the
/// largest finite one; also the distance.
template <class E, class Real> double ulpError(E y, Real r, double &distance) {
  constexpr int digits = std::numeric_limits<E>::digits;
  constexpr int minExponent = std::numeric_limits<E>::min_exponent - 1;
  constexpr int maxExponent = std::numeric_limits<E>::max_exponent;
  distance = 0;
  if (std::isnan(r) || std::isnan(y))
    return std::isnan(r) == std::isnan(y) ? 0 : wrongResult;
  if (y == 0 && std::signbit(y) != std::signbit(r))
    return wrongResult;
  Real limit = std::ldexp(Real(1), maxExponent);
  Real value = std::isinf(y) ? std::copysign(limit, Real(y)) : Real(y);
  if (std::fabs(r) > limit)
    r = std::copysign(limit, r);
  int exponent = r == 0 ? minExponent : std::ilogb(r);
  exponent = std::min(std::max(exponent, minExponent), maxExponent - 1);
  Real gap = std::fabs(value - r);
  distance = double(gap);
  return double(std::ldexp(gap, digits - 1 - exponent));
}

double beyondFrom(Function function) {
  return function == Function::GeluTanh
             ? geluUlpFrom
             : -std::numeric_limits<double>::infinity();
}

/// Records one result; the exact counterpart of BlockMeasure.
template <class E, class Real>
void record(Function function, E x, E y, Real r, Measured &m) {
  double distance;
  double e = ulpError(y, r, distance);
  m.ulp.raise(e, double(x));
  if (!(x < beyondFrom(function)))
    m.beyondX.raise(e - std::fabs(double(x)), double(x));
  if (x <= geluAbsoluteTo)
    m.absolute.raise(distance, double(x));
}

template <class E>
void compareLanes(const Kernel<E> &kernel, const std::vector<E> &in,
                  const std::vector<E> &out, size_t count, Measured &m) {
  std::vector<E> scalar(count);
  kernel.scalar(in.data(), scalar.data(), count);
  for (size_t i = 0; i < count; ++i) {
    bool same = std::memcmp(&scalar[i], &out[i], sizeof(E)) == 0 ||
                (std::isnan(scalar[i]) && std::isnan(out[i]));
    if (!same && m.laneDifferences++ == 0)
      m.laneDifferenceAt = double(in[i]);
  }
}

uint64_t mix(uint64_t i) { // splitmix64
  i += 0x9e3779b97f4a7c15;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
  i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
  return i ^ (i >> 31);
}

} // namespace

uint64_t f32Inputs(unsigned sample) { return (uint64_t(1) << 32) / sample; }

void sweepF32(Function function, unsigned sample, uint64_t begin, uint64_t end,
              Results &results) {
  std::vector<float> in(blockSize), out(blockSize), measured(blockSize);
  std::vector<double> ref(blockSize);
  bool fast = hostSupports(Isa::Avx512);
  auto measure = kernels(fast ? Isa::Avx512 : Isa::Baseline).measure;
  double from = beyondFrom(function);
  for (uint64_t base = begin; base < end; base += blockSize) {
    size_t count = std::min(blockSize, end - base);
    for (size_t i = 0; i < count; ++i) {
      uint64_t index = base + i;
      uint32_t bits = uint32_t(index * sample);
      if (sample > 1)
        bits += uint32_t(mix(index)) & (sample - 1);
      in[i] = std::bit_cast<float>(bits);
    }
    if (!fast || !referenceAvx512(function, in.data(), ref.data(), count))
      for (size_t i = 0; i < count; ++i)
        ref[i] = reference<double>(function, in[i]);
    // Scalar code is slow: a part of the blocks is compared.
    bool checkLanes = base / blockSize % (sample > 1 ? 16 : 128) == 0;
    BlockWorst worst;
    bool first = true;
    for (unsigned tier = 0; tier < tierCount; ++tier) {
      for (unsigned isa = 0; isa < isaCount; ++isa) {
        if (!hostSupports(Isa(isa)))
          continue;
        const auto &kernel = kernels(Isa(isa)).f32[unsigned(function)][tier];
        Measured &m = results.of[isa][tier];
        kernel.vector(in.data(), out.data(), count);
        // Tiers and ISAs often give the same bits: measure those once.
        if (first || std::memcmp(out.data(), measured.data(),
                                 count * sizeof(float)) != 0) {
          worst = measure(in.data(), out.data(), ref.data(), count, from);
          measured = out;
          first = false;
        }
        if (worst.ulp > m.ulp.value || worst.beyondX > m.beyondX.value ||
            worst.absolute > m.absolute.value)
          for (size_t i = 0; i < count; ++i)
            record(function, in[i], out[i], ref[i], m);
        if (checkLanes)
          compareLanes(kernel, in, out, count, m);
        m.points += count;
      }
    }
  }
}

namespace {

constexpr double specials[] = {
    0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1p-1022, -0x1p-1022,
    0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023,
    std::numeric_limits<double>::infinity(),
    -std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::quiet_NaN(), 1.0, -1.0, 0.5, -0.5, 0.9375,
    -0.9375, 0x1p30, 0x1p31, 22, 6, 3, 5, -5,
    // Near the ends of exp's range, and where its results are subnormal.
    709.782712893384, 709.7827128933841, 710, -708.3964185322641, -745.13,
    -745.2, -746, -744, -720, 1024, 1023.5, -1074, -1075, -1075.5, -1022.5,
    // The double that comes nearest to a multiple of pi/2, and a hard one.
    0x1.6ac5b262ca1ffp+849, 0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1};

double f64Input(Function function, uint64_t index) {
  if (index < std::size(specials))
    return specials[index];
  uint64_t random = mix(index * 2), other = mix(index * 2 + 1);
  uint64_t mantissa = random & ((uint64_t(1) << 52) - 1);
  uint64_t sign = random & (uint64_t(1) << 63);
  auto withExponent = [&](int exponent) {
    return std::bit_cast<double>(sign | uint64_t(exponent + 1023) << 52 |
                                 mantissa);
  };
  double unit = std::ldexp(double(mantissa), -52);
  switch (index % 4) {
  case 0: // any exponent, subnormals included
    return withExponent(int(other % 2047) - 1023);
  case 1: // where most functions do something
    return withExponent(int(other % 70) - 58);
  case 2: // the whole range of exp, evenly
    return std::copysign(unit * (other % 4 == 0 ? 750 : 40), sign ? -1.0 : 1.0);
  default:
    break;
  }
  if (function == Function::Log || function == Function::Log2)
    return 1 +
           std::copysign(std::ldexp(unit, -int(other % 50)), sign ? -1.0 : 1.0);
  if (function == Function::Sin || function == Function::Cos) {
    double multiple = double(other >> (24 + random % 40));
    double x = multiple * 0x1.921fb54442d18p+0;
    return std::bit_cast<double>(std::bit_cast<uint64_t>(x) + random % 5) *
           (sign ? -1 : 1);
  }
  return withExponent(int(other % 12) - 8);
}

} // namespace

void sweepF64(Function function, uint64_t begin, uint64_t end,
              Results &results) {
  std::vector<double> in(blockSize), out(blockSize);
  std::vector<long double> ref(blockSize);
  for (uint64_t base = begin; base < end; base += blockSize) {
    size_t count = blockSize;
    for (size_t i = 0; i < count; ++i) {
      in[i] = f64Input(function, base + i);
      ref[i] = reference<long double>(function, in[i]);
    }
    bool checkLanes = base / blockSize % 16 == 0;
    for (unsigned isa = 0; isa < isaCount; ++isa) {
      if (!hostSupports(Isa(isa)))
        continue;
      for (unsigned tier = 0; tier < tierCount; ++tier) {
        const auto &kernel = kernels(Isa(isa)).f64[unsigned(function)][tier];
        Measured &m = results.of[isa][tier];
        kernel.vector(in.data(), out.data(), count);
        for (size_t i = 0; i < count; ++i)
          record(function, in[i], out[i], ref[i], m);
        if (checkLanes)
          compareLanes(kernel, in, out, count, m);
        m.points += count;
      }
    }
  }
}

Bound tierBound(Function function, Accuracy tier) {
  bool strict = tier == Accuracy::Strict;
  switch (function) {
  case Function::Exp:
    return strict ? Bound{1, 0, 0} : Bound{2, 1, 0};
  case Function::Sigmoid:
    return strict ? Bound{1, 0, 0} : Bound{4, 1, 0};
  case Function::Silu:
    return strict ? Bound{0, 0, 0} : Bound{4, 1, 0};
  case Function::GeluTanh:
    return strict ? Bound{0, 0, 0} : Bound{4, 1, 1e-6};
  default:
    return strict ? Bound{1, 0, 0} : Bound{4, 0, 0};
  }
}

std::string sourceHash(const std::string &sourceDir) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char *file :
       {"vector_math.h", "vector_math_support.h", "vector_math_exp.h",
        "vector_math_log.h", "vector_math_trig.h",
        "vector_math_coefficients.h"}) {
    std::string path = sourceDir + "/src/codegen/cpu/" + file;
    std::FILE *stream = std::fopen(path.c_str(), "rb");
    if (!stream)
      return {};
    for (int c; (c = std::fgetc(stream)) != EOF;)
      hash = (hash ^ uint8_t(c)) * 0x100000001b3;
    std::fclose(stream);
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
  return text;
}

} // namespace tessera::sweep
