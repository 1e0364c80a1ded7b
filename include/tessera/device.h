//===- tessera/device.h - Devices -------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program can ask about a device that kernels run on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DEVICE_H
#define TESSERA_DEVICE_H

#include <cstdint>
#include <string>

namespace tessera {

/// What is known of a device.
struct DeviceInfo {
  /// "cpu".
  std::string kind;
  /// The vendor's name of the processor; "unknown" when the system hides it.
  std::string name;
  /// Cores this process may run on: what a task pool uses by default.
  int threads = 1;
  /// Bytes of memory installed; 0 when unknown.
  int64_t memoryBytes = 0;
};

/// The processor this process runs on.
DeviceInfo cpuDevice();

} // namespace tessera

#endif // TESSERA_DEVICE_H
