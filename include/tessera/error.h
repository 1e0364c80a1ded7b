//===- tessera/error.h - Errors by family and Result ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing in Tessera aborts the host process and nothing throws across the
// public interface. A call that can fail returns Result<T>; the Error inside
// says whose mistake it is (the family), what was found, what was expected and
// where.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ERROR_H
#define TESSERA_ERROR_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace tessera {

/// Whose mistake an error is.
enum class ErrorFamily {
  /// The author's program is wrong; `where` is the author's source line.
  Diagnostic,
  /// The call is wrong (an argument's rank, dtype, extent, overlap, ...).
  /// Nothing was written.
  Launch,
  /// The command line or an input file is wrong.
  Usage,
  /// The request is legal but this build or machine cannot do it.
  Unsupported,
  /// Tessera is wrong. The message says how to reproduce it.
  Internal,
};

/// A position in a file; `line` and `column` start at 1, 0 means unknown.
struct SourcePosition {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
};

/// What went wrong, for a program (family, code) and for people (message).
struct Error {
  ErrorFamily family = ErrorFamily::Internal;
  /// A stable short identifier, for example "launch.extent".
  std::string code;
  /// Lower case, no full stop: what was found, what was expected, what to do.
  std::string message;
  /// The author's line, or the place in a text file; unknown for other errors.
  SourcePosition where;

  /// "file:line:column: error: message [code]", without the position when it
  /// is unknown.
  std::string str() const;
};

/// The command line's exit status for an error of this family: 2 for
/// Diagnostic, Launch and Usage, 3 for Unsupported, 4 for Internal.
int exitCode(ErrorFamily family);

/// Either a value or an Error. Ask before taking either: reading the value of a
/// failure, or the error of a success, is a mistake of the caller.
template <typename T> class [[nodiscard]] Result {
public:
  /// A success.
  Result(T value) : state(std::in_place_index<0>, std::move(value)) {}
  /// A failure.
  Result(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  /// Whether there is a value.
  bool ok() const { return state.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// The value; requires ok().
  T &operator*() {
    assert(ok());
    return *std::get_if<0>(&state);
  }
  const T &operator*() const {
    assert(ok());
    return *std::get_if<0>(&state);
  }
  /// A member of the value; requires ok().
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }

  /// The error; requires !ok().
  const Error &error() const {
    assert(!ok());
    return *std::get_if<1>(&state);
  }

private:
  std::variant<T, Error> state;
};

/// A call that yields nothing but may fail.
template <> class [[nodiscard]] Result<void> {
public:
  /// A success.
  Result() = default;
  /// A failure.
  Result(Error error) : failure(std::in_place_index<1>, std::move(error)) {}

  /// Whether the call succeeded.
  bool ok() const { return failure.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// The error; requires !ok().
  const Error &error() const {
    assert(!ok());
    return *std::get_if<1>(&failure);
  }

private:
  std::variant<std::monostate, Error> failure;
};

} // namespace tessera

#endif // TESSERA_ERROR_H
