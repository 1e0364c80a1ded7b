//===- predicted_time.cpp - Times of stages with their memory -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/predicted_time.h"

#include "search/repeated_reads.h"

#include <algorithm>

namespace tessera {

TimeTerms predictTime(const StagePrice &price, double programs,
                      const Traffic &traffic, const Target &target,
                      const Machine &machine) {
  TimeTerms terms;
  double cycle = 1 / machine.costs(target).gigahertz;
  terms.throughput = price.throughputCycles * programs * cycle;
  terms.waiting =
      std::max(0.0, price.cycles - price.throughputCycles) * programs * cycle;
  const MemoryLevel &far =
      machine.levelOf((traffic.read + traffic.written) / cacheShare);
  const double around =
      std::min(price.counts.aroundBytes * programs, traffic.written);
  terms.memory = traffic.read / far.read +
                 (traffic.written - around) / far.write +
                 around / far.writeAround;
  if (&far > &machine.memory[1])
    terms.memory += price.jumps * far.jumpBytes / far.read;
  // Vectors that wait for two lines, but for those that a prefetch asked for.
  if (price.counts.crossings > 0 && traffic.read > 0) {
    const double loaded = price.counts.loadedBytes * programs,
                 first = std::min(1.0, traffic.read / std::max(loaded, 1.0)),
                 asked = std::min(1.0, price.counts.prefetchedBytes * programs /
                                           traffic.read);
    terms.memory += price.counts.crossings * programs * first * (1 - asked) *
                    far.crossingCycles * cycle;
  }
  // What a program reads again is where its data stay between the reads, beside
  // those of the programs that advance with it and what all of them read.
  const double each = std::max(programs, 1.0) * price.blocks;
  double touched = (traffic.read + traffic.written) / each * price.together +
                   traffic.readByEach / price.blocks;
  if (price.blockBytes > 0)
    touched = std::min(touched, price.blockBytes);
  const MemoryLevel &near = machine.levelOf(touched);
  double once = traffic.read;
  // Blocks that one program has gone through, others find where all of the
  // blocks have room.
  if (price.blocks > 1 && traffic.readByPrograms > once) {
    once = traffic.readByPrograms;
    const MemoryLevel &between =
        machine.levelOf(once / std::max(programs, 1.0) * price.together);
    terms.repeatedReads += (once - traffic.read) / between.read;
  }
  // What contractions read again is known in detail.
  double known = 0;
  for (const RepeatedRead &read : price.repeats) {
    known += read.bytes;
    terms.repeatedReads += timeOf(read, machine) * programs;
  }
  if (&near != &machine.memory[0]) {
    double again =
        std::max(0.0, (price.counts.loadedBytes - known) * programs - once);
    terms.repeatedReads += again / near.read;
  }
  // Lines that wait for the next program need room beside all that: those that
  // find none in the nearest cache come a second time, from the next one, as do
  // those that they push out. A cache is not used to its last line.
  constexpr double usable = 0.9;
  const double ahead = price.counts.prefetchedBytes;
  if (ahead > 0) {
    const double lines = ahead * price.together,
                 room = usable * double(machine.memory[0].bytes) - touched;
    const double homeless = std::clamp((lines - room) / lines, 0.0, 1.0);
    // What memory takes hides them as it hides computation.
    const double shown =
        &far == &machine.memory.back() ? machine.notOverlapped : 1;
    terms.repeatedReads +=
        shown * homeless * ahead * programs / machine.memory[1].read;
  }
  double computation = terms.throughput + terms.waiting;
  double memory = terms.memory + terms.repeatedReads;
  double beside = computation * (1 - price.busyShare);
  terms.total = std::max(beside, memory) +
                machine.notOverlapped * std::min(beside, memory) +
                computation * price.busyShare;
  // A program's first reading waits while its other nests leave the way to
  // memory idle. Prefetches use that, but for what the core would come to in
  // time by itself, its window being that long.
  double beyond =
      std::max(0.0, 1 - machine.costs(target).reorderWindow /
                            std::max(price.counts.instructions, 1.0));
  if (price.nestCycles.size() > 1)
    terms.savedAhead =
        far.savedAhead *
        std::min(beyond * std::min(ahead * programs, traffic.read) / far.read,
                 computation);
  terms.total -= terms.savedAhead;
  return terms;
}

std::vector<TimeTerms> predictStages(const std::vector<StagePrice> &prices,
                                     const std::vector<int64_t> &programs,
                                     const Traffic &traffic,
                                     const Target &target,
                                     const Machine &machine) {
  auto moved = [&](size_t i) {
    return (prices[i].counts.loadedBytes + prices[i].counts.storedBytes) *
           double(programs[i]);
  };
  double all = 0;
  for (size_t i = 0; i < prices.size(); ++i)
    all += moved(i);
  std::vector<TimeTerms> times;
  for (size_t i = 0; i < prices.size(); ++i) {
    // Of what the kernel moves, a stage moves what is its share of all moves.
    double share = all > 0 ? moved(i) / all : 0;
    times.push_back(predictTime(prices[i], double(programs[i]),
                                {traffic.read * share, traffic.written * share,
                                 traffic.readByPrograms * share,
                                 traffic.readByEach * share},
                                target, machine));
  }
  return times;
}

} // namespace tessera
