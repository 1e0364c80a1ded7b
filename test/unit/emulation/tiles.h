//===- tiles.h - Tile registers on a host without them ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs code of level avx512-amx on a host that has everything else of that
// level. It is loaded into this process; an instruction of the tile registers
// is an illegal one here, and the handler of that signal executes it. Shapes
// that the processor refuses end the process with a message.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_EMULATION_TILES_H
#define TESSERA_TEST_UNIT_EMULATION_TILES_H

#include "driver/program.h"

#include <cstdint>
#include <span>

namespace tessera::emulation {

/// Whether the host lacks the tile registers alone.
bool emulatesTiles();

/// Checks the arguments and runs the kernel on the calling thread.
Result<void> launchWithTiles(const CompiledKernel &kernel,
                             std::span<const Argument> arguments);

/// How many instructions this thread has had executed so far.
uint64_t emulatedTileInstructions();

} // namespace tessera::emulation

#endif // TESSERA_TEST_UNIT_EMULATION_TILES_H
