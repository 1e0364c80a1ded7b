//===- bench/core/memory.cpp - Arrays that all arms of a row share --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/memory.h"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace tessera::bench {

namespace {

constexpr int64_t page = 4096;
constexpr int64_t guardBytes = 2 * page;
constexpr int64_t placementStep = 1088;
constexpr unsigned char guardByte = 0xa5;

Error noMemory(const char *what, int64_t bytes) {
  return {ErrorFamily::Unsupported,
          "bench.memory",
          fmt::format("{} of {} bytes: {}", what, bytes, std::strerror(errno)),
          {}};
}

} // namespace

int64_t SharedArray::bytes() const {
  int64_t elements = 1;
  for (int64_t extent : extents)
    elements *= extent;
  return elements * sizeInBytes(dtype);
}

Result<SharedMemory> SharedMemory::create(std::vector<SharedArray> inputs,
                                          std::vector<SharedArray> outputs,
                                          int arms) {
  SharedMemory memory;
  memory.inputArrays = std::move(inputs);
  memory.outputArrays.assign(arms, outputs);
  int64_t end = 0;
  int index = 0;
  auto place = [&](SharedArray &array, int position) {
    int64_t begin = (end + guardBytes + page - 1) / page * page;
    array.offset = begin + position * placementStep % page;
    memory.guards.emplace_back(end, array.offset);
    end = array.offset + array.bytes();
  };
  for (SharedArray &array : memory.inputArrays)
    place(array, index++);
  // Every arm's outputs stand where every other's do, modulo the page size.
  for (std::vector<SharedArray> &arm : memory.outputArrays)
    for (size_t i = 0; i < arm.size(); ++i)
      place(arm[i], index + static_cast<int>(i));
  memory.guards.emplace_back(end, end + guardBytes);
  memory.bytes = (end + guardBytes + page - 1) / page * page;

  memory.descriptor = memfd_create("tessera-bench", MFD_CLOEXEC);
  if (memory.descriptor < 0 || ftruncate(memory.descriptor, memory.bytes) != 0)
    return noMemory("shared memory", memory.bytes);
  void *mapping = mmap(nullptr, memory.bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED, memory.descriptor, 0);
  if (mapping == MAP_FAILED)
    return noMemory("mapping shared memory", memory.bytes);
  memory.start = static_cast<unsigned char *>(mapping);
  memory.mendGuards();
  return memory;
}

Result<SharedMemory> SharedMemory::open(const std::string &path,
                                        int64_t bytes) {
  SharedMemory memory;
  memory.descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (memory.descriptor < 0)
    return noMemory("opening shared memory", bytes);
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       memory.descriptor, 0);
  if (mapping == MAP_FAILED)
    return noMemory("mapping shared memory", bytes);
  memory.start = static_cast<unsigned char *>(mapping);
  memory.bytes = bytes;
  return memory;
}

SharedMemory::SharedMemory(SharedMemory &&other) noexcept {
  *this = std::move(other);
}

SharedMemory &SharedMemory::operator=(SharedMemory &&other) noexcept {
  if (this == &other)
    return *this;
  release();
  descriptor = std::exchange(other.descriptor, -1);
  start = std::exchange(other.start, nullptr);
  bytes = std::exchange(other.bytes, 0);
  inputArrays = std::move(other.inputArrays);
  outputArrays = std::move(other.outputArrays);
  guards = std::move(other.guards);
  return *this;
}

SharedMemory::~SharedMemory() { release(); }

void SharedMemory::release() {
  if (start)
    munmap(start, bytes);
  if (descriptor >= 0)
    close(descriptor);
}

std::string SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), descriptor);
}

TensorRef SharedMemory::view(const SharedArray &array) const {
  return TensorRef::dense(start + array.offset, array.dtype, array.extents);
}

void SharedMemory::poison(int arm) const {
  for (const SharedArray &array : outputArrays[arm])
    std::memset(start + array.offset, 0xff, array.bytes());
}

bool SharedMemory::guardsIntact() const {
  return std::all_of(guards.begin(), guards.end(), [&](auto zone) {
    return std::all_of(start + zone.first, start + zone.second,
                       [](unsigned char byte) { return byte == guardByte; });
  });
}

void SharedMemory::mendGuards() const {
  for (auto [begin, last] : guards)
    std::memset(start + begin, guardByte, last - begin);
}

} // namespace tessera::bench
