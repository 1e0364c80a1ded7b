//===- bench/core/memory.h - Arrays that all arms of a row share -*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One shared mapping holds the inputs of a row, which every arm reads, and one
// set of outputs per arm. Each array stands between zones of known bytes, so
// that stray writes show. Arrays start 1088 bytes apart modulo the page size:
// equal placement modulo 4 KiB makes loads wait for unrelated stores.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_MEMORY_H
#define TESSERA_BENCH_CORE_MEMORY_H

#include "tessera/error.h"
#include "tessera/tensor.h"

#include <map>
#include <string>
#include <vector>

namespace tessera::bench {

/// Dense, row-major.
struct SharedArray {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> extents;
  bool isOutput = false;
  /// From the start of the mapping, in bytes.
  int64_t offset = 0;

  int64_t bytes() const;
};

class SharedMemory {
public:
  /// A mapping that holds `inputs` once and `outputs` for each of `arms` arms.
  /// Fails with Unsupported when the memory cannot be had.
  static Result<SharedMemory> create(std::vector<SharedArray> inputs,
                                     std::vector<SharedArray> outputs,
                                     int arms);
  /// Opens a mapping that another process made.
  static Result<SharedMemory> open(const std::string &path, int64_t bytes);

  SharedMemory(SharedMemory &&other) noexcept;
  SharedMemory &operator=(SharedMemory &&other) noexcept;
  ~SharedMemory();

  /// Where another process of the same user finds it.
  std::string path() const;
  int64_t size() const { return bytes; }
  unsigned char *data() const { return start; }

  const std::vector<SharedArray> &inputs() const { return inputArrays; }
  const std::vector<SharedArray> &outputs(int arm) const {
    return outputArrays[arm];
  }
  TensorRef view(const SharedArray &array) const;

  /// Fills the outputs of an arm with NaN patterns (bytes 0xff).
  void poison(int arm) const;
  /// Whether every guard zone of the mapping still holds its bytes.
  bool guardsIntact() const;
  /// Restores all guard zones, so that damage is one arm's and not the next's.
  void mendGuards() const;

private:
  SharedMemory() = default;
  void release();

  int descriptor = -1;
  unsigned char *start = nullptr;
  int64_t bytes = 0;
  std::vector<SharedArray> inputArrays;
  std::vector<std::vector<SharedArray>> outputArrays;
  /// Guard zones as [begin, end).
  std::vector<std::pair<int64_t, int64_t>> guards;
};

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_MEMORY_H
