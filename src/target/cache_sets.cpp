//===- cache_sets.cpp - What stays in the sets of a cache -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/cache_sets.h"

#include "target/machine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tessera {

namespace {

constexpr int64_t line = 64;

/// Lines of one row, on average over the places that rows begin at.
double linesOfRow(const SpacedRows &rows) {
  const int64_t unit = rows.apart > 0 ? std::gcd(rows.apart, line) : line;
  const int64_t whole = (rows.bytes + unit - 1) / unit * unit;
  return rows.bytes <= 0 ? 0 : double(whole - unit) / double(line) + 1;
}

/// The bytes of one way; 0 where lines may have any place.
int64_t wayBytes(const MemoryLevel &level) {
  return level.ways > 0 ? std::llround(double(level.bytes) / level.ways) : 0;
}

/// Places in a way where rows so far apart begin. An address tells its place in
/// a page; where pages lie in a longer way is chance.
double placesOf(int64_t apart, int64_t way) {
  constexpr int64_t page = 4096;
  const int64_t folded = std::min(way, page);
  return double(folded / std::gcd(apart, folded)) * double(way) /
         double(folded);
}

/// Sets that hold a line of the rows.
double setsOf(const SpacedRows &rows, int64_t way) {
  return std::min(std::min(double(rows.rows), placesOf(rows.apart, way)) *
                      linesOfRow(rows),
                  double(way) / double(line));
}

} // namespace

double lineBytes(const SpacedRows &rows) {
  // From the first byte to the last one.
  const double span =
      double(std::max<int64_t>(rows.rows - 1, 0)) * double(rows.apart) +
      double(rows.bytes);
  if (!rows.areApart())
    return span;
  // Short rows share lines.
  return std::min(double(rows.rows) * linesOfRow(rows) * double(line),
                  span + double(line));
}

double shareKept(const MemoryLevel &level, const SpacedRows &rows,
                 double otherBytes) {
  if (level.bytes == 0)
    return 1;
  const double own = lineBytes(rows), size = double(level.bytes);
  double filled = own / size;
  if (const int64_t way = wayBytes(level); way > 0 && rows.areApart())
    filled =
        std::max(filled, own / double(line) / setsOf(rows, way) / level.ways);
  // What is touched in turn pushes itself out as soon as it does not fit; not
  // all at once, since not all sets are full alike.
  constexpr double none = 1.5;
  filled += otherBytes / size;
  return std::clamp((none - filled) / (none - 1), 0.0, 1.0);
}

int64_t mostRowsKept(const MemoryLevel &level, int64_t apart) {
  const int64_t way = wayBytes(level);
  if (way <= 0 || apart < line || apart % line != 0)
    return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(1, int64_t(placesOf(apart, way) * level.ways));
}

} // namespace tessera
