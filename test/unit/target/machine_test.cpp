//===- machine_test.cpp - Tests of machine descriptions -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/timing.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <unistd.h>

using namespace tessera;
using testing::HasSubstr;

namespace {

std::string rowOf(const Processor &processor) {
  const Machine *row = findMachine(processor);
  return row ? row->name : "";
}

/// A folder of the test's own, as the system's folder of caches.
class CacheFolder {
public:
  CacheFolder()
      : path(std::filesystem::temp_directory_path() /
             ("tessera-caches-" + std::to_string(::getpid()))) {}
  ~CacheFolder() { std::filesystem::remove_all(path); }

  void add(const std::string &level, const std::string &type,
           const std::string &size, const std::string &sharers) {
    std::filesystem::path cache = path / ("index" + std::to_string(caches++));
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << "\n";
    std::ofstream(cache / "type") << type << "\n";
    std::ofstream(cache / "size") << size << "\n";
    std::ofstream(cache / "shared_cpu_list") << sharers << "\n";
  }
  CacheSizes read() const { return readCacheSizes(path.string()); }

private:
  std::filesystem::path path;
  int caches = 0;
};

} // namespace

TEST(Machine, RowsAreCompleteAndPlausible) {
  std::set<std::string> names, levels;
  for (const Machine &machine : knownMachines()) {
    EXPECT_EQ(implausibleFigure(machine), "") << machine.name;
    EXPECT_FALSE(machine.provenance.empty()) << machine.name;
    EXPECT_TRUE(names.insert(machine.name).second) << machine.name;
    EXPECT_TRUE(!machine.processors.empty() || !machine.level.empty())
        << machine.name << " describes nothing";
    if (!machine.level.empty()) {
      EXPECT_TRUE(levels.insert(machine.level).second) << machine.level;
    }
  }
}

TEST(Machine, EveryProcessorIsInOneRow) {
  for (const Machine &machine : knownMachines())
    for (const ProcessorRange &range : machine.processors) {
      EXPECT_LE(range.firstModel, range.lastModel) << machine.name;
      for (int model = range.firstModel; model <= range.lastModel; ++model) {
        int rows = 0;
        for (const Machine &other : knownMachines())
          for (const ProcessorRange &theirs : other.processors)
            rows += theirs.contains({range.vendor, range.family, model, 0, ""});
        EXPECT_EQ(rows, 1) << range.vendor << " " << model;
      }
    }
}

TEST(Machine, DetectsProcessors) {
  // EPYC 9B14, Ryzen 7950X, Bergamo.
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x11, 1, ""}), "zen4");
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x61, 2, ""}), "zen4");
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0xa0, 2, ""}), "zen4");
  // Zen 3 has the family of Zen 4, Zen 5 has another one.
  EXPECT_EQ(rowOf({"AuthenticAMD", 25, 0x21, 0, ""}), "");
  EXPECT_EQ(rowOf({"AuthenticAMD", 26, 0x11, 0, ""}), "");
  EXPECT_EQ(rowOf({"GenuineIntel", 6, 143, 8, ""}), "sapphire-rapids");
  EXPECT_EQ(rowOf({"GenuineIntel", 6, 207, 2, ""}), "sapphire-rapids");
  EXPECT_EQ(rowOf({"GenuineIntel", 6, 106, 6, ""}), "");
  EXPECT_EQ(rowOf({"AuthenticAMD", 6, 143, 8, ""}), "");
  EXPECT_EQ(rowOf({"0x41", 0, 0xd0c, 0x31, ""}), "neoverse");
  EXPECT_EQ(rowOf({}), "");
}

TEST(Machine, EveryLevelHasAGenericDescription) {
  for (Isa isa : {Isa::X86_64, Isa::Avx2, Isa::Avx512})
    EXPECT_EQ(genericMachine(isa).level, name(isa));
}

TEST(Machine, ChoosesTheRowThenTheGenericOne) {
  const Machine &generic = genericMachine(Isa::Avx2);
  MachineChoice known =
      chooseMachine({"AuthenticAMD", 25, 0x11, 1, ""}, {}, generic, "");
  EXPECT_EQ(known.machine.name, "zen4");
  EXPECT_EQ(known.reason, "the row of this processor");
  EXPECT_EQ(known.machine.memory[1].bytes, 1 << 20);
  MachineChoice unknown =
      chooseMachine({"AuthenticAMD", 23, 0x31, 0, ""}, {}, generic, "");
  EXPECT_EQ(unknown.machine.name, "generic-avx2");
  EXPECT_EQ(unknown.reason, "no row describes this processor");
  EXPECT_EQ(known.warning + unknown.warning, "");
}

