//===- tensor_test.cpp - Tests of the algebra of views --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reach and overlap are compared with brute force over small random views.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/interval_equation.h"
#include "tessera/tensor.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>

using namespace tessera;

namespace {

constexpr int64_t maximum = std::numeric_limits<int64_t>::max();

/// Byte offsets of all elements, relative to `data`.
std::vector<int64_t> elementOffsets(const TensorRef &tensor) {
  std::vector<int64_t> offsets = {0};
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < tensor.extents[axis]; ++i)
        next.push_back(offset +
                       i * tensor.strides[axis] * sizeInBytes(tensor.dtype));
    offsets = next;
  }
  return offsets;
}

std::set<int64_t> touchedBytes(const TensorRef &tensor) {
  std::set<int64_t> bytes;
  for (int64_t offset : elementOffsets(tensor))
    for (int64_t i = 0; i < sizeInBytes(tensor.dtype); ++i)
      bytes.insert(
          static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.data)) +
          offset + i);
  return bytes;
}

TensorRef randomView(std::mt19937 &random, int64_t maxStride) {
  const DType types[] = {DType::U8, DType::F16, DType::F32, DType::F64};
  TensorRef tensor;
  tensor.dtype = types[random() % 4];
  const int64_t size = sizeInBytes(tensor.dtype);
  tensor.data = reinterpret_cast<void *>(
      (intptr_t{1} << 20) + static_cast<intptr_t>(random() % 24) * size);
  const size_t rank = random() % 4;
  for (size_t axis = 0; axis < rank; ++axis) {
    tensor.extents.push_back(static_cast<int64_t>(random() % 5) +
                             (random() % 8 != 0));
    tensor.strides.push_back(
        static_cast<int64_t>(random() % (2 * maxStride + 1)) - maxStride);
  }
  return tensor;
}

TensorRef view(std::vector<int64_t> extents, std::vector<int64_t> strides,
               DType dtype = DType::F32, intptr_t address = 1 << 20) {
  return {reinterpret_cast<void *>(address), dtype, std::move(extents),
          std::move(strides)};
}

} // namespace

