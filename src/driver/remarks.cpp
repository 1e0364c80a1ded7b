//===- remarks.cpp - What an author could change --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/remarks.h"

#include "search/short_code.h"

#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"

namespace tessera {

namespace {

/// Kernels shorter than this have nothing to gain from more threads.
constexpr double worthThreadsNanoseconds = 20000;

class Remarks {
public:
  Remarks(const PipelineResult &compiled, const ExecutableInfo &info,
          tile::Tier tier)
      : compiled(compiled), info(info), tier(tier) {}

  std::vector<Reason> run() {
    for (const StagePlan &stage : compiled.plan.stages)
      for (const NestPlan &nest : stage.nests)
        onNest(nest);
    onAccesses();
    onBuffers();
    onGrids();
    onChecks();
    onTier();
    onLength();
    return std::move(remarks);
  }

private:
  void add(const char *code, std::string text) {
    Reason remark{code, std::move(text)};
    if (llvm::none_of(remarks, [&](const Reason &known) {
          return known.code == remark.code && known.text == remark.text;
        }))
      remarks.push_back(std::move(remark));
  }

  static bool has(const NestPlan &nest, llvm::StringRef code) {
    return llvm::any_of(nest.reasons, [&](const Reason &reason) {
      return reason.code == code;
    });
  }

  /// Why a nest takes its elements one by one.
  void onNest(const NestPlan &nest) {
    if (!nest.vectorDim.empty() || nest.space.empty())
      return;
    if (has(nest, "scalar.sequential"))
      add("remark.sequential",
          fmt::format("'{}' takes one element after another by its "
                      "definition; a load with computed indices can fill "
                      "lanes where a scatter cannot",
                      nest.roots));
    else if (has(nest, "vector.ordered"))
      add("remark.ordered",
          fmt::format("'{}' takes one element after another, since its order "
                      "is pinned; unordered, its elements would fill lanes",
                      nest.roots));
    else if (has(nest, "vector.strided"))
      add("remark.strided",
          fmt::format("'{}' takes one element after another: along no "
                      "dimension are the elements of its arrays adjacent; an "
                      "array whose last axis is the one that is looped over, "
                      "with stride 1, can be loaded in vectors",
                      nest.roots));
    else if (has(nest, "vector.extent"))
      add("remark.extent",
          fmt::format("'{}' takes one element after another: its extents are "
                      "1 or depend on data; blocks of constant extent with a "
                      "mask can fill lanes",
                      nest.roots));
  }

  void onAccesses() {
    const AccessCounts &counts = compiled.facts.accesses;
    if (counts.gathers + counts.scatters > 0)
      add("remark.gather",
          fmt::format("{} accesses in the code touch elements that lie apart, "
                      "which costs about as much as one access for each lane; "
                      "their index is read from an array, or the lanes run "
                      "along an axis whose stride is not 1",
                      counts.gathers + counts.scatters));
    const BoundsFact &bounds = compiled.facts.bounds;
    if (bounds.checked > 0)
      add("remark.bounds",
          fmt::format("{} of {} axes of accesses are compared with their "
                      "extents; none has to be where blocks divide the "
                      "extents, or where an access is promised to be in "
                      "bounds",
                      bounds.checked, bounds.axes));
  }

  void onBuffers() {
    const int64_t nearBytes = compiled.machine->memory[0].bytes;
    for (const auto &[what, bytes] : compiled.plan.buffers)
      if (bytes > nearBytes)
        add("remark.buffer",
            fmt::format("a value of {} bytes ({}) stays in memory between "
                        "loops, more than the {} of the first-level cache; "
                        "programs over smaller blocks keep less",
                        bytes, what, nearBytes));
  }

  void onGrids() {
    for (const auto &[number, stage] : llvm::enumerate(compiled.plan.stages)) {
      const size_t first =
          compiled.predicted.size() - compiled.plan.stages.size();
      const double nanoseconds = compiled.predicted[first + number].total;
      if (stage.programs == 1 && nanoseconds > worthThreadsNanoseconds)
        add("remark.threads",
            fmt::format("{} is one program of {:.3g} us, which no second "
                        "thread can share; a parallel dimension would cut it",
                        info.stages[info.stages.size() -
                                    compiled.plan.stages.size() + number]
                            .symbol,
                        nanoseconds * 1e-3));
    }
  }

  void onChecks() {
    if (info.stages.size() > compiled.plan.stages.size())
      add("remark.validation",
          "indices that are read from arrays are checked before anything is "
          "written, in a pass of its own; a caller who knows them to be right "
          "can compile without it");
  }

  void onTier() {
    if (tier == tile::Tier::Strict && !compiled.facts.functions.empty())
      add("remark.tier",
          "functions are evaluated in the tier 'strict'; the tier 'default' "
          "has shorter ones with a stated error");
  }

  /// What was done to compile very much code in a bounded time.
  void onLength() {
    const char *advice = "; several kernels with arrays between them would be "
                         "compiled as others are";
    if (compiled.math.calls > 0)
      add("remark.calls",
          fmt::format("functions are called, {} times in the code, instead of "
                      "evaluated in their place: that would take {} "
                      "instructions, more than {}{}",
                      compiled.math.calls, compiled.math.inlined,
                      mostInlinedMath, advice));
    if (compiled.isShort)
      add("remark.short",
          fmt::format("loops have fewer vectors per iteration than they would "
                      "have otherwise: the code would have more than {} "
                      "instructions and addresses, which takes long to "
                      "compile{}",
                      longestDefault, advice));
    if (compiled.isLong)
      add("remark.long",
          fmt::format("the code is hardly optimized: it has {} instructions "
                      "and addresses, or a long chain of dependent "
                      "operations; more than {}, or chains of more than {}, "
                      "would take long to compile{}",
                      compiled.emitted, longestOptimized, longChain, advice));
  }

  const PipelineResult &compiled;
  const ExecutableInfo &info;
  tile::Tier tier;
  std::vector<Reason> remarks;
};

} // namespace

std::vector<Reason> remarksOn(const PipelineResult &compiled,
                              const ExecutableInfo &info, tile::Tier tier) {
  return Remarks(compiled, info, tier).run();
}

} // namespace tessera
