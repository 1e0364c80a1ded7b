//===- session/arrays.cpp - Guarded arguments of a run --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/arrays.h"

#include "kernels/elements.h"
#include "session/extents.h"

#include "fmt/format.h"

#include <cstring>

namespace tessera::session {

Result<GuardedArray> GuardedArray::create(std::string name, DType dtype,
                                          std::vector<int64_t> extents,
                                          const std::vector<int64_t> &strides,
                                          Edge edge) {
  int64_t bytes = sizeInBytes(dtype);
  for (int64_t extent : extents)
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      return Error{ErrorFamily::Usage,
                   "usage.extents",
                   fmt::format("array '{}' of extents {} has more than 2^63 "
                               "bytes",
                               name, describeExtents(extents)),
                   {}};
  TensorRef tensor = TensorRef::dense(nullptr, dtype, extents);
  if (!strides.empty()) {
    if (strides.size() != extents.size())
      return Error{ErrorFamily::Usage,
                   "usage.strides",
                   fmt::format("array '{}' has {} strides, expected {}", name,
                               strides.size(), extents.size()),
                   {}};
    tensor.strides = strides;
  }
  std::optional<ByteRange> range = reachableBytes(tensor);
  if (!range)
    return Error{
        ErrorFamily::Usage,
        "usage.strides",
        fmt::format("array '{}' reaches further than 2^63 bytes", name),
        {}};
  Result<support::GuardedBuffer> buffer =
      support::GuardedBuffer::create(range->end - range->begin, edge);
  if (!buffer) {
    Error error = buffer.error();
    error.message = fmt::format("array '{}' {}: {}", name,
                                describeExtents(extents), error.message);
    return error;
  }
  tensor.data = static_cast<char *>(buffer->data()) - range->begin;
  return GuardedArray(std::move(*buffer), std::move(tensor));
}

static bool isDense(const TensorRef &tensor) {
  return tensor.strides ==
         TensorRef::dense(nullptr, tensor.dtype, tensor.extents).strides;
}

void copyElements(const TensorRef &source, const TensorRef &target) {
  size_t size = static_cast<size_t>(sizeInBytes(source.dtype));
  if (source.elements() == 0)
    return;
  if (isDense(source) && isDense(target)) {
    std::memcpy(target.data, source.data,
                static_cast<size_t>(source.elements()) * size);
    return;
  }
  std::vector<const void *> from;
  from.reserve(static_cast<size_t>(source.elements()));
  kernels::forEachElement(
      source, [&](void *address, int64_t) { from.push_back(address); });
  kernels::forEachElement(target, [&](void *address, int64_t linear) {
    std::memcpy(address, from[static_cast<size_t>(linear)], size);
  });
}

void GuardedArray::assign(const TensorRef &source) {
  copyElements(source, tensor);
}

Result<Array> GuardedArray::copy() const {
  Result<Array> array = Array::allocate(tensor.dtype, tensor.extents);
  if (array)
    copyElements(tensor, array->view());
  return array;
}

support::Hash128 GuardedArray::hash() const {
  support::Hasher hasher;
  hasher.bytes(buffer.data(), static_cast<size_t>(buffer.size()));
  return hasher.finish();
}

bool GuardedArray::surroundingsIntact() const {
  if (!buffer.slackIntact())
    return false;
  if (isDense(tensor) || tensor.elements() == 0)
    return true;
  const auto *bytes = static_cast<const unsigned char *>(buffer.data());
  std::vector<bool> isElement(static_cast<size_t>(buffer.size()));
  kernels::forEachElement(tensor, [&](void *address, int64_t) {
    ptrdiff_t at = static_cast<const unsigned char *>(address) - bytes;
    for (int64_t i = 0; i < sizeInBytes(tensor.dtype); ++i)
      isElement[static_cast<size_t>(at + i)] = true;
  });
  for (size_t i = 0; i < isElement.size(); ++i)
    if (!isElement[i] && bytes[i] != 0xff)
      return false;
  return true;
}

} // namespace tessera::session
