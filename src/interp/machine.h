//===- interp/machine.h - State of a running kernel -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is translated once into blocks of closures over numbered slots (one
// per SSA value) and numbered dimensions; the machine holds what they work on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_MACHINE_H
#define TESSERA_INTERP_MACHINE_H

#include "interp/interpreter.h"
#include "interp/memory.h"
#include "interp/race.h"
#include "interp/tile_value.h"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace tessera::interp {

using Slot = unsigned;

/// One operation; false stops the run with context.error().
struct Instruction {
  std::function<bool()> run;
  SourcePosition where;
};

struct Block {
  std::vector<Instruction> instructions;
  /// What the block's terminator yields.
  llvm::SmallVector<Slot, 4> yields;
};

class Machine {
public:
  Machine(const InterpretOptions &options, InterpretReport &report)
      : options(options), report(report),
        context(options.mode == Mode::Oracle, options.stepLimit,
                options.memoryLimit),
        memory(context) {
    if (options.checkRaces)
      races.emplace();
  }

  const InterpretOptions &options;
  InterpretReport &report;
  Context context;
  Memory memory;
  std::optional<RaceDetector> races;
  /// Where each access site of the program stands, by site number minus one.
  std::vector<SourcePosition> sites;
  /// Pairs of sites already in the report.
  std::set<uint64_t> reportedConflicts;
  /// The translated regions; closures refer to them.
  std::deque<Block> blocks;
  std::vector<Tile> slots;
  std::vector<int64_t> dimExtents;

  bool run(const Block &block) {
    for (const Instruction &instruction : block.instructions) {
      context.where = &instruction.where;
      if (!context.charge(1) || !instruction.run())
        return false;
    }
    return true;
  }

  Extents extentsOf(llvm::ArrayRef<unsigned> dims) const {
    Extents extents;
    for (unsigned dim : dims)
      extents.push_back(dimExtents[dim]);
    return extents;
  }

  bool setIndex(Slot slot, int64_t value) {
    if (!slots[slot].reset(context, Kind::I64, {}))
      return false;
    slots[slot].ints()[0] = value;
    return true;
  }

  /// The scalar in `slot`; in Oracle mode an unknown one makes control flow
  /// undecided.
  int64_t controlValue(Slot slot) {
    context.undecidedControl |= slots[slot].isUnknown(0);
    return slots[slot].ints()[0];
  }

  /// The yielded values, sharing their storage.
  llvm::SmallVector<Tile, 4> yielded(const Block &block) const {
    llvm::SmallVector<Tile, 4> values;
    for (Slot slot : block.yields)
      values.push_back(slots[slot]);
    return values;
  }
};

} // namespace tessera::interp

#endif // TESSERA_INTERP_MACHINE_H
