//===- tessera/dsl/kernel.h - Kernels ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Kernel is a C++ function over views and scalars that is traced into Tile IR
// once per storage type and assignment of its constants. Making one never
// fails; what is wrong with it is reported when it is traced.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_KERNEL_H
#define TESSERA_DSL_KERNEL_H

#include "tessera/dsl/options.h"
#include "tessera/dsl/view.h"
#include "tessera/error.h"

#include <functional>
#include <memory>
#include <string_view>

namespace tessera {

namespace detail {

struct KernelState;

/// Gives the author's function its arguments, in order.
class Binder {
public:
  ViewState view(size_t index) const;
  Value scalar(size_t index) const;
  bool present(size_t index) const;
  Constant constant(size_t index) const;

private:
  friend struct Tracer;
  explicit Binder(const void *arguments) : arguments(arguments) {}
  const void *arguments;
};

/// How a parameter type is described and made.
template <typename P> struct ParameterTraits {
  static_assert(!sizeof(P), "a kernel's parameters are View, OptionalView, "
                            "Scalar, OptionalScalar or Const");
};
template <typename T, int rank> struct ParameterTraits<View<T, rank>> {
  static ParameterInfo describe() {
    ParameterInfo info;
    info.kind = ParameterInfo::Kind::View;
    info.dtype = dtypeOf<T>();
    info.rank = rank;
    info.writable = !std::is_const_v<T>;
    return info;
  }
  static View<T, rank> make(const Binder &binder, size_t index) {
    return View<T, rank>(binder.view(index));
  }
};
template <typename T, int rank> struct ParameterTraits<OptionalView<T, rank>> {
  static ParameterInfo describe() {
    ParameterInfo info = ParameterTraits<View<T, rank>>::describe();
    info.optional = true;
    return info;
  }
  static OptionalView<T, rank> make(const Binder &binder, size_t index) {
    return OptionalView<T, rank>(binder.view(index));
  }
};
template <typename T> struct ParameterTraits<Scalar<T>> {
  static ParameterInfo describe() {
    ParameterInfo info;
    info.kind = ParameterInfo::Kind::Scalar;
    info.dtype = dtypeOf<T>();
    return info;
  }
  static Scalar<T> make(const Binder &binder, size_t index) {
    return Scalar<T>(binder.scalar(index));
  }
};
template <typename T> struct ParameterTraits<OptionalScalar<T>> {
  static ParameterInfo describe() {
    ParameterInfo info = ParameterTraits<Scalar<T>>::describe();
    info.optional = true;
    return info;
  }
  static OptionalScalar<T> make(const Binder &binder, size_t index) {
    return OptionalScalar<T>(binder.scalar(index), binder.present(index));
  }
};
template <typename T> struct ParameterTraits<Const<T>> {
  static_assert(Number<T>, "a constant is a bool, an integer or a float");
  static ParameterInfo describe() {
    ParameterInfo info;
    info.kind = ParameterInfo::Kind::Constant;
    info.dtype = dtypeOf<T>();
    return info;
  }
  static Const<T> make(const Binder &binder, size_t index) {
    return std::visit(
        [](auto value) { return Const<T>(static_cast<T>(value)); },
        binder.constant(index));
  }
};

using Body = std::function<void(const Binder &)>;
using Parameters = std::vector<ParameterInfo>;

/// Splits a function into its parameters' description and a uniform call.
template <typename... Ps> struct Signature {
  template <typename F> static Body body(F function) {
    return [function](const Binder &binder) {
      [&]<size_t... indices>(std::index_sequence<indices...>) {
        function(ParameterTraits<std::decay_t<Ps>>::make(binder, indices)...);
      }(std::index_sequence_for<Ps...>{});
    };
  }
  static Parameters parameters() {
    return {ParameterTraits<std::decay_t<Ps>>::describe()...};
  }
};
template <typename R, typename... Ps>
Signature<Ps...> signatureOf(R (*)(Ps...));
template <typename C, typename R, typename... Ps>
Signature<Ps...> signatureOf(R (C::*)(Ps...) const);
template <typename F>
concept Function = std::is_function_v<std::remove_pointer_t<F>>;

} // namespace detail

/// A kernel: a name, parameters and the author's function. Copies are the same
/// kernel.
class Kernel {
public:
  const std::string &name() const;
  /// The parameters in order, optional ones and constants included.
  const std::vector<ParameterInfo> &parameters() const;
  /// The pins; empty unless schedule() was called.
  const Schedule &schedule() const;

  /// The same kernel with parts of its plan pinned. Pins are checked when it is
  /// compiled; one that cannot be met is an Unsupported error.
  Kernel schedule(Schedule pins) const;

  /// The kernel as Tile IR text, which carries its version. Fails with a
  /// Diagnostic when the author's function is wrong, with Usage when the
  /// options do not fit the kernel.
  Result<std::string> text(const TraceOptions &options = {}) const;

  /// Everything that is wrong with the kernel under these options; empty when
  /// it traces.
  std::vector<Error> diagnostics(const TraceOptions &options = {}) const;

  /// The tunables that a trace comes across, with the values it used.
  Result<std::vector<TunableInfo>>
  tunables(const TraceOptions &options = {}) const;

  // For the implementation.
  const detail::KernelState &state() const { return *shared; }

private:
  Kernel() = default;
  friend Kernel makeKernel(std::string_view, std::string_view,
                           detail::Parameters, detail::Body, detail::Site);
  std::shared_ptr<const detail::KernelState> shared;
};

/// What kernel() does once the function's type is known; for the
/// implementation.
Kernel makeKernel(std::string_view name, std::string_view signature,
                  detail::Parameters parameters, detail::Body body,
                  detail::Site where);

/// A kernel from a lambda or function. `signature` names the parameters in
/// order, with defaults where they have any: "x, w, y, eps = 1e-6".
template <typename F>
Kernel kernel(std::string_view name, std::string_view signature, F function,
              std::source_location where = std::source_location::current()) {
  if constexpr (detail::Function<F>) {
    using Signature = decltype(detail::signatureOf(function));
    return makeKernel(name, signature, Signature::parameters(),
                      Signature::body(function), where);
  } else {
    static_assert(
        requires { &F::operator(); },
        "expected a lambda whose parameters have types, not auto");
    using Signature = decltype(detail::signatureOf(&F::operator()));
    return makeKernel(name, signature, Signature::parameters(),
                      Signature::body(function), where);
  }
}

} // namespace tessera

#endif // TESSERA_DSL_KERNEL_H
