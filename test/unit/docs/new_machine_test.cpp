//===- docs/new_machine_test.cpp - The row of docs/howto/new-machine.md ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page's row, verbatim: it is plausible, describes the processors that it
// names and no others, and rows are mentioned in no other source.
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "target/host_machine.h"
#include "target/machine_figures.h"

#include <filesystem>

namespace tessera {
namespace {

constexpr int64_t KiB = 1 << 10;
constexpr int64_t MiB = 1 << 20;

const std::vector<Machine> &rows() {
  static const std::vector<Machine> machines = {
      // snippet: row
      {.name = "zen3",
       .provenance = "LLVM's scheduling model; bandwidth of zen4, less a tenth",
       .processors = {{"AuthenticAMD", 25, 0x00, 0x0f},
                      {"AuthenticAMD", 25, 0x20, 0x5f}},
       .memory =
           {{{.bytes = 32 * KiB, .read = 196, .write = 106, .writeAround = 20},
             {.bytes = 512 * KiB, .read = 106, .write = 51, .writeAround = 25},
             {.bytes = 32 * MiB, .read = 89, .write = 43, .writeAround = 25},
             {.bytes = 0, .read = 21, .write = 11, .writeAround = 25}}},
       .core = {{{.gigahertz = 3.4,
                  .instructionsPerCycle = 6,
                  .divideCycles = 3.5,
                  .squareRootCycles = 5,
                  .addLatency = 3,
                  .loadLatency = 4},
                 {.gigahertz = 3.4,
                  .instructionsPerCycle = 6,
                  .divideCycles = 3.5,
                  .squareRootCycles = 5,
                  .loadLatency = 4,
                  .maskedStoreCycles = 11},
                 // No such vectors: two of 256 bits.
                 {.gigahertz = 3.4,
                  .loadsPerCycle = 1,
                  .storesPerCycle = 0.5,
                  .operationsPerCycle = 1,
                  .instructionsPerCycle = 6,
                  .divideCycles = 7,
                  .squareRootCycles = 10,
                  .loadLatency = 4,
                  .maskedStoreCycles = 22}}}},
      // end snippet
  };
  return machines;
}

/// As the table's own function, over the page's row.
std::string rowOf(const Processor &processor) {
  for (const Machine &machine : rows())
    for (const ProcessorRange &range : machine.processors)
      if (range.contains(processor))
        return machine.name;
  return "";
}

TEST(NewMachine, DescribesItsProcessors) {
  // snippet: detection
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x01, 1, ""}), "zen3");
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x21, 0, ""}), "zen3");
  // end snippet
  EXPECT_EQ(implausibleFigure(rows().front()), "");
  for (const ProcessorRange &range : rows().front().processors)
    for (int model = range.firstModel; model <= range.lastModel; ++model)
      EXPECT_EQ(findMachine({range.vendor, range.family, model, 0, ""}),
                nullptr)
          << model;
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x11, 1, ""}), "");
  // What the page says of the time before.
  MachineChoice before = chooseMachine({"AuthenticAMD", 25, 0x01, 1, ""}, {},
                                       genericMachine(Isa::Avx2), "");
  EXPECT_EQ(before.machine.name, "generic-avx2");
  EXPECT_EQ(before.reason, "no row describes this processor");
}

TEST(NewMachine, RowsAreMentionedInOnePlace) {
  namespace fs = std::filesystem;
  fs::path root(TESSERA_SOURCE_DIR);
  for (const char *folder : {"include", "src", "kernels", "tools", "bench"})
    for (const auto &entry : fs::recursive_directory_iterator(root / folder)) {
      std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp" && extension != ".inc")
        continue;
      std::string path = fs::relative(entry.path(), root).generic_string();
      // The names that machine.h gives as examples are in comments.
      if (path == "src/target/machine.cpp" || path == "src/target/machine.h")
        continue;
      std::string text = docs::readSource(path);
      for (const Machine &machine : knownMachines())
        EXPECT_EQ(text.find("\"" + machine.name + "\""), std::string::npos)
            << path << " mentions " << machine.name;
    }
}

} // namespace
} // namespace tessera
