//===- kernels/elements.cpp - Element access for tensors ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/elements.h"

#include "support/float_convert.h"

#include <cstring>

namespace tessera::kernels {
namespace {

template <typename T> int64_t loadAs(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return static_cast<int64_t>(value);
}

} // namespace

void forEachElement(const TensorRef &tensor,
                    const std::function<void(void *, int64_t)> &visit) {
  int64_t count = tensor.elements();
  int64_t bytes = sizeInBytes(tensor.dtype);
  std::vector<int64_t> index(tensor.extents.size(), 0);
  int64_t offset = 0;
  for (int64_t linear = 0; linear < count; ++linear) {
    visit(static_cast<char *>(tensor.data) + offset * bytes, linear);
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += tensor.strides[axis];
      if (++index[axis] < tensor.extents[axis])
        break;
      offset -= tensor.strides[axis] * tensor.extents[axis];
      index[axis] = 0;
    }
  }
}

double loadFloatElement(DType type, const void *address) {
  return support::loadFloat(type, address);
}

int64_t loadIntegerElement(DType type, const void *address) {
  switch (type) {
  case DType::Bool:
    return loadAs<uint8_t>(address) != 0;
  case DType::I8:
    return loadAs<int8_t>(address);
  case DType::I16:
    return loadAs<int16_t>(address);
  case DType::I32:
    return loadAs<int32_t>(address);
  case DType::I64:
    return loadAs<int64_t>(address);
  case DType::U8:
    return loadAs<uint8_t>(address);
  case DType::U16:
    return loadAs<uint16_t>(address);
  case DType::U32:
    return loadAs<uint32_t>(address);
  case DType::U64:
    return loadAs<uint64_t>(address);
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
  case DType::F32:
  case DType::F64:
    break;
  }
  return 0;
}

void storeFloatElement(DType type, void *address, double value) {
  support::storeFloat(type, address, value);
}

void storeIntegerElement(DType type, void *address, int64_t value) {
  if (type == DType::Bool)
    value = value != 0;
  switch (sizeInBytes(type)) {
  case 1: {
    auto narrow = static_cast<uint8_t>(value);
    std::memcpy(address, &narrow, sizeof narrow);
    return;
  }
  case 2: {
    auto narrow = static_cast<uint16_t>(value);
    std::memcpy(address, &narrow, sizeof narrow);
    return;
  }
  case 4: {
    auto narrow = static_cast<uint32_t>(value);
    std::memcpy(address, &narrow, sizeof narrow);
    return;
  }
  default:
    std::memcpy(address, &value, sizeof value);
  }
}

std::vector<double> loadFloats(const TensorRef &tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  forEachElement(tensor, [&](void *address, int64_t i) {
    values[static_cast<size_t>(i)] = loadFloatElement(tensor.dtype, address);
  });
  return values;
}

std::vector<int64_t> loadIntegers(const TensorRef &tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  forEachElement(tensor, [&](void *address, int64_t i) {
    values[static_cast<size_t>(i)] = loadIntegerElement(tensor.dtype, address);
  });
  return values;
}

} // namespace tessera::kernels
