//===- test/unit/emulation/emulator.h - Code of another machine ---*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs kernels that were compiled for AArch64 on a host of another
// architecture, under QEMU's user-mode emulation: the object is linked into a
// library, and one emulated process (server.c) loads it, gets
// the arrays, calls the stages and gives the arrays back. Code for tile
// registers runs in this process (tiles.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_EMULATION_EMULATOR_H
#define TESSERA_TEST_UNIT_EMULATION_EMULATOR_H

#include "driver/program.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera::emulation {

/// The levels that this host runs under emulation alone, whether or not the
/// emulator is there.
std::vector<Isa> emulatedIsas();

/// The levels that this host runs, then those that it can emulate.
std::vector<Isa> runnableIsas();

/// Why code for `isa` can be run neither by this host nor under emulation;
/// empty if it can.
std::string whyNotRunnable(Isa isa);

/// Checks the arguments and runs code for AArch64 under emulation. `control`,
/// unless null, is the floating-point control register that the stages are
/// called with, and receives what they left.
Result<void> launchEmulated(const CompiledKernel &kernel,
                            std::span<const Argument> arguments,
                            uint64_t *control = nullptr);

/// Launches code of a level, under emulation where this host cannot run it.
Result<void> launch(Isa isa, const CompiledKernel &kernel,
                    std::span<const Argument> arguments,
                    const LaunchOptions &options = {});

} // namespace tessera::emulation

#endif // TESSERA_TEST_UNIT_EMULATION_EMULATOR_H