TEST(Tensor, DenseStridesAndElements) {
  const TensorRef tensor = TensorRef::dense(nullptr, DType::F32, {2, 3, 4});
  EXPECT_EQ(tensor.strides, (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(tensor.elements(), 24);
  EXPECT_EQ(TensorRef::dense(nullptr, DType::F32, {}).elements(), 1);
  EXPECT_EQ(TensorRef::dense(nullptr, DType::F32, {4, 0, 3}).elements(), 0);
  EXPECT_EQ(view({maximum, 3}, {1, 1}).elements(), maximum);
  EXPECT_EQ(view({maximum, maximum, 0}, {1, 1, 1}).elements(), 0);
}

TEST(Tensor, ReachNeverOverflows) {
  EXPECT_EQ(reachableBytes(view({0, maximum}, {maximum, maximum}))->end, 0);
  const auto big = reachableBytes(view({2}, {(int64_t{1} << 60)}));
  ASSERT_TRUE(big);
  EXPECT_EQ(big->end, (int64_t{1} << 62) + 4);
  EXPECT_FALSE(reachableBytes(view({2}, {(int64_t{1} << 61)})));
  EXPECT_FALSE(reachableBytes(view({maximum}, {maximum})));
  EXPECT_FALSE(
      reachableBytes(view({2, 2}, {(int64_t{1} << 60), (int64_t{1} << 60)})));
  EXPECT_FALSE(
      reachableBytes(view({3}, {std::numeric_limits<int64_t>::min()})));
  const auto both = reachableBytes(view({3, 2}, {-5, 7}));
  EXPECT_EQ(both->begin, -40);
  EXPECT_EQ(both->end, 32);
  EXPECT_TRUE(reachableBytes(view({1}, {maximum})));
}

TEST(Tensor, SelfOverlapOfCommonViews) {
  EXPECT_FALSE(overlapsItself(view({3, 4}, {4, 1})));
  EXPECT_FALSE(overlapsItself(view({4, 3}, {1, 4})));
  EXPECT_FALSE(overlapsItself(view({3, 4}, {-100, -1})));
  EXPECT_FALSE(overlapsItself(view({1, 1}, {0, 0})));
  EXPECT_FALSE(overlapsItself(view({0, 4}, {0, 0})));
  EXPECT_FALSE(overlapsItself(view({}, {})));
  EXPECT_TRUE(overlapsItself(view({2, 4}, {0, 1})));
  EXPECT_TRUE(overlapsItself(view({3, 4}, {3, 1})));
  EXPECT_TRUE(overlapsItself(view({2, 2}, {1, -1})));
  // Interleaved: (2, 3) collides at 3 * 2 = 2 * 3.
  EXPECT_FALSE(overlapsItself(view({3, 2}, {2, 3})));
  EXPECT_FALSE(overlapsItself(view({3, 5}, {2, 3})));
  EXPECT_TRUE(overlapsItself(view({4, 3}, {2, 3})));
  // Far too large for enumeration.
  EXPECT_FALSE(overlapsItself(view({1000003, 1000000}, {1000000, 1000003})));
  EXPECT_TRUE(overlapsItself(view({1000004, 1000001}, {1000000, 1000003})));
  EXPECT_TRUE(overlapsItself(view({maximum, maximum}, {maximum, maximum})));
}

TEST(Tensor, SelfOverlapAgainstBruteForce) {
  std::mt19937 random(1);
  int overlapping = 0, interleaved = 0;
  for (int i = 0; i < 20000; ++i) {
    const TensorRef tensor = randomView(random, i % 2 ? 6 : 24);
    std::vector<int64_t> offsets = elementOffsets(tensor);
    std::sort(offsets.begin(), offsets.end());
    const bool expected =
        std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
    ASSERT_EQ(overlapsItself(tensor), expected) << "view " << i;
    overlapping += expected;
    interleaved += !expected && tensor.elements() > 1;
  }
  EXPECT_GT(overlapping, 2000);
  EXPECT_GT(interleaved, 2000);
}

TEST(Tensor, ReachAgainstBruteForce) {
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    const TensorRef tensor = randomView(random, 20);
    const std::vector<int64_t> offsets = elementOffsets(tensor);
    const auto range = reachableBytes(tensor);
    ASSERT_TRUE(range);
    if (offsets.empty()) {
      ASSERT_EQ(range->begin, 0);
      ASSERT_EQ(range->end, 0);
      continue;
    }
    ASSERT_EQ(range->begin, *std::min_element(offsets.begin(), offsets.end()));
    ASSERT_EQ(range->end, *std::max_element(offsets.begin(), offsets.end()) +
                              sizeInBytes(tensor.dtype));
  }
}

TEST(Tensor, OverlapOfCommonViews) {
  const intptr_t base = 1 << 20;
  // Even and odd columns of one array.
  EXPECT_FALSE(mayOverlap(view({100, 50}, {100, 2}),
                          view({100, 50}, {100, 2}, DType::F32, base + 4)));
  EXPECT_TRUE(mayOverlap(view({100, 50}, {100, 2}),
                         view({100, 50}, {100, 2}, DType::F32, base + 8)));
  // Left and right halves of the columns.
  EXPECT_FALSE(mayOverlap(view({100, 50}, {100, 1}),
                          view({100, 50}, {100, 1}, DType::F32, base + 200)));
  EXPECT_TRUE(mayOverlap(view({100, 51}, {100, 1}),
                         view({100, 50}, {100, 1}, DType::F32, base + 200)));
  // Reversed rows of the lower half against the upper half.
  EXPECT_FALSE(mayOverlap(view({4, 8}, {8, 1}),
                          view({4, 8}, {-8, 1}, DType::F32, base + 7 * 32)));
  EXPECT_TRUE(mayOverlap(view({4, 8}, {8, 1}),
                         view({5, 8}, {-8, 1}, DType::F32, base + 7 * 32)));
  // A huge leading dimension.
  EXPECT_FALSE(mayOverlap(
      view({1 << 20, 1 << 10}, {1 << 20, 1}),
      view({1 << 20, 1 << 10}, {1 << 20, 1}, DType::F32, base + (4 << 10))));
  EXPECT_FALSE(mayOverlap(view({4}, {1}), view({0}, {1})));
  EXPECT_TRUE(mayOverlap(view({4}, {1}), view({4}, {1})));
  // Touching ends.
  EXPECT_FALSE(
      mayOverlap(view({4}, {1}), view({4}, {1}, DType::F32, base + 16)));
}

TEST(Tensor, OverlapAgainstBruteForce) {
  std::mt19937 random(3);
  int overlapping = 0, woven = 0;
  for (int i = 0; i < 20000; ++i) {
    TensorRef a = randomView(random, 16);
    TensorRef b = randomView(random, 16);
    if (i % 2) { // The same grid at another place.
      const auto *data = b.data;
      b = a;
      b.data = const_cast<void *>(data);
      if (i % 4 == 1)
        for (int64_t &stride : b.strides)
          stride *= 2;
    }
    const std::set<int64_t> bytesA = touchedBytes(a), bytesB = touchedBytes(b);
    const bool expected =
        std::any_of(bytesA.begin(), bytesA.end(),
                    [&](int64_t byte) { return bytesB.count(byte) != 0; });
    ASSERT_EQ(mayOverlap(a, b), expected) << "pair " << i;
    ASSERT_EQ(mayOverlap(b, a), expected) << "pair " << i;
    overlapping += expected;
    woven += !expected && !bytesA.empty() && !bytesB.empty() &&
             *bytesA.begin() < *bytesB.rbegin() &&
             *bytesB.begin() < *bytesA.rbegin();
  }
  EXPECT_GT(overlapping, 2000);
  EXPECT_GT(woven, 1000);
}

TEST(IntervalEquation, AgainstBruteForce) {
  std::mt19937 random(4);
  for (int i = 0; i < 20000; ++i) {
    const size_t terms = random() % 5;
    runtime::IntervalEquation equation;
    std::set<int64_t> sums = {0};
    for (size_t k = 0; k < terms; ++k) {
      const int64_t coefficient = random() % 40, last = random() % 6;
      equation.add(coefficient, last);
      std::set<int64_t> next;
      for (int64_t sum : sums)
        for (int64_t x = 0; x <= last; ++x)
          next.insert(sum + coefficient * x);
      sums = next;
    }
    const int64_t target = static_cast<int64_t>(random() % 300) - 10;
    ASSERT_EQ(equation.solve(target),
              sums.count(target) ? runtime::Answer::Yes : runtime::Answer::No);
  }
}