TEST(Machine, ReadsCacheSizes) {
  CacheFolder folder;
  folder.add("1", "Data", "48K", "0-1");
  folder.add("1", "Instruction", "32K", "0-1");
  folder.add("2", "Unified", "2048K", "0-1");
  folder.add("3", "Unified", "32M", "0-3,8,10-12");
  CacheSizes sizes = folder.read();
  EXPECT_EQ(sizes.bytes, (std::array<int64_t, 3>{48 << 10, 2 << 20, 32 << 20}));
  EXPECT_EQ(sizes.sharers, 8);
}

TEST(Machine, NonsenseInTheCacheFolderIsNoSize) {
  CacheFolder folder;
  folder.add("one", "Data", "48K", "0");
  folder.add("7", "Data", "48K", "0");
  folder.add("2", "Unified", "", "");
  folder.add("3", "Unified", "99999999999999999999M", "9-0,,x,-5");
  CacheSizes sizes = folder.read();
  EXPECT_EQ(sizes.bytes, (std::array<int64_t, 3>{}));
  EXPECT_GE(sizes.sharers, 1);
  EXPECT_EQ(readCacheSizes("/nowhere").bytes, (std::array<int64_t, 3>{}));
}

TEST(Machine, TakesBelievableCacheSizesAlone) {
  const Machine &row = *findMachine({"AuthenticAMD", 25, 0x11, 1, ""});
  auto sizes = [&](std::array<int64_t, 3> bytes, int sharers) {
    Machine machine = withCacheSizes(row, {bytes, sharers});
    EXPECT_EQ(implausibleFigure(machine), "");
    return std::array<int64_t, 3>{machine.memory[0].bytes,
                                  machine.memory[1].bytes,
                                  machine.memory[2].bytes};
  };
  using Sizes = std::array<int64_t, 3>;
  constexpr int64_t KiB = 1 << 10, MiB = 1 << 20;
  EXPECT_EQ(sizes({}, 1), (Sizes{32 * KiB, 1 * MiB, 32 * MiB}));
  EXPECT_EQ(sizes({48 * KiB, 2 * MiB, 96 * MiB}, 16),
            (Sizes{48 * KiB, 2 * MiB, 96 * MiB}));
  // A guest of two processors that sees the whole cache of its host.
  EXPECT_EQ(sizes({32 * KiB, 1 * MiB, 260 * MiB}, 2),
            (Sizes{32 * KiB, 1 * MiB, 32 * MiB}));
  EXPECT_EQ(sizes({-1, 7, INT64_MAX}, 0), (Sizes{32 * KiB, 1 * MiB, 32 * MiB}));
  // What a cache has more, it has in more ways.
  EXPECT_EQ(withCacheSizes(row, {{48 * KiB, 2 * MiB, 0}, 1}).memory[0].ways,
            12);
  EXPECT_EQ(withCacheSizes(row, {{48 * KiB, 2 * MiB, 0}, 1}).memory[1].ways,
            16);
  // Levels stay in order.
  EXPECT_EQ(sizes({64 * KiB, 64 * MiB, 0}, 1),
            (Sizes{64 * KiB, 64 * MiB, 64 * MiB}));
}

TEST(Machine, NamesWhatIsImplausible) {
  Machine machine = knownMachines().front();
  machine.core[1].divideCycles = 0;
  EXPECT_EQ(implausibleFigure(machine),
            "divideCycles of 256 is 0, expected 0.1 to 500 cycles");
  machine = knownMachines().front();
  machine.memory[3].read = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(implausibleFigure(machine), HasSubstr("read of memory is nan"));
  machine = knownMachines().front();
  machine.memory[1].bytes = 16 << 10;
  EXPECT_THAT(implausibleFigure(machine), HasSubstr("bytes of L2 is 16384"));
  machine.memory[1].bytes = 1 << 20;
  machine.memory[3].bytes = 1;
  EXPECT_THAT(implausibleFigure(machine), HasSubstr("bytes of memory is 1"));
}

TEST(Machine, HashIsOfTheFigures) {
  Machine one = knownMachines().front(), other = one;
  EXPECT_EQ(contentHash(one), contentHash(other));
  other.provenance = "elsewhere";
  EXPECT_EQ(contentHash(one), contentHash(other));
  for (const Figure<CoreCosts> &figure : coreFigures()) {
    other = one;
    other.core[2].*figure.value += 1;
    EXPECT_NE(contentHash(one), contentHash(other)) << figure.name;
  }
}

TEST(Machine, TheHostHasOne) {
  const Machine &machine = hostMachine();
  EXPECT_EQ(implausibleFigure(machine), "");
  EXPECT_EQ(&machine, &hostMachine());
  EXPECT_EQ(hostMachineChoice().warning, "");
  EXPECT_EQ(contentHash(machine),
            contentHash(uncalibratedHostMachine().machine))
      << "the tests use no calibration";
  // Cheap: at most 0.3 ms where nothing disturbs.
  int64_t best = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    support::Stopwatch watch;
    chooseMachine(hostProcessor(), hostCacheSizes(), machine, "");
    best = std::min(best, watch.nanoseconds());
  }
  EXPECT_LT(best, 300'000);
}
