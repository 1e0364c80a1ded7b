//===- cache_sets_test.cpp - Tests of what stays in a cache ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/cache_sets.h"

#include "target/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <random>

using namespace tessera;

namespace {

MemoryLevel levelOf(int64_t bytes, double ways) {
  MemoryLevel level;
  level.bytes = bytes;
  level.ways = ways;
  return level;
}

/// The share of lines that a cache with sets of the least recently used lines
/// has in the second of two passes over the rows, in pages that lie anywhere.
double simulated(const MemoryLevel &level, const SpacedRows &rows,
                 std::mt19937 &random) {
  constexpr int64_t line = 64, linesOfPage = 64;
  std::map<int64_t, int64_t> pages;
  const int64_t sets = int64_t(double(level.bytes) / level.ways) / line;
  std::map<int64_t, std::list<int64_t>> cache;
  int64_t touched = 0, found = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t row = 0; row < rows.rows; ++row)
      for (int64_t at = row * rows.apart / line;
           at <= (row * rows.apart + rows.bytes - 1) / line; ++at) {
        const int64_t page =
            pages.try_emplace(at / linesOfPage, int64_t(random() % 4096))
                .first->second;
        std::list<int64_t> &set =
            cache[(page * linesOfPage + at % linesOfPage) % sets];
        auto place = std::find(set.begin(), set.end(), at);
        touched += pass;
        found += pass == 1 && place != set.end();
        if (place != set.end())
          set.erase(place);
        set.push_front(at);
        if (double(set.size()) > level.ways)
          set.pop_back();
      }
  return double(found) / double(touched);
}

} // namespace

// The arithmetic agrees with a cache that is played through, wherever that has
// a clear answer.
TEST(CacheSets, AgreeWithACacheOfLeastRecentlyUsedLines) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int kept = 0, gone = 0;
  for (int round = 0; round < 400; ++round) {
    const MemoryLevel level =
        levelOf(int64_t{4096} << pick(2, 5), double(int64_t{1} << pick(2, 4)));
    SpacedRows rows{pick(2, 600), 4 * pick(1, 80), 0};
    const int64_t unit = int64_t{4} << pick(0, 9);
    rows.apart = (rows.bytes + unit * pick(1, 8)) / unit * unit;
    if (!rows.areApart())
      continue;
    const double found = simulated(level, rows, random);
    // Pages that lie anywhere fill some sets before others.
    if (shareKept(level, rows, 0.4 * double(level.bytes)) == 1) {
      EXPECT_GT(found, 0.6)
          << rows.rows << " x " << rows.bytes << " every " << rows.apart
          << " in " << level.bytes << " of " << level.ways << " ways";
      ++kept;
    } else if (shareKept(level, rows, 0) == 0) {
      EXPECT_LT(found, 0.4)
          << rows.rows << " x " << rows.bytes << " every " << rows.apart
          << " in " << level.bytes << " of " << level.ways << " ways";
      ++gone;
    }
  }
  EXPECT_GT(kept, 50);
  EXPECT_GT(gone, 50);
}

TEST(CacheSets, RowsAPowerOfTwoApartShareSets) {
  const MemoryLevel second = levelOf(1 << 20, 8);
  // 256 KB, a quarter of the level.
  EXPECT_EQ(shareKept(second, {1024, 256, 4000}, 0), 1);
  EXPECT_EQ(shareKept(second, {1024, 256, 4160}, 0), 1);
  EXPECT_EQ(shareKept(second, {1024, 256, 4096}, 0), 0);
  EXPECT_EQ(shareKept(second, {1024, 256, 256}, 0), 1);
  // As many rows as there are places.
  EXPECT_EQ(shareKept(second, {256, 256, 4096}, 0), 1);
  EXPECT_LT(shareKept(second, {320, 256, 4096}, 0), 1);
  // More ways hold more of them.
  EXPECT_EQ(shareKept(levelOf(2 << 20, 16), {512, 256, 4096}, 0), 1);
  // Rows of several pages are as good as those of one: pages lie anywhere.
  EXPECT_EQ(shareKept(second, {128, 256, 32768}, 0), 1);
}

TEST(CacheSets, OtherBytesTakePlaces) {
  const MemoryLevel first = levelOf(32 << 10, 8);
  EXPECT_EQ(shareKept(first, SpacedRows::together(16 << 10), 0), 1);
  EXPECT_EQ(shareKept(first, SpacedRows::together(16 << 10), 16 << 10), 1);
  EXPECT_LT(shareKept(first, SpacedRows::together(16 << 10), 24 << 10), 1);
  EXPECT_EQ(shareKept(first, SpacedRows::together(16 << 10), 64 << 10), 0);
}

TEST(CacheSets, WithoutSetsOnlyTheSizeCounts) {
  const MemoryLevel third = levelOf(32 << 20, 0);
  EXPECT_EQ(shareKept(third, {4096, 256, 4096}, 0), 1);
  EXPECT_EQ(mostRowsKept(third, 4096), INT64_MAX);
  // Main memory holds everything.
  EXPECT_EQ(shareKept(levelOf(0, 0), {1 << 30, 256, 4096}, 1e12), 1);
}

TEST(CacheSets, RowsWithALineEach) {
  const MemoryLevel first = levelOf(48 << 10, 12);
  EXPECT_EQ(mostRowsKept(first, 4096), 12);
  EXPECT_EQ(mostRowsKept(first, 8192), 12);
  EXPECT_EQ(mostRowsKept(first, 2048), 24);
  EXPECT_EQ(mostRowsKept(first, 4096 + 64), 64 * 12);
  // Rows that begin anywhere in a line are not in few sets.
  EXPECT_EQ(mostRowsKept(first, 4100), INT64_MAX);
}

TEST(CacheSets, LinesOfRows) {
  EXPECT_EQ(lineBytes({4, 256, 4096}), 4 * 256);
  EXPECT_EQ(lineBytes({4, 4, 4096}), 4 * 64);
  // One line more, of sixteen places one begins with a line.
  EXPECT_EQ(lineBytes({16, 256, 4100}), 16 * (256 + 60));
  EXPECT_EQ(lineBytes({4, 256, 256}), 4 * 256);
  EXPECT_EQ(lineBytes(SpacedRows::together(1000)), 1000);
}
