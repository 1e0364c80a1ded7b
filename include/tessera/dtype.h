//===- tessera/dtype.h - Element types --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types an array can have. Bool, the integers, F32 and F64 compute
// in their own type; F16, BF16, F8E4M3 and F8E5M2 are storage types: a load
// widens them to F32 and a store narrows once, to nearest even
// (docs/semantics.md, "Numbers").
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DTYPE_H
#define TESSERA_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

/// The type of an array's elements. F8E4M3 is the finite variant ("fn"): it has
/// NaN and no infinity.
enum class DType : uint8_t {
  Bool,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  F16,
  BF16,
  F8E4M3,
  F8E5M2,
  F32,
  F64,
};

/// The number of bytes one element occupies in memory; Bool takes one byte.
int64_t sizeInBytes(DType type);

/// The spelling used on the command line and in messages: "f32", "bf16",
/// "bool", "u8", "f8e4m3", ...
std::string_view name(DType type);

/// The inverse of name(); std::nullopt for an unknown spelling.
std::optional<DType> parseDType(std::string_view text);

/// The type in which values of `type` are computed: F32 for the narrow storage
/// types, `type` itself otherwise.
DType computeType(DType type);

/// True for F16, BF16, F8E4M3, F8E5M2, F32 and F64.
bool isFloat(DType type);

/// True for U8 to U64.
bool isUnsigned(DType type);

/// True for I8 to I64 and U8 to U64 (not for Bool).
bool isInteger(DType type);

} // namespace tessera

#endif // TESSERA_DTYPE_H
