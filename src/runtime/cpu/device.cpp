//===- device.cpp - The host processor ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Name, cores and memory as the operating system tells them.
//
//===----------------------------------------------------------------------===//

#include "tessera/device.h"

#include "runtime/cpu/available_cores.h"

#include <fstream>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace tessera {

namespace runtime {

int availableCores() {
  // A machine may have more cores than the fixed-size mask holds.
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 4) {
    cpu_set_t *mask = CPU_ALLOC(capacity);
    if (!mask)
      break;
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    const int status = ::sched_getaffinity(0, bytes, mask);
    const int count = status == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0)
      return count;
  }
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

} // namespace runtime

DeviceInfo cpuDevice() {
  DeviceInfo device;
  device.kind = "cpu";
  device.name = "unknown";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name"))
      continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos)
      device.name = line.substr(colon + 2);
    break;
  }
  device.threads = runtime::availableCores();
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long pageBytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && pageBytes > 0)
    device.memoryBytes = static_cast<int64_t>(pages) * pageBytes;
  return device;
}

} // namespace tessera
