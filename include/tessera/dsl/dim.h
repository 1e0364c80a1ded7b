//===- tessera/dsl/dim.h - Dimensions and subscripts ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dimension is an identity: two tiles that share it align on it, whatever
// their extents or positions. A subscript says how one axis of a view is
// walked: by a whole dimension, by step * dimension + offset, by the coordinate
// of a loop, by a block of a blocked dimension, or at computed positions.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_DIM_H
#define TESSERA_DSL_DIM_H

#include "tessera/dsl/tile.h"

#include <initializer_list>

namespace tessera {

/// A dimension of the traced kernel. Copies are the same dimension.
class Dim {
public:
  /// No dimension yet; using it is an error.
  Dim() = default;

  /// Its extent as a scalar tile.
  Extent
  size(std::source_location where = std::source_location::current()) const;
  /// Its name in the IR: the given name, made unique.
  std::string name() const;

  // For the implementation.
  void *handle = nullptr;
  uint64_t trace = 0;
  detail::Site site;
};

/// Declares a dimension of the given extent (at least 0). The name is for
/// readers: each call makes another dimension.
Dim dim(std::string_view name, Arg extent);

/// A dimension cut into blocks of `size` elements; the last block may hang over
/// the end. `size` may be a number, a tunable or a scalar tile.
class Blocks {
public:
  /// The dimension that counts the blocks.
  Dim outer;
  /// The dimension of one block; tiles loaded through a block have it.
  Dim inner;
  /// Elements per block and in total.
  Extent step, total;
  detail::Site site;
};
/// Cuts a dimension; `size` is in elements, at least 1.
Blocks blocks(const Dim &whole, Arg size);

/// The position of a region's instance: a scope handle. It selects elements of
/// views; index() gives it as data.
class [[maybe_unused]] Coord {
public:
  /// The dimension of a block; of a plain coordinate, the dimension it runs
  /// over.
  Dim dim() const { return axis; }

  // For the implementation.
  detail::Value position;
  Dim axis;
  /// For a block: the element at which it starts, and the end of the whole.
  detail::Value start, total;
  bool isBlock = false;
};

/// step * dim + offset, the offset being an integer or an integer tile.
class DimExpr {
public:
  DimExpr(const Dim &dim,
          std::source_location where = std::source_location::current())
      : dim(dim), where(where) {}

  Dim dim;
  int64_t step = 1;
  detail::Value offset;
  detail::Site where;
};

/// Multiplies the step, and the offset if there is one; `step` is not 0.
DimExpr operator*(int64_t step, const DimExpr &expr);
DimExpr operator*(const DimExpr &expr, int64_t step);
/// Adds to the offset, an integer scalar, in elements of the axis.
DimExpr operator+(const DimExpr &expr, Arg offset);
DimExpr operator+(Arg offset, const DimExpr &expr);
DimExpr operator-(const DimExpr &expr, Arg offset);

/// How one axis of a view is indexed.
class Subscript {
public:
  using Location = std::source_location;

  /// The whole dimension: its extent must be the axis's.
  Subscript(const Dim &dim, Location where = Location::current())
      : dim(dim), step(1), where(where) {}
  /// Elements outside the view exist and are filled or dropped.
  Subscript(const DimExpr &expr, Location where = Location::current())
      : dim(expr.dim), step(expr.step), offset(expr.offset), where(where) {}
  /// The instance's element, or its block of elements.
  Subscript(const Coord &coord, Location where = Location::current());
  /// A computed position (scalar) or one position per element (a gather).
  Subscript(const Tile &position, Location where = Location::current())
      : offset(position.value()), where(where) {}
  /// A fixed position.
  template <std::integral T>
  Subscript(T position, Location where = Location::current())
      : offset(detail::positionOf(static_cast<int64_t>(position), where)),
        where(where) {}

  Dim dim;
  int64_t step = 0;
  detail::Value offset;
  detail::Site where;
};

/// One or more dimensions: a dimension, a block, or a braced list of them.
class DimList {
public:
  /// A dimension or a block in a braced list.
  struct Item {
    Item(const Dim &dim) : dim(dim) {}
    Item(const Coord &block) : dim(block.axis) {}
    Dim dim;
  };
  /// No dimension: a scalar.
  DimList() = default;
  DimList(const Dim &dim) : dims{dim} {}
  DimList(const Coord &block) : dims{block.axis} {}
  DimList(std::initializer_list<Item> items) {
    for (const Item &item : items)
      dims.push_back(item.dim);
  }
  DimList(std::vector<Dim> dims) : dims(std::move(dims)) {}

  std::vector<Dim> dims;
};

/// The coordinate as data: an i64 scalar, or for a block the positions of its
/// elements in the whole dimension.
Tile index(const Coord &coord,
           std::source_location where = std::source_location::current());
/// For a block: which of its elements lie within the whole dimension.
Tile inside(const Coord &block,
            std::source_location where = std::source_location::current());
/// 0, 1, ... along the dimension, as i64.
Tile iota(const Dim &dim,
          std::source_location where = std::source_location::current());

} // namespace tessera

#endif // TESSERA_DSL_DIM_H
