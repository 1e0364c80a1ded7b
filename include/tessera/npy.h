//===- tessera/npy.h - Arrays in .npy files ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and writing NumPy's .npy files (format versions 1.0, 2.0 and 3.0).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_NPY_H
#define TESSERA_NPY_H

#include "tessera/buffer.h"
#include "tessera/dtype.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// An array that owns its memory: dense, row-major.
struct Array {
  Buffer buffer;
  /// The storage type of its elements.
  DType dtype = DType::F32;
  /// In elements, one per axis.
  std::vector<int64_t> extents;

  /// A dense array of uninitialized elements. Fails with Unsupported
  /// (memory.exhausted) when the product of its extents that are not zero, in
  /// bytes, does not fit 63 bits, or the system has not enough memory.
  static Result<Array> allocate(DType dtype, std::vector<int64_t> extents);

  /// A view of the whole array, valid while the array is.
  TensorRef view() const {
    return TensorRef::dense(buffer.data(), dtype, extents);
  }
};

/// Reads a file that holds exactly one array. Fortran order becomes row-major
/// and big-endian elements become native.
///
/// NumPy has no name for bf16 and the 8-bit floats. They are read from files
/// whose type is 'bfloat16', 'float8_e4m3fn' or 'float8_e5m2', and, when
/// `expected` asks for them, from unsigned integers or raw bytes of their size
/// ('<u2', '<V2', '|u1', '|V1'). With `expected`, any other dtype is an error.
///
/// Errors are of family Usage; their message names the file. The file's size is
/// compared with what its header promises before memory is allocated. The
/// product of the extents that are not zero must fit 63 bits in bytes, even
/// where another extent is zero.
Result<Array> readNpy(const std::string &path,
                      std::optional<DType> expected = std::nullopt);

/// Writes the view, dense and row-major; bf16 and the 8-bit floats as raw bytes
/// ('<V2', '|V1'). The data goes to a temporary file in the same directory that
/// is renamed once it is complete: `path` holds the old file or the new one,
/// never a part. An existing `path` must be a regular file. Errors are of
/// family Usage; their message names the file.
Result<void> writeNpy(const std::string &path, const TensorRef &tensor);

} // namespace tessera

#endif // TESSERA_NPY_H
