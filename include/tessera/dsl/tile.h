//===- tessera/dsl/tile.h - Tiles and arguments -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Tile is a value: a number, or an array of numbers over dimensions. Its
// element type and dimensions are known while tracing, not in its C++ type.
// Assigning to a Tile defines a new value; inside a serial loop this makes a
// carry, without further notice.
//
// Every operation takes its operands as Arg, whose conversions remember the
// author's source line. A wrong operation records a diagnostic with that line
// and yields a poison tile, on which every further operation is silent.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_TILE_H
#define TESSERA_DSL_TILE_H

#include "tessera/dtype.h"

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

namespace tessera {

class Arg;

namespace detail {

/// A line of the author's source. File names are those of
/// std::source_location, which live as long as the program.
struct Site {
  const char *file = "";
  uint32_t line = 0;
  uint32_t column = 0;

  Site() = default;
  Site(const std::source_location &location)
      : file(location.file_name()), line(location.line()),
        column(location.column()) {}
};

/// A value of the trace: an opaque handle, its type, and where it was made.
struct Value {
  enum class Kind : uint8_t { Empty, Poison, Defined };
  void *handle = nullptr;
  /// The trace the handle belongs to.
  uint64_t trace = 0;
  DType dtype = DType::F32;
  Kind kind = Kind::Empty;
  Site site;
};

template <typename T>
concept Number = std::integral<T> || std::floating_point<T>;

} // namespace detail

/// A value over zero or more dimensions. Copying copies the value.
class Tile {
public:
  /// A tile without a value; using it before it is assigned is an error.
  Tile();
  Tile(const Tile &other);
  Tile &operator=(const Tile &other);
  ~Tile();

  /// A number as a scalar tile: bool, i64 for integers, and for floating
  /// numbers the compute type of `Float`.
  template <detail::Number T>
  Tile(T number, std::source_location where = std::source_location::current());

  explicit Tile(const detail::Value &value);

  /// The element type.
  DType dtype() const { return state.dtype; }
  /// False for a poison tile and for one without a value.
  bool valid() const { return state.kind == detail::Value::Kind::Defined; }
  /// The names of its dimensions, in axis order.
  std::vector<std::string> dims() const;

  /// x += y is x = x + y, which defines a new value; the same for the others.
  Tile &operator+=(Arg other);
  Tile &operator-=(Arg other);
  Tile &operator*=(Arg other);
  Tile &operator/=(Arg other);
  Tile &operator&=(Arg other);
  Tile &operator|=(Arg other);

  // For the implementation.
  const detail::Value &value() const { return state; }

private:
  friend class TraceContext;
  friend struct LiveTiles;

  void link();

  detail::Value state;
  // The live tiles of a trace form a list, which is how a loop finds those that
  // its body assigns.
  uint64_t identity = 0;
  Tile *next = nullptr;
  Tile **slot = nullptr;
};

/// A host-known number of elements or a coordinate: a scalar integer tile.
using Extent = Tile;

/// An operand: a tile or a number, and the author's source line. Numbers adapt
/// to the element type of the other operand.
class Arg {
public:
  enum class Kind : uint8_t { Absent, Tile, Bool, Integer, Unsigned, Float };

  /// No operand, for optional ones.
  Arg() = default;

  Arg(const Tile &tile,
      std::source_location where = std::source_location::current())
      : value(tile.value()), kind(Kind::Tile), where(where) {}

  template <detail::Number T>
  Arg(T number, std::source_location where = std::source_location::current())
      : where(where) {
    if constexpr (std::same_as<T, bool>) {
      kind = Kind::Bool;
      integer = number;
    } else if constexpr (std::floating_point<T>) {
      kind = Kind::Float;
      real = static_cast<double>(number);
    } else {
      kind = std::is_unsigned_v<T> ? Kind::Unsigned : Kind::Integer;
      integer = static_cast<int64_t>(number);
    }
  }

  /// A tile used at a line that is already known.
  static Arg at(const Tile &tile, detail::Site where) {
    Arg arg(tile);
    arg.where = where;
    return arg;
  }

  /// False for an operand that was left out.
  bool given() const { return kind != Kind::Absent; }

  // For the implementation.
  detail::Value value;
  Kind kind = Kind::Absent;
  int64_t integer = 0;
  double real = 0;
  detail::Site where;
};

namespace detail {
/// The scalar tile of a number.
Value constantOf(const Arg &number);
/// A position as a scalar tile.
Value positionOf(int64_t position, Site where);
} // namespace detail

template <detail::Number T>
Tile::Tile(T number, std::source_location where)
    : Tile(detail::constantOf(Arg(number, where))) {}

} // namespace tessera

#endif // TESSERA_DSL_TILE_H
