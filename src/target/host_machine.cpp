//===- host_machine.cpp - The description of this machine -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/host_machine.h"

#include "support/env.h"
#include "target/calibration.h"

#include "fmt/format.h"

#include <algorithm>

namespace tessera {

namespace {

constexpr int64_t KiB = 1 << 10;
constexpr int64_t MiB = 1 << 20;

/// A guest often sees the whole last level of its host, which it shares with
/// guests that it does not see. More than this for each processor is taken for
/// such a case.
constexpr int64_t largestShare = 16 * MiB;

} // namespace

Machine withCacheSizes(Machine machine, const CacheSizes &caches) {
  const auto [first, second, third] = caches.bytes;
  std::array<MemoryLevel, 4> &memory = machine.memory;
  // Caches of relatives differ in ways rather than in sets.
  auto resize = [](MemoryLevel &level, int64_t bytes) {
    level.ways *= double(bytes) / double(level.bytes);
    level.bytes = bytes;
  };
  if (first >= 4 * KiB && first <= 1 * MiB)
    resize(memory[0], first);
  if (second >= 64 * KiB && second <= 64 * MiB)
    resize(memory[1], second);
  if (third >= 512 * KiB && third / std::max(caches.sharers, 1) <= largestShare)
    resize(memory[2], third);
  // One level may be the machine's and the next the row's.
  resize(memory[1], std::max(memory[0].bytes, memory[1].bytes));
  resize(memory[2], std::max(memory[1].bytes, memory[2].bytes));
  return machine;
}

MachineChoice chooseMachine(const Processor &processor,
                            const CacheSizes &caches, const Machine &generic,
                            const std::string &path) {
  MachineChoice choice;
  if (!path.empty()) {
    Result<std::optional<Calibration>> read = readCalibration(path, processor);
    if (!read)
      choice.warning = read.error().message;
    else if (read->has_value()) {
      choice.machine = std::move((*read)->machine);
      choice.reason =
          fmt::format("measured on {}, in '{}'", (*read)->measured, path);
      return choice;
    }
  }
  const Machine *row = findMachine(processor);
  choice.machine = withCacheSizes(row ? *row : generic, caches);
  choice.reason =
      row ? "the row of this processor" : "no row describes this processor";
  return choice;
}

MachineChoice uncalibratedHostMachine() {
  return chooseMachine(hostProcessor(), hostCacheSizes(),
                       genericMachine(hostIsa()), "");
}

const MachineChoice &hostMachineChoice() {
  static const MachineChoice choice = [] {
    MachineChoice made =
        chooseMachine(hostProcessor(), hostCacheSizes(),
                      genericMachine(hostIsa()), calibrationPath());
    if (!made.warning.empty())
      support::logLine("tessera: warning: " + made.warning);
    return made;
  }();
  return choice;
}

const Machine &hostMachine() { return hostMachineChoice().machine; }

} // namespace tessera
