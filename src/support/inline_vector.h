//===- support/inline_vector.h - A vector with room inside itself --*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A growing array of trivial values whose first `capacity` elements live inside
// the object. What a launch needs on the stack, so that it allocates nothing
// for ordinary kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_INLINE_VECTOR_H
#define TESSERA_SUPPORT_INLINE_VECTOR_H

#include <cstddef>
#include <type_traits>
#include <vector>

namespace tessera::support {

template <typename T, size_t capacity> class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  InlineVector() = default;
  InlineVector(const InlineVector &) = delete;
  InlineVector &operator=(const InlineVector &) = delete;

  void push_back(const T &value) {
    if (count < capacity) {
      inside[count++] = value;
      return;
    }
    if (count == capacity)
      outside.assign(inside, inside + capacity);
    outside.push_back(value);
    ++count;
  }

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T *data() { return count > capacity ? outside.data() : inside; }
  const T *data() const { return count > capacity ? outside.data() : inside; }
  T &operator[](size_t index) { return data()[index]; }
  const T &operator[](size_t index) const { return data()[index]; }
  T *begin() { return data(); }
  T *end() { return data() + count; }
  const T *begin() const { return data(); }
  const T *end() const { return data() + count; }
  /// Shortens to `size` elements; `size` is at most size().
  void truncate(size_t size) {
    if (count > capacity && size <= capacity)
      for (size_t i = 0; i < size; ++i)
        inside[i] = outside[i];
    if (count > capacity)
      outside.resize(size > capacity ? size : 0);
    count = size;
  }

private:
  size_t count = 0;
  T inside[capacity];
  std::vector<T> outside;
};

} // namespace tessera::support

#endif // TESSERA_SUPPORT_INLINE_VECTOR_H
