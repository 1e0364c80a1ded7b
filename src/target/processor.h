//===- processor.h - Which processor this is --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a processor says of itself, and how large its caches are as far as the
// system tells. Virtual machines tell much that is not so: readers of sizes
// judge them (host_machine.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_PROCESSOR_H
#define TESSERA_TARGET_PROCESSOR_H

#include <array>
#include <cstdint>
#include <string>

namespace tessera {

/// On x86 what CPUID says. On AArch64 the vendor is the implementer's number,
/// "0x41", the model the part's, and the family 0.
struct Processor {
  std::string vendor;
  int family = 0;
  int model = 0;
  int stepping = 0;
  /// For people; may be empty.
  std::string name;

  bool operator==(const Processor &) const = default;
  /// "AMD EPYC 9B14 (AuthenticAMD family 25 model 17 stepping 1)".
  std::string str() const;
};

/// Processors of one vendor and family, by a range of models.
struct ProcessorRange {
  std::string vendor;
  int family;
  int firstModel;
  int lastModel;

  bool contains(const Processor &processor) const {
    return processor.vendor == vendor && processor.family == family &&
           processor.model >= firstModel && processor.model <= lastModel;
  }
};

/// The processor this process runs on; read once. Without a vendor where the
/// system hides it.
const Processor &hostProcessor();

/// Data caches of the first to the third level; 0 where nothing is known.
struct CacheSizes {
  std::array<int64_t, 3> bytes = {};
  /// How many processors of the system share the third one.
  int sharers = 1;
};

/// What a folder like /sys/devices/system/cpu/cpu0/cache says.
CacheSizes readCacheSizes(const std::string &folder);

/// The same for this system, from the C library where there is no such folder.
CacheSizes hostCacheSizes();

} // namespace tessera

#endif // TESSERA_TARGET_PROCESSOR_H
