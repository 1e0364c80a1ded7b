//===- kernels/generate.cpp - Arguments from a seed -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/generate.h"

#include "kernels/elements.h"
#include "kernels/in_parallel.h"
#include "support/float_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

namespace tessera::kernels {
namespace {

struct ClassName {
  ValueClass valueClass;
  std::string_view name;
};

constexpr std::array<ClassName, 10> classNames = {{
    {ValueClass::Normal, "normal"},
    {ValueClass::Integers, "integers"},
    {ValueClass::Mask, "mask"},
    {ValueClass::NegativeInfinity, "negative-infinity"},
    {ValueClass::SprinkledNan, "nan"},
    {ValueClass::SprinkledInfinity, "infinity"},
    {ValueClass::Subnormal, "subnormal"},
    {ValueClass::HugeOffset, "huge-offset"},
    {ValueClass::SignedZeros, "signed-zeros"},
    {ValueClass::LargeMagnitude, "large-magnitude"},
}};

/// The finalizer of splitmix64: a bijection whose output bits all depend on all
/// input bits.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// FNV-1a.
uint64_t hashName(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

uint64_t draw(uint64_t key, uint64_t index, uint64_t stream) {
  return mix(mix(key + stream * 0xd1342543de82ef95u) ^ mix(index));
}

/// In (0, 1): never an end, so that its logarithm is finite.
double toUnit(uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

/// The draws for one element of an argument.
class Element {
public:
  Element(uint64_t key, uint64_t index) : key(key), index(index) {}

  uint64_t bits(uint64_t stream) const { return draw(key, index, stream); }
  double unit(uint64_t stream) const { return toUnit(bits(stream)); }
  double sign(uint64_t stream) const { return bits(stream) & 1 ? -1.0 : 1.0; }
  double normal() const {
    return std::sqrt(-2 * std::log(unit(1))) *
           std::cos(2 * std::numbers::pi * unit(2));
  }

private:
  uint64_t key;
  uint64_t index;
};

double rowOffset(uint64_t key, int64_t row, DType type) {
  double exponent =
      4 + 3 * toUnit(draw(key, static_cast<uint64_t>(row), /*stream=*/5));
  double limit = static_cast<double>(floatFormat(type).maxFinite / 4);
  return std::min(std::pow(10.0, exponent), limit);
}

double subnormal(const Element &element, const FloatFormat &format) {
  double steps = std::ldexp(1.0, format.precision - 1) - 1;
  double step = 1 + std::floor(element.unit(3) * steps);
  return element.sign(4) * std::min(step, steps) *
         static_cast<double>(format.minSubnormal());
}

double largeMagnitude(const Element &element, const FloatFormat &format) {
  long double factor = std::exp2(-8.0L * element.unit(3));
  return element.sign(4) * static_cast<double>(format.maxFinite * factor);
}

Error unsuitable(std::string_view argument, DType type, ValueClass valueClass) {
  return Error{
      ErrorFamily::Launch,
      "generate.class-unsuitable",
      "argument '" + std::string(argument) + "' of type " +
          std::string(tessera::name(type)) + " cannot hold values of class '" +
          std::string(name(valueClass)) + "'; choose another class or type",
      {}};
}

bool isSuitable(DType type, ValueClass valueClass) {
  if (valueClass == ValueClass::Integers || valueClass == ValueClass::Mask)
    return true;
  bool needsInfinity = valueClass == ValueClass::NegativeInfinity ||
                       valueClass == ValueClass::SprinkledInfinity;
  return isFloat(type) && (!needsInfinity || floatFormat(type).hasInfinity);
}

/// The integer classes, for any type.
int64_t integerValue(const Element &element, const GenerateOptions &options) {
  if (options.valueClass == ValueClass::Mask)
    return element.bits(3) % 5 != 0;
  auto span =
      static_cast<uint64_t>(options.high) - static_cast<uint64_t>(options.low);
  return static_cast<int64_t>(static_cast<uint64_t>(options.low) +
                              element.bits(3) % span);
}

} // namespace

std::string_view name(ValueClass valueClass) {
  for (const ClassName &entry : classNames)
    if (entry.valueClass == valueClass)
      return entry.name;
  return "unknown";
}

std::optional<ValueClass> parseValueClass(std::string_view text) {
  for (const ClassName &entry : classNames)
    if (entry.name == text)
      return entry.valueClass;
  return std::nullopt;
}

ValueClass defaultValueClass(DType type) {
  if (type == DType::Bool)
    return ValueClass::Mask;
  return isFloat(type) ? ValueClass::Normal : ValueClass::Integers;
}

uint64_t randomBits(uint64_t seed, std::string_view argument, uint64_t index,
                    uint64_t stream) {
  return draw(mix(seed) ^ hashName(argument), index, stream);
}

Result<void> generate(const TensorRef &tensor, std::string_view argument,
                      const GenerateOptions &options) {
  DType type = tensor.dtype;
  ValueClass valueClass = options.valueClass;
  if (!isSuitable(type, valueClass))
    return unsuitable(argument, type, valueClass);
  if (valueClass == ValueClass::Integers && options.low >= options.high)
    return Error{ErrorFamily::Launch,
                 "generate.empty-range",
                 "the range of argument '" + std::string(argument) +
                     "' is empty: low is " + std::to_string(options.low) +
                     ", high is " + std::to_string(options.high) +
                     "; low must be smaller",
                 {}};
  int64_t count = tensor.elements();
  if (count == 0)
    return {};

  uint64_t key = mix(options.seed) ^ hashName(argument);
  // One element is special in any case, so that a short array is not left
  // without.
  auto chosen = static_cast<int64_t>(draw(key, 0, /*stream=*/7) %
                                     static_cast<uint64_t>(count));
  int64_t rowLength = tensor.extents.empty() ? 1 : tensor.extents.back();
  const FloatFormat &format = floatFormat(type);

  auto floatValue = [&](int64_t index) -> double {
    Element element(key, static_cast<uint64_t>(index));
    bool special = index == chosen || element.bits(6) % 16 == 0;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    switch (valueClass) {
    case ValueClass::Normal:
      return element.normal();
    case ValueClass::Integers:
    case ValueClass::Mask:
      return static_cast<double>(integerValue(element, options));
    case ValueClass::NegativeInfinity:
      return -infinity;
    case ValueClass::SprinkledNan:
      return special ? std::numeric_limits<double>::quiet_NaN()
                     : element.normal();
    case ValueClass::SprinkledInfinity:
      return special ? element.sign(4) * infinity : element.normal();
    case ValueClass::Subnormal:
      return subnormal(element, format);
    case ValueClass::HugeOffset:
      return rowOffset(key, index / rowLength, type) + element.normal();
    case ValueClass::SignedZeros:
      return element.sign(4) * 0.0;
    case ValueClass::LargeMagnitude:
      return largeMagnitude(element, format);
    }
    return 0;
  };

  auto fill = [&](const TensorRef &part, int64_t first) {
    forEachElement(part, [&](void *address, int64_t offset) {
      int64_t index = first + offset;
      if (isFloat(type))
        storeFloatElement(type, address, floatValue(index));
      else
        storeIntegerElement(
            type, address,
            integerValue(Element(key, static_cast<uint64_t>(index)), options));
    });
  };
  constexpr int64_t shared = 1 << 16;
  if (!options.pool || count < shared || tensor.extents[0] < 2 ||
      overlapsItself(tensor)) {
    fill(tensor, 0);
    return {};
  }
  // Slices of the first axis.
  int64_t sliceElements = count / tensor.extents[0];
  int64_t slices = std::max<int64_t>(1, shared / 8 / sliceElements);
  inParallel(options.pool, options.threads,
             (tensor.extents[0] + slices - 1) / slices, [&](int64_t number) {
               int64_t first = number * slices;
               TensorRef part = tensor;
               part.extents[0] = std::min(slices, tensor.extents[0] - first);
               part.data = static_cast<char *>(tensor.data) +
                           first * tensor.strides[0] * sizeInBytes(type);
               fill(part, first * sliceElements);
             });
  return {};
}

} // namespace tessera::kernels
