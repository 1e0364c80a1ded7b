//===- tessera/dsl/view.h - Parameters and memory ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The types of a kernel's parameters and the only operations that touch memory:
// load, store and scatter.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_VIEW_H
#define TESSERA_DSL_VIEW_H

#include "tessera/dsl/dim.h"

#include <optional>

namespace tessera {

/// Element type tags. `Float` is the floating storage type that the trace
/// chooses; the others are storage types that C++ has no name for.
struct Float;
struct F16;
struct BF16;
struct F8E4M3;
struct F8E5M2;

namespace detail {

/// The element type that a C++ type or tag names; std::nullopt for `Float`.
template <typename T> constexpr std::optional<DType> dtypeOf() {
  using U = std::remove_const_t<T>;
  if constexpr (std::same_as<U, Float>)
    return std::nullopt;
  else if constexpr (std::same_as<U, bool>)
    return DType::Bool;
  else if constexpr (std::same_as<U, float>)
    return DType::F32;
  else if constexpr (std::same_as<U, double>)
    return DType::F64;
  else if constexpr (std::same_as<U, F16>)
    return DType::F16;
  else if constexpr (std::same_as<U, BF16>)
    return DType::BF16;
  else if constexpr (std::same_as<U, F8E4M3>)
    return DType::F8E4M3;
  else if constexpr (std::same_as<U, F8E5M2>)
    return DType::F8E5M2;
  else {
    static_assert(std::integral<U>, "expected Float, bool, an integer or "
                                    "floating type, or a storage type tag");
    constexpr bool isSigned = std::is_signed_v<U>;
    switch (sizeof(U)) {
    case 1:
      return isSigned ? DType::I8 : DType::U8;
    case 2:
      return isSigned ? DType::I16 : DType::U16;
    case 4:
      return isSigned ? DType::I32 : DType::U32;
    default:
      return isSigned ? DType::I64 : DType::U64;
    }
  }
}

/// A view parameter of the trace.
struct ViewState {
  Value value;
  /// The storage type.
  DType dtype = DType::F32;
  int rank = 0;
  bool writable = false;
  bool present = true;
};

} // namespace detail

/// Elements of a view, named but not yet read.
class Ref {
public:
  detail::ViewState view;
  std::vector<Subscript> subscripts;
};

/// What every view can do, whatever its rank.
class ViewBase {
public:
  explicit ViewBase(const detail::ViewState &state) : state(state) {}

  /// The number of elements along an axis.
  Extent
  extent(int axis,
         std::source_location where = std::source_location::current()) const;
  /// The storage type.
  DType dtype() const { return state.dtype; }

protected:
  template <typename... Subscripts>
  Ref refer(const Subscripts &...subscripts) const {
    return Ref{state, {subscripts...}};
  }
  detail::ViewState state;
};

/// An array of the caller: `rank` axes of elements T; read-only for const T.
template <typename T, int rank> class View : public ViewBase {
public:
  static_assert(rank >= 0 && rank <= 6, "a view has 0 to 6 axes");
  using ViewBase::ViewBase;
  using S = const Subscript &;

  /// Elements of the view, one subscript per axis (dim.h).
  Ref operator()() const
    requires(rank == 0)
  {
    return this->refer();
  }
  Ref operator()(S a) const
    requires(rank == 1)
  {
    return this->refer(a);
  }
  Ref operator()(S a, S b) const
    requires(rank == 2)
  {
    return this->refer(a, b);
  }
  Ref operator()(S a, S b, S c) const
    requires(rank == 3)
  {
    return this->refer(a, b, c);
  }
  Ref operator()(S a, S b, S c, S d) const
    requires(rank == 4)
  {
    return this->refer(a, b, c, d);
  }
  Ref operator()(S a, S b, S c, S d, S e) const
    requires(rank == 5)
  {
    return this->refer(a, b, c, d, e);
  }
  Ref operator()(S a, S b, S c, S d, S e, S f) const
    requires(rank == 6)
  {
    return this->refer(a, b, c, d, e, f);
  }
};

/// A view that the call may leave out. Using an absent one is an error.
template <typename T, int rank> class OptionalView : public View<T, rank> {
public:
  using View<T, rank>::View;
  /// Whether the call gives it.
  bool present() const { return this->state.present; }
};

/// A number given at launch; it is a tile. `Scalar<Float>` has the compute type
/// of the storage type.
template <typename T> class Scalar : public Tile {
public:
  explicit Scalar(const detail::Value &value) : Tile(value) {}
};

/// A number that the call may leave out.
template <typename T> class OptionalScalar : public Tile {
public:
  explicit OptionalScalar(const detail::Value &value, bool given)
      : Tile(value), given(given) {}
  /// Whether the call gives it.
  bool present() const { return given; }

private:
  bool given;
};

/// A number fixed when the kernel is traced; an ordinary C++ value.
template <typename T> class Const {
public:
  explicit Const(T value) : number(value) {}
  /// The number.
  operator T() const { return number; }
  T value() const { return number; }

private:
  T number;
};

/// How a load treats elements that it does not read.
struct LoadOptions {
  /// The value of elements outside the view or masked out; 0 if absent.
  Arg fill = {};
  /// Where false, the element is not read.
  Arg mask = {};
  /// The author promises that every element lies within the view.
  bool promised = false;
};
/// A snapshot of the elements, widened to the compute type. Its dimensions are
/// those of the subscripts, in order.
Tile load(const Ref &elements, LoadOptions options = {},
          std::source_location where = std::source_location::current());

/// Which elements a store or scatter leaves alone.
struct StoreOptions {
  /// Where false, the element is left alone.
  Arg mask = {};
  /// The author promises that every element lies within the view.
  bool promised = false;
};
/// Writes a tile, broadcast and reordered to the subscripts' dimensions and
/// narrowed once. Elements outside the view are dropped.
void store(const Ref &elements, Arg value, StoreOptions options = {});

/// view[...] = view[...] + value, element by element in row-major order of the
/// value's dimensions, so repeated positions accumulate. The view's elements
/// are of a type that tiles compute in, or narrowed at each step. Elements
/// outside the view are dropped.
void scatterAdd(const Ref &elements, Arg value, StoreOptions options = {});
/// The same with max(view[...], value).
void scatterMax(const Ref &elements, Arg value, StoreOptions options = {});
/// The same with min(view[...], value).
void scatterMin(const Ref &elements, Arg value, StoreOptions options = {});

} // namespace tessera

#endif // TESSERA_DSL_VIEW_H
