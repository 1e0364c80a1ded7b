//===- tessera/dsl/region.h - Structured regions ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four structured regions share one form:
//
//     for (auto i : parallel(row)) { ... }
//     for (auto [i, j] : parallel(row, blocks(col, 64))) { ... }
//     for (auto k : serial(depth)) { ... }
//     for (auto k : pipeline(depth)) { stage("load"); ... stage("add"); ... }
//     for (auto k : reduction(depth)) { total += load(x(k)); }
//
// fold() and if_() take functions instead.
//
// The body is traced once. A tile that existed before a serial, pipeline or
// reduction loop and is assigned in it is carried: all carries update together
// when an iteration ends, and keep their initial values if there is none. The
// instances of a parallel region are independent, so there such an assignment
// is an error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_REGION_H
#define TESSERA_DSL_REGION_H

#include "tessera/dsl/ops.h"

#include <array>
#include <functional>

namespace tessera {

/// What a region runs over: a dimension, or a dimension in blocks.
class Axis {
public:
  /// Every index of a dimension.
  Axis(const Dim &dim,
       std::source_location where = std::source_location::current())
      : dim(dim), where(where) {}
  /// Every block of a dimension.
  Axis(const Blocks &blocks,
       std::source_location where = std::source_location::current())
      : dim(blocks.outer), inner(blocks.inner), step(blocks.step.value()),
        total(blocks.total.value()), isBlock(true), where(where) {}

  // For the implementation.
  Dim dim, inner;
  detail::Value step, total;
  bool isBlock = false;
  detail::Site where;
};

namespace detail {

enum class RegionKind : uint8_t { Parallel, Serial, Pipeline, Reduction };

/// Opens a region when the loop begins and closes it when its body has been
/// traced. A body that is left in another way (break, return, an exception) is
/// found by the destructor.
class RegionRange {
public:
  RegionRange(const RegionRange &) = delete;
  RegionRange &operator=(const RegionRange &) = delete;

protected:
  RegionRange(RegionKind kind, Order order, int64_t window)
      : kind(kind), order(order), window(window) {}
  ~RegionRange();
  /// Gives each axis its coordinate; false when there is nothing to trace.
  bool open(std::span<const Axis> axes, Coord *coordinates);
  void close();

private:
  RegionKind kind;
  Order order;
  int64_t window;
  /// The scope in the trace; 0 while none is open.
  uint64_t scope = 0;
  int exceptions = 0;
};

template <size_t count> class Region : RegionRange {
public:
  Region(RegionKind kind, std::array<Axis, count> axes,
         Order order = Order::Unordered, int64_t window = 0)
      : RegionRange(kind, order, window), axes(axes) {}

  struct End {};
  struct Iterator {
    Region *region;
    bool tracing;
    bool operator!=(End) const { return tracing; }
    Iterator &operator++() {
      region->close();
      tracing = false;
      return *this;
    }
    auto operator*() const {
      if constexpr (count == 1)
        return region->coordinates[0];
      else
        return region->coordinates;
    }
  };
  Iterator begin() { return {this, this->open(axes, coordinates.data())}; }
  End end() { return {}; }

private:
  std::array<Axis, count> axes;
  std::array<Coord, count> coordinates;
};

} // namespace detail

/// Independent instances, one per index of the axis (or per index tuple).
inline auto parallel(Axis a) {
  return detail::Region<1>(detail::RegionKind::Parallel, {a});
}
/// The same over pairs of indices.
inline auto parallel(Axis a, Axis b) {
  return detail::Region<2>(detail::RegionKind::Parallel, {a, b});
}
/// The same over triples of indices.
inline auto parallel(Axis a, Axis b, Axis c) {
  return detail::Region<3>(detail::RegionKind::Parallel, {a, b, c});
}
/// The same over quadruples of indices.
inline auto parallel(Axis a, Axis b, Axis c, Axis d) {
  return detail::Region<4>(detail::RegionKind::Parallel, {a, b, c, d});
}

/// One iteration after another.
inline auto serial(Axis a) {
  return detail::Region<1>(detail::RegionKind::Serial, {a});
}

/// A serial loop whose stages may overlap; at most `window` iterations are in
/// flight (0: the planner chooses).
inline auto pipeline(Axis a, int64_t window = 0) {
  return detail::Region<1>(detail::RegionKind::Pipeline, {a}, Order::Unordered,
                           window);
}
/// Begins a stage of the enclosing pipeline.
void stage(std::string_view name,
           std::source_location where = std::source_location::current());

/// A reduction over contributions: each carried tile is combined with one value
/// per iteration by one operation (+, *, min, max, &, |, ^), in the given
/// order.
inline auto reduction(Axis a, Order order = Order::Unordered) {
  return detail::Region<1>(detail::RegionKind::Reduction, {a}, order);
}

/// The general reduction: `body` yields the contributions of one index,
/// `combine` joins left and right values. For Order::Unordered and Order::Tree
/// `initial` must be the combination's identity.
std::vector<Tile> fold(Axis a, std::vector<Arg> initial, Order order,
                       const std::function<std::vector<Tile>(Coord)> &body,
                       const Combiner &combine);

/// A branch that all elements of a program instance take together: `condition`
/// is a bool scalar. Tiles assigned in a branch have that value afterwards.
void if_(Arg condition, const std::function<void()> &thenBody,
         const std::function<void()> &elseBody = {});

/// The value of a tunable in this trace: the assigned one, or the first
/// candidate.
int64_t tunable(std::string_view name, std::vector<int64_t> candidates,
                std::source_location where = std::source_location::current());

} // namespace tessera

#endif // TESSERA_DSL_REGION_H
