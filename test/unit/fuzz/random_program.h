//===- fuzz/random_program.h - Tile programs as data --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A random program is a tree of statements in text form plus the extents and
// contents of its arguments. It is kept as data, not as MLIR, so that the
// reducer can cut pieces out of it and print what is left.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_FUZZ_RANDOM_PROGRAM_H
#define TESSERA_TEST_UNIT_FUZZ_RANDOM_PROGRAM_H

#include "tessera/dtype.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tessera::fuzz {

/// A generator whose numbers are the same on every platform (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {
    // Neighbouring seeds would give the same numbers, one step apart.
    state = next() ^ (seed << 32);
  }

  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(next() % uint64_t(n));
  }
  int64_t between(int64_t low, int64_t high) {
    return low + below(high - low + 1);
  }
  bool chance(double probability) {
    return double(next() >> 11) * 0x1p-53 < probability;
  }
  double unit() { return double(next() >> 11) * 0x1p-53; }
  template <typename List> auto &pick(List &list) {
    return list[below(static_cast<int64_t>(list.size()))];
  }
  template <typename List> void shuffle(List &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[below(static_cast<int64_t>(i))]);
  }

private:
  uint64_t state;
};

using Dims = std::vector<std::string>;

/// An SSA value: its name without '%', element type and dimensions.
struct Value {
  std::string name;
  std::string element;
  Dims dims;

  bool sameType(const Value &other) const {
    return element == other.element && dims == other.dims;
  }
  std::string ref() const { return "%" + name; }
  std::string type() const;
};

/// The text of a tile type.
std::string tileType(const std::string &element, const Dims &dims);

/// One op. `head` is its text up to its first region.
struct Statement {
  std::string head;
  std::vector<Value> results;
  /// Kept although nothing uses a result: stores, yields, declarations.
  bool effect = false;
  std::vector<std::vector<Statement>> regions;
  /// The block header of each region ("^bb0(...):"), may be empty.
  std::vector<std::string> headers;
  /// What stands between region i and i + 1 ("combine", "else").
  std::vector<std::string> separators;
};
using Block = std::vector<Statement>;

/// An extent known before the run: a constant or a product of dimensions.
struct DimSpec {
  std::string name;
  int64_t extent = 0;
  Dims factors;
  /// Declared by a statement from loaded data: not printed at the top.
  bool isData = false;
};

struct AxisSpec {
  /// The dimension whose extent the axis has; empty: `extent`.
  std::string dim;
  int64_t extent = 1;
  /// Generator's use: the axis is indexed by a coordinate, not spanned.
  bool isCoordinate = false;
};

enum class Contents : uint8_t { Tame, SmallIntegers, Special, Wild };

struct ViewSpec {
  std::string name;
  DType dtype = DType::F32;
  bool writable = false;
  std::vector<AxisSpec> axes;
  Contents contents = Contents::Tame;
  uint64_t seed = 0;
  /// Dense row-major arrays at small reductions.
  bool plainLayout = false;
  /// The earlier view whose memory this one shares; empty for none.
  std::string sameAs;
};

struct ScalarSpec {
  std::string name;
  DType dtype = DType::F32;
  double value = 0;
};

struct RandomProgram {
  uint64_t seed = 0;
  bool strict = true;
  /// Random plans that are tried beside the one that is chosen.
  int64_t plans = 0;
  std::vector<DimSpec> dims;
  std::vector<ViewSpec> views;
  std::vector<ScalarSpec> scalars;
  Block body;

  const DimSpec *findDim(const std::string &name) const;
  int64_t extent(const std::string &dim) const;
  std::vector<int64_t> extents(const ViewSpec &view) const;
  /// The text as Tile IR; unused parameters and dimensions are left out.
  std::string text() const;
  /// The arguments in words, for a report.
  std::string describeArguments() const;
  /// Views and scalars that the text mentions, in order.
  std::vector<const ViewSpec *> usedViews() const;
  std::vector<const ScalarSpec *> usedScalars() const;
  /// Removes statements whose results nothing uses.
  void removeDead();
  /// True when every legal execution gives the same bits (NaN payloads aside).
  bool isExact() const;
};

/// The spelling of a storage type in a view type, of a compute type in a tile.
std::string storageSpelling(DType type);
std::string computeSpelling(DType type);
std::string viewType(const ViewSpec &view);

/// A program from a seed.
RandomProgram generate(uint64_t seed);

/// The names a text refers to with '%'.
void collectReferences(const std::string &text, std::set<std::string> &names);
/// Replaces references to `from` by `to`.
void renameReferences(Block &block, const std::string &from,
                      const std::string &to);
std::string printBlock(const Block &block, unsigned indent);

} // namespace tessera::fuzz

#endif // TESSERA_TEST_UNIT_FUZZ_RANDOM_PROGRAM_H
