//===- npy_header.h - The header of an .npy file ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsing and printing of the dictionary at the start of an .npy file, apart
// from any file access.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_HOST_NPY_HEADER_H
#define TESSERA_RUNTIME_HOST_NPY_HEADER_H

#include "tessera/dtype.h"
#include "tessera/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// Magic, version and a 2- or 4-byte length come before the dictionary.
inline constexpr size_t npyPrefixBytes = 12;
/// NumPy itself refuses to parse longer ones by default (10,000); a table of 64
/// extents needs less.
inline constexpr uint64_t maxNpyHeaderBytes = 65536;
inline constexpr size_t maxNpyRank = 64;

struct NpyPrefix {
  /// Where the dictionary starts and where the data starts.
  uint64_t dictionaryOffset = 0;
  uint64_t dataOffset = 0;
};

struct NpyHeader {
  /// The element type as written, for example "<f4".
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> extents;
};

struct NpyType {
  DType dtype;
  /// Elements are stored in the other byte order.
  bool swapBytes;
};

/// Reads magic, version and length from the first bytes of a file, of which at
/// most npyPrefixBytes matter. Errors have no position; the caller adds the
/// file.
Result<NpyPrefix> parseNpyPrefix(std::string_view bytes);

/// Parses the dictionary.
Result<NpyHeader> parseNpyDictionary(std::string_view text);

/// The dtype that `descr` stands for, given what the caller expects.
Result<NpyType> resolveNpyType(std::string_view descr,
                               std::optional<DType> expected);

/// The complete header, version 1.0, padded so that the data is aligned to 64
/// bytes.
std::string printNpyHeader(DType dtype, const std::vector<int64_t> &extents);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_HOST_NPY_HEADER_H
