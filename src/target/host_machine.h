//===- host_machine.h - The description of this machine ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which description stands for the machine that this process runs on, and why.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_HOST_MACHINE_H
#define TESSERA_TARGET_HOST_MACHINE_H

#include "target/machine.h"

namespace tessera {

struct MachineChoice {
  Machine machine;
  /// Why this one, for people.
  std::string reason;
  /// What is wrong with the calibration file, and what to do; empty when
  /// nothing is.
  std::string warning;
};

/// The choice for a processor with these caches: the calibration file at
/// `path`, where it is valid for the processor; else the processor's row; else
/// `generic`, both with the caches as far as they are believable. An empty path
/// is no file.
MachineChoice chooseMachine(const Processor &processor,
                            const CacheSizes &caches, const Machine &generic,
                            const std::string &path);

/// The choice for this machine without its calibration file: what `tessera
/// calibrate` starts from.
MachineChoice uncalibratedHostMachine();

/// The choice for this machine; made once, and its warning logged then.
const MachineChoice &hostMachineChoice();

/// A description with the sizes of these caches, level by level, as far as they
/// are believable: hidden, scrambled and shared ones are not.
Machine withCacheSizes(Machine machine, const CacheSizes &caches);

} // namespace tessera

#endif // TESSERA_TARGET_HOST_MACHINE_H
