//===- machine_figures.cpp - Every figure of a description ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/machine_figures.h"

#include "fmt/format.h"
#include "support/hash.h"

namespace tessera {

namespace {

constexpr Figure<MemoryLevel> ofLevels[] = {
    {"read", "bytes/ns", &MemoryLevel::read, 0.05, 20000},
    {"write", "bytes/ns", &MemoryLevel::write, 0.05, 20000},
    {"writeAround", "bytes/ns", &MemoryLevel::writeAround, 0.05, 20000},
    {"savedAhead", "of the reading", &MemoryLevel::savedAhead, 0, 1},
    {"jumpBytes", "bytes", &MemoryLevel::jumpBytes, 0, 1e6},
    {"crossingCycles", "cycles", &MemoryLevel::crossingCycles, 0, 500},
    {"ways", "lines", &MemoryLevel::ways, 0, 4096},
};
static_assert(sizeof(MemoryLevel) ==
                  sizeof(int64_t) + std::size(ofLevels) * sizeof(double),
              "a new figure needs an entry");

constexpr Figure<CoreCosts> ofCores[] = {
    {"gigahertz", "cycles/ns", &CoreCosts::gigahertz, 0.1, 20},
    {"loadsPerCycle", "1/cycle", &CoreCosts::loadsPerCycle, 0.02, 32},
    {"storesPerCycle", "1/cycle", &CoreCosts::storesPerCycle, 0.02, 32},
    {"operationsPerCycle", "1/cycle", &CoreCosts::operationsPerCycle, 0.02, 32},
    {"multipliesPerCycle", "1/cycle", &CoreCosts::multipliesPerCycle, 0, 32},
    {"additionsPerCycle", "1/cycle", &CoreCosts::additionsPerCycle, 0, 32},
    {"instructionsPerCycle", "1/cycle", &CoreCosts::instructionsPerCycle, 0.1,
     64},
    {"reorderWindow", "instructions", &CoreCosts::reorderWindow, 1, 1e5},
    {"mispredictCycles", "cycles", &CoreCosts::mispredictCycles, 0, 500},
    {"divideCycles", "cycles", &CoreCosts::divideCycles, 0.1, 500},
    {"squareRootCycles", "cycles", &CoreCosts::squareRootCycles, 0.1, 500},
    {"dotCycles", "cycles", &CoreCosts::dotCycles, 0.1, 500},
    {"addLatency", "cycles", &CoreCosts::addLatency, 0.5, 100},
    {"divideLatency", "cycles", &CoreCosts::divideLatency, 0.5, 500},
    {"squareRootLatency", "cycles", &CoreCosts::squareRootLatency, 0.5, 500},
    {"loadLatency", "cycles", &CoreCosts::loadLatency, 0.5, 200},
    {"gatherLaneCycles", "cycles", &CoreCosts::gatherLaneCycles, 0.02, 200},
    {"maskedLoadCycles", "cycles", &CoreCosts::maskedLoadCycles, 0, 500},
    {"maskedStoreCycles", "cycles", &CoreCosts::maskedStoreCycles, 0, 500},
    {"splitLineCycles", "cycles", &CoreCosts::splitLineCycles, 0, 500},
};
static_assert(sizeof(CoreCosts) == std::size(ofCores) * sizeof(double),
              "a new figure needs an entry");

constexpr Figure<Machine> ofMachines[] = {
    {"forkJoinNanoseconds", "ns", &Machine::forkJoinNanoseconds, 1, 1e8},
    {"wakeNanoseconds", "ns", &Machine::wakeNanoseconds, 1, 1e9},
    {"notOverlapped", "of the shorter", &Machine::notOverlapped, 0, 1},
    {"streams", "rows", &Machine::streams, 2, 256},
};

/// Calls `visit(where, figure, owner)` for every figure.
template <typename Visit>
void forEachFigure(const Machine &machine, Visit visit) {
  for (size_t i = 0; i < machine.memory.size(); ++i)
    for (const Figure<MemoryLevel> &figure : ofLevels)
      visit(levelNames[i], figure, machine.memory[i]);
  for (size_t i = 0; i < machine.core.size(); ++i)
    for (const Figure<CoreCosts> &figure : ofCores)
      visit(widthNames[i], figure, machine.core[i]);
  for (const Figure<Machine> &figure : ofMachines)
    visit("machine", figure, machine);
}

} // namespace

std::span<const Figure<MemoryLevel>> levelFigures() { return ofLevels; }
std::span<const Figure<CoreCosts>> coreFigures() { return ofCores; }
std::span<const Figure<Machine>> machineFigures() { return ofMachines; }

std::string implausibleFigure(const Machine &machine) {
  std::string found;
  forEachFigure(machine, [&](std::string_view where, const auto &figure,
                             const auto &owner) {
    double value = owner.*figure.value;
    if (found.empty() && !figure.isPlausible(value))
      found = fmt::format("{} of {} is {}, expected {} to {} {}", figure.name,
                          where, value, figure.low, figure.high, figure.unit);
  });
  // Every level holds the one before; memory holds everything.
  int64_t smaller = 1;
  for (size_t i = 0; i < machine.memory.size() && found.empty(); ++i) {
    int64_t bytes = machine.memory[i].bytes;
    bool isLast = i + 1 == machine.memory.size();
    if (isLast ? bytes != 0 : bytes < smaller || bytes > int64_t{1} << 40)
      found = fmt::format("{} of {} is {}, expected {}", "bytes", levelNames[i],
                          bytes,
                          isLast ? "0" : "at least those of the level before");
    smaller = bytes;
  }
  // A cache that reads much slower than what it is a cache of was not measured
  // alone.
  for (size_t i = 0; i + 1 < machine.memory.size() && found.empty(); ++i)
    if (const double least = machine.memory[i + 1].read / 2;
        machine.memory[i].read < least)
      found =
          fmt::format("read of {} is {:.4g}, expected at least {:.4g}, half "
                      "of the level after it",
                      levelNames[i], machine.memory[i].read, least);
  return found;
}

std::string contentHash(const Machine &machine) {
  support::Hasher hasher;
  hasher.text(machine.name);
  for (const MemoryLevel &level : machine.memory)
    hasher.integer(level.bytes);
  forEachFigure(machine,
                [&](std::string_view, const auto &figure, const auto &owner) {
                  hasher.text(figure.name).number(owner.*figure.value);
                });
  return hasher.finish().hex();
}

} // namespace tessera
