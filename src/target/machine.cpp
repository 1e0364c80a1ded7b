//===- machine.cpp - Descriptions of micro-architectures ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table. A row needs no code (docs/howto/new-machine.md).
//
// Costs are for f32. Throughput and latency of instructions are those of LLVM's
// scheduling models and of the published instruction tables (uops.info, Agner
// Fog) unless a row says otherwise; a width that a machine has no instructions
// for costs two of the next smaller one.
//
//===----------------------------------------------------------------------===//

#include "target/machine.h"

namespace tessera {

namespace {

constexpr int64_t KiB = 1 << 10;
constexpr int64_t MiB = 1 << 20;

std::vector<Machine> makeMachines() {
  return {
      {.name = "zen4",
       .provenance = "measured on one core of two-core guests at 3.7 GHz; "
                     "instruction tables",
       .processors = {{"AuthenticAMD", 25, 0x10, 0x1f},
                      {"AuthenticAMD", 25, 0x60, 0x7f},
                      {"AuthenticAMD", 25, 0xa0, 0xaf}},
       .memory =
           {{{.bytes = 32 * KiB, .read = 218, .write = 118, .writeAround = 57},
             {.bytes = 1 * MiB,
              .read = 118,
              .write = 114,
              .writeAround = 57,
              .savedAhead = 0.5},
             {.bytes = 32 * MiB,
              .read = 99,
              .write = 65,
              .writeAround = 57,
              .savedAhead = 0.5,
              .jumpBytes = 2700},
             {.bytes = 0,
              .read = 24,
              .write = 21,
              .writeAround = 40,
              .savedAhead = 0.5,
              .jumpBytes = 1080}}},
       .core = {{{.gigahertz = 3.7,
                  .loadsPerCycle = 2,
                  .storesPerCycle = 1,
                  .operationsPerCycle = 4,
                  .multipliesPerCycle = 2,
                  .additionsPerCycle = 2,
                  .instructionsPerCycle = 6,
                  .divideCycles = 3,
                  .squareRootCycles = 5,
                  .dotCycles = 0.5,
                  .addLatency = 3,
                  .divideLatency = 11,
                  .squareRootLatency = 15,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1,
                  .splitLineCycles = 0.6},
                 // A store under a mask in a vector register is microcode.
                 {.gigahertz = 3.7,
                  .loadsPerCycle = 2,
                  .storesPerCycle = 1,
                  .operationsPerCycle = 4,
                  .multipliesPerCycle = 2,
                  .additionsPerCycle = 2,
                  .instructionsPerCycle = 6,
                  .divideCycles = 3,
                  .squareRootCycles = 5,
                  .dotCycles = 0.5,
                  .addLatency = 4,
                  .divideLatency = 11,
                  .squareRootLatency = 15,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1.25,
                  .maskedStoreCycles = 11,
                  .splitLineCycles = 0.6},
                 {.gigahertz = 3.7,
                  .loadsPerCycle = 1,
                  .storesPerCycle = 0.5,
                  .operationsPerCycle = 2,
                  .multipliesPerCycle = 1,
                  .additionsPerCycle = 1,
                  .instructionsPerCycle = 6,
                  .divideCycles = 6,
                  .squareRootCycles = 10,
                  .addLatency = 4,
                  .divideLatency = 11,
                  .squareRootLatency = 15,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1.25,
                  .splitLineCycles = 0.6}}},
       .forkJoinNanoseconds = 200,
       .wakeNanoseconds = 35000,
       // The ways of the first-level cache.
       .streams = 8},

      {.name = "sapphire-rapids",
       .provenance =
           "Sapphire, Emerald and Granite Rapids: instruction tables; "
           "bandwidth, clock, small costs and what prefetching saves measured "
           "on one core of guests",
       .processors = {{"GenuineIntel", 6, 143, 143},
                      {"GenuineIntel", 6, 207, 207},
                      {"GenuineIntel", 6, 173, 174}},
       .memory =
           {{{.bytes = 48 * KiB, .read = 360, .write = 190, .writeAround = 25},
             {.bytes = 2 * MiB,
              .read = 150,
              .write = 47,
              .writeAround = 25,
              .savedAhead = 0.5},
             {.bytes = 32 * MiB,
              .read = 25,
              .write = 20,
              .writeAround = 24,
              .savedAhead = 0.5},
             {.bytes = 0,
              .read = 13,
              .write = 7.5,
              .writeAround = 22,
              .savedAhead = 0.4}}},
       .core = {{{.gigahertz = 3,
                  .loadsPerCycle = 3,
                  .storesPerCycle = 2,
                  .operationsPerCycle = 2,
                  .instructionsPerCycle = 6,
                  .divideCycles = 3,
                  .squareRootCycles = 3,
                  .dotCycles = 2,
                  .addLatency = 2,
                  .divideLatency = 11,
                  .squareRootLatency = 12,
                  .loadLatency = 5,
                  .gatherLaneCycles = 0.75,
                  .splitLineCycles = 0.75},
                 {.gigahertz = 3,
                  .loadsPerCycle = 3,
                  .storesPerCycle = 2,
                  .operationsPerCycle = 2,
                  .instructionsPerCycle = 6,
                  .divideCycles = 5,
                  .squareRootCycles = 6,
                  .dotCycles = 2,
                  .addLatency = 4,
                  .divideLatency = 11,
                  .squareRootLatency = 12,
                  .loadLatency = 5,
                  .gatherLaneCycles = 0.5,
                  .maskedLoadCycles = 0.2,
                  .maskedStoreCycles = 0.5,
                  .splitLineCycles = 0.75},
                 {.gigahertz = 2.8,
                  .loadsPerCycle = 2,
                  .storesPerCycle = 1,
                  .operationsPerCycle = 2,
                  .instructionsPerCycle = 6,
                  .divideCycles = 10,
                  .squareRootCycles = 12,
                  .dotCycles = 2,
                  .addLatency = 4,
                  .divideLatency = 18,
                  .squareRootLatency = 19,
                  .loadLatency = 5,
                  .gatherLaneCycles = 0.5,
                  .splitLineCycles = 0.75}}},
       .forkJoinNanoseconds = 400,
       .wakeNanoseconds = 40000},

      {.name = "generic-avx512",
       .provenance = "the slower of Skylake-X, Ice Lake, Sapphire Rapids and "
                     "Zen 4, from instruction tables; cautious bandwidth",
       .level = "avx512",
       .memory =
           {{{.bytes = 32 * KiB, .read = 150, .write = 80, .writeAround = 20},
             {.bytes = 1 * MiB, .read = 80, .write = 40, .writeAround = 20},
             {.bytes = 16 * MiB, .read = 25, .write = 15, .writeAround = 18},
             {.bytes = 0, .read = 12, .write = 7, .writeAround = 14}}},
       .core = {{{.gigahertz = 3,
                  .operationsPerCycle = 2,
                  .divideCycles = 3,
                  .squareRootCycles = 5,
                  .addLatency = 4,
                  .gatherLaneCycles = 1},
                 {.gigahertz = 3,
                  .operationsPerCycle = 2,
                  .divideCycles = 5,
                  .squareRootCycles = 6,
                  .addLatency = 4,
                  .gatherLaneCycles = 1,
                  .maskedStoreCycles = 4},
                 {.gigahertz = 2.8,
                  .loadsPerCycle = 2,
                  .storesPerCycle = 1,
                  .operationsPerCycle = 1,
                  .divideCycles = 10,
                  .squareRootCycles = 12,
                  .addLatency = 4,
                  .divideLatency = 17,
                  .squareRootLatency = 19,
                  .gatherLaneCycles = 1}}}},

      {.name = "generic-avx2",
       .provenance = "between Haswell and Zen 2, from instruction tables; "
                     "cautious bandwidth",
       .level = "avx2",
       .memory =
           {{{.bytes = 32 * KiB, .read = 120, .write = 70, .writeAround = 18},
             {.bytes = 256 * KiB, .read = 60, .write = 30, .writeAround = 18},
             {.bytes = 8 * MiB, .read = 28, .write = 16, .writeAround = 12},
             {.bytes = 0, .read = 12, .write = 7, .writeAround = 12}}},
       .core = {{{.gigahertz = 3,
                  .operationsPerCycle = 2,
                  .divideCycles = 5,
                  .squareRootCycles = 7,
                  .addLatency = 3,
                  .divideLatency = 13,
                  .gatherLaneCycles = 1},
                 // Haswell takes 1, Zen 2 takes 11: stores under a mask.
                 {.gigahertz = 3,
                  .operationsPerCycle = 2,
                  .divideCycles = 8,
                  .squareRootCycles = 10,
                  .addLatency = 5,
                  .divideLatency = 16,
                  .squareRootLatency = 18,
                  .gatherLaneCycles = 1.25,
                  .maskedLoadCycles = 0.5,
                  .maskedStoreCycles = 4},
                 {.gigahertz = 3,
                  .loadsPerCycle = 1,
                  .storesPerCycle = 0.5,
                  .operationsPerCycle = 1,
                  .divideCycles = 16,
                  .squareRootCycles = 20,
                  .addLatency = 5,
                  .divideLatency = 24,
                  .squareRootLatency = 28,
                  .gatherLaneCycles = 1.25,
                  .maskedLoadCycles = 1,
                  .maskedStoreCycles = 8}}}},

      {.name = "neoverse",
       .provenance = "between Neoverse N1, N2, V1 and V2, from their "
                     "optimization guides; cautious bandwidth",
       .processors = {{"0x41", 0, 0xd0c, 0xd0c},
                      {"0x41", 0, 0xd40, 0xd40},
                      {"0x41", 0, 0xd49, 0xd49},
                      {"0x41", 0, 0xd4f, 0xd4f}},
       .level = "neon",
       .memory =
           {{{.bytes = 64 * KiB, .read = 80, .write = 45, .writeAround = 25},
             {.bytes = 1 * MiB, .read = 50, .write = 30, .writeAround = 25},
             {.bytes = 16 * MiB, .read = 25, .write = 18, .writeAround = 18},
             {.bytes = 0, .read = 15, .write = 12, .writeAround = 15}}},
       .core = {{{.gigahertz = 2.8,
                  .loadsPerCycle = 2,
                  .storesPerCycle = 1,
                  .operationsPerCycle = 2,
                  .instructionsPerCycle = 4,
                  .divideCycles = 7,
                  .squareRootCycles = 7,
                  .addLatency = 4,
                  .divideLatency = 10,
                  .squareRootLatency = 10,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1},
                 {.gigahertz = 2.8,
                  .loadsPerCycle = 1,
                  .storesPerCycle = 0.5,
                  .operationsPerCycle = 1,
                  .instructionsPerCycle = 4,
                  .divideCycles = 14,
                  .squareRootCycles = 14,
                  .addLatency = 4,
                  .divideLatency = 17,
                  .squareRootLatency = 17,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1},
                 {.gigahertz = 2.8,
                  .loadsPerCycle = 0.5,
                  .storesPerCycle = 0.25,
                  .operationsPerCycle = 0.5,
                  .instructionsPerCycle = 4,
                  .divideCycles = 28,
                  .squareRootCycles = 28,
                  .addLatency = 4,
                  .divideLatency = 31,
                  .squareRootLatency = 31,
                  .loadLatency = 4,
                  .gatherLaneCycles = 1}}}},

      // Last: what nothing else describes.
      {.name = "generic-x86-64",
       .provenance = "cautious figures for an x86-64 processor",
       .level = "x86-64",
       .memory =
           {{{.bytes = 32 * KiB, .read = 60, .write = 40, .writeAround = 15},
             {.bytes = 256 * KiB, .read = 40, .write = 25, .writeAround = 15},
             {.bytes = 8 * MiB, .read = 20, .write = 12, .writeAround = 10},
             {.bytes = 0, .read = 10, .write = 6, .writeAround = 10}}},
       .core = {{{.gigahertz = 3,
                  .operationsPerCycle = 2,
                  .divideCycles = 5,
                  .squareRootCycles = 7,
                  .addLatency = 4,
                  .gatherLaneCycles = 1},
                 {.gigahertz = 3,
                  .operationsPerCycle = 1,
                  .divideCycles = 10,
                  .squareRootCycles = 14,
                  .addLatency = 4,
                  .divideLatency = 17,
                  .squareRootLatency = 23,
                  .gatherLaneCycles = 1.25,
                  .maskedLoadCycles = 1,
                  .maskedStoreCycles = 4},
                 {.gigahertz = 3,
                  .loadsPerCycle = 1,
                  .storesPerCycle = 0.5,
                  .operationsPerCycle = 1,
                  .divideCycles = 20,
                  .squareRootCycles = 28,
                  .addLatency = 4,
                  .divideLatency = 27,
                  .squareRootLatency = 37,
                  .gatherLaneCycles = 1.25}}}},
  };
}

} // namespace

const std::vector<Machine> &knownMachines() {
  static const std::vector<Machine> machines = makeMachines();
  return machines;
}

const Machine *findMachine(const Processor &processor) {
  for (const Machine &machine : knownMachines())
    for (const ProcessorRange &range : machine.processors)
      if (range.contains(processor))
        return &machine;
  return nullptr;
}

const Machine &genericMachine(Isa isa) {
  // A level that no row describes is described by the one it builds on.
  const Target &target = getTarget(isa);
  for (int level = target.level; level >= 0; --level)
    for (Isa lower : {Isa::X86_64, Isa::Avx2, Isa::Avx512, isa})
      for (const Machine &machine : knownMachines())
        if (const Target &row = getTarget(lower);
            row.architecture == target.architecture && row.level == level &&
            machine.level == row.name)
          return machine;
  return knownMachines().back();
}

} // namespace tessera
