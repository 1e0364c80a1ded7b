//===- dtype.cpp - Element types ------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table row per element type; every function of tessera/dtype.h reads it.
//
//===----------------------------------------------------------------------===//

#include "tessera/dtype.h"

#include <array>
#include <cstddef>

namespace tessera {

namespace {

enum class Kind : uint8_t { Bool, Signed, Unsigned, Float };

struct Row {
  DType type;
  std::string_view name;
  int64_t bytes;
  Kind kind;
  DType compute;
};

constexpr std::array<Row, 15> table = {{
    {DType::Bool, "bool", 1, Kind::Bool, DType::Bool},
    {DType::I8, "i8", 1, Kind::Signed, DType::I8},
    {DType::I16, "i16", 2, Kind::Signed, DType::I16},
    {DType::I32, "i32", 4, Kind::Signed, DType::I32},
    {DType::I64, "i64", 8, Kind::Signed, DType::I64},
    {DType::U8, "u8", 1, Kind::Unsigned, DType::U8},
    {DType::U16, "u16", 2, Kind::Unsigned, DType::U16},
    {DType::U32, "u32", 4, Kind::Unsigned, DType::U32},
    {DType::U64, "u64", 8, Kind::Unsigned, DType::U64},
    {DType::F16, "f16", 2, Kind::Float, DType::F32},
    {DType::BF16, "bf16", 2, Kind::Float, DType::F32},
    {DType::F8E4M3, "f8e4m3", 1, Kind::Float, DType::F32},
    {DType::F8E5M2, "f8e5m2", 1, Kind::Float, DType::F32},
    {DType::F32, "f32", 4, Kind::Float, DType::F32},
    {DType::F64, "f64", 8, Kind::Float, DType::F64},
}};

constexpr bool rowsAreInOrder() {
  for (size_t i = 0; i < table.size(); ++i)
    if (static_cast<size_t>(table[i].type) != i)
      return false;
  return true;
}
static_assert(rowsAreInOrder(), "the table is indexed by the enumerator");

/// A value that is no enumerator, which a caller may have cast, stands for no
/// type: it has a name for messages and equals nothing.
constexpr Row noType = {DType::Bool, "an unknown type", 1, Kind::Bool,
                        DType::Bool};

const Row &row(DType type) {
  auto index = static_cast<size_t>(type);
  return index < table.size() ? table[index] : noType;
}

} // namespace

int64_t sizeInBytes(DType type) { return row(type).bytes; }

std::string_view name(DType type) { return row(type).name; }

std::optional<DType> parseDType(std::string_view text) {
  for (const Row &entry : table)
    if (entry.name == text)
      return entry.type;
  return std::nullopt;
}

DType computeType(DType type) { return row(type).compute; }

bool isFloat(DType type) { return row(type).kind == Kind::Float; }

bool isUnsigned(DType type) { return row(type).kind == Kind::Unsigned; }

bool isInteger(DType type) {
  return row(type).kind == Kind::Signed || row(type).kind == Kind::Unsigned;
}

} // namespace tessera
