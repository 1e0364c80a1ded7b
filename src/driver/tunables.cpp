//===- tunables.cpp - Choosing the values of tunables ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/tunables.h"

#include "analysis/dims.h"
#include "driver/call_time.h"
#include "dsl/trace.h"
#include "search/short_code.h"
#include "target/machine.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera {

namespace {

/// Combinations that are looked at, and the operations of all their kernels.
constexpr size_t mostCombinations = 16;
constexpr int64_t mostOperations = 10000;
/// What a combination has to be predicted to take of the first one's time: the
/// price of a default plan knows little of the caches between the cores.
constexpr double margin = 0.9;

/// Where threads wait for others for so much of their time with the best of the
/// author's candidates, a few extents of blocks are tried that give each thread
/// the same number of programs, up to a bound; multiples of a unit where that
/// makes as many blocks.
constexpr double unevenness = 1.1;
constexpr size_t mostBalanced = 4;
constexpr int64_t mostRounds = 4, vectorUnit = 16;

using Values = std::vector<std::pair<std::string, int64_t>>;

/// Every combination of the candidates, the first of all first.
std::vector<Values> combinationsOf(const std::vector<TunableInfo> &open) {
  std::vector<Values> all{{}};
  for (const TunableInfo &tunable : open) {
    std::vector<Values> longer;
    for (const Values &values : all)
      for (int64_t candidate : tunable.candidates) {
        longer.push_back(values);
        longer.back().emplace_back(tunable.name, candidate);
      }
    all = std::move(longer);
    if (all.size() > mostCombinations)
      all.resize(mostCombinations + 1);
  }
  return all;
}

/// What was found of a combination.
struct Looked {
  Values values;
  /// Extents of the grid, where the kernel is one; empty elsewhere.
  std::vector<int64_t> grid;
  /// Extents of all dimensions, as far as they are constant.
  std::vector<int64_t> dims;
  double nanoseconds = 0;
};

/// The extents of the only grid of a specialized kernel.
std::vector<int64_t> gridOf(tile::KernelOp kernel) {
  SmallVector<tile::ParallelOp> grids(
      kernel.getBody().front().getOps<tile::ParallelOp>());
  std::vector<int64_t> extents;
  const DimTable dims(kernel);
  if (grids.size() == 1)
    for (StringAttr dim : grids[0].getDims().getAsRange<StringAttr>())
      if (std::optional<int64_t> extent = dims.extent(dim))
        extents.push_back(*extent);
  return extents;
}

std::vector<int64_t> extentsOf(tile::KernelOp kernel) {
  std::vector<int64_t> extents;
  for (auto dim : kernel.getBody().front().getOps<tile::DimOp>())
    if (std::optional<int64_t> extent = constantIndex(dim.getExtent()))
      extents.push_back(*extent);
  return extents;
}

/// Blocks of a dimension of the grid, whose extent a tunable gives.
struct BlockTunable {
  size_t number = 0, axis = 0;
  /// What the blocks cover, as their numbers tell.
  int64_t covered = 0;
};

/// The tunables that are extents of blocks: where one alone differs, one
/// dimension of the grid has as many blocks as cover the same extent.
std::vector<BlockTunable> blockTunables(const std::vector<Looked> &all) {
  std::vector<BlockTunable> found;
  for (size_t number = 0; number < all[0].values.size(); ++number) {
    std::optional<size_t> axis;
    bool isBlock = true;
    int64_t least = 1, most = std::numeric_limits<int64_t>::max();
    for (const Looked &x : all)
      for (const Looked &y : all) {
        bool differsAlone = x.grid.size() == y.grid.size();
        for (size_t i = 0; i < x.values.size(); ++i)
          differsAlone &= (x.values[i] == y.values[i]) != (i == number);
        for (size_t i = 0; differsAlone && i < x.grid.size(); ++i)
          if (x.grid[i] != y.grid[i]) {
            isBlock &= axis.value_or(i) == i;
            axis = i;
          }
      }
    if (!axis || !isBlock)
      continue;
    for (const Looked &one : all) {
      const int64_t size = one.values[number].second;
      int64_t end = 0;
      isBlock = isBlock && *axis < one.grid.size() && size > 0 &&
                !__builtin_mul_overflow(one.grid[*axis], size, &end);
      most = std::min(most, end);
      least = std::max(least, end - size + 1);
    }
    if (!isBlock || least > most)
      continue;
    int64_t covered = 0;
    for (int64_t extent : all[0].dims)
      if (extent >= least && extent <= most)
        covered = std::max(covered, extent);
    found.push_back({number, *axis, covered > 0 ? covered : most});
  }
  return found;
}

/// Extents of blocks, near those of the best combination, that give every
/// thread as many programs.
std::vector<Values> balanced(const std::vector<Looked> &all, const Looked &best,
                             int threads) {
  const std::vector<BlockTunable> tunables = blockTunables(all);
  int64_t programs = 1, others = 1;
  for (size_t axis = 0; axis < best.grid.size(); ++axis) {
    programs *= best.grid[axis];
    if (llvm::none_of(tunables, [&](const BlockTunable &tunable) {
          return tunable.axis == axis;
        }))
      others *= best.grid[axis];
  }
  // Fewer programs than threads share their reductions, or are too short.
  if (tunables.empty() || tunables.size() > 2 || programs < threads ||
      programs > mostRounds * int64_t(threads))
    return {};
  // Threads are even enough.
  const int64_t rounds = (programs + threads - 1) / threads;
  if (double(rounds * threads) < unevenness * double(programs))
    return {};
  std::vector<std::pair<double, Values>> found;
  auto add = [&](ArrayRef<int64_t> counts) {
    Values values = best.values;
    double distance = 0;
    for (auto [tunable, count] : llvm::zip(tunables, counts)) {
      auto blocksOf = [&](int64_t size) {
        return (tunable.covered + size - 1) / size;
      };
      int64_t size = (tunable.covered + count - 1) / count;
      const int64_t aligned = (size + vectorUnit - 1) / vectorUnit * vectorUnit;
      if (blocksOf(aligned) == count)
        size = aligned;
      if (blocksOf(size) != count)
        return;
      distance += std::abs(
          std::log(double(size) / double(values[tunable.number].second)));
      values[tunable.number].second = size;
    }
    if (llvm::none_of(all,
                      [&](const Looked &one) { return one.values == values; }))
      found.emplace_back(distance, std::move(values));
  };
  for (int64_t round = 1; round <= mostRounds; ++round) {
    if (round * threads % others != 0)
      continue;
    const int64_t wanted = round * threads / others;
    if (tunables.size() == 1)
      add({wanted});
    for (int64_t count = 1; tunables.size() == 2 && count <= wanted; ++count)
      if (wanted % count == 0)
        add({count, wanted / count});
  }
  std::sort(found.begin(), found.end());
  std::vector<Values> nearest;
  for (auto &[distance, values] : found)
    if (nearest.size() < mostBalanced)
      nearest.push_back(std::move(values));
  return nearest;
}

} // namespace

std::optional<TunableChoice>
chooseTunables(const Kernel &source, const TraceOptions &options,
               const std::vector<TunableInfo> &tunables, MLIRContext &context,
               const CompileRequest &request) {
  std::vector<TunableInfo> open;
  for (const TunableInfo &tunable : tunables)
    if (options.tunables.count(tunable.name) == 0 &&
        tunable.candidates.size() > 1)
      open.push_back(tunable);
  if (open.empty())
    return std::nullopt;
  const Machine &machine = machineOf(request);
  TunableChoice choice;
  size_t chosen = 0;
  double least = 0;
  std::vector<Looked> all;
  size_t best = 0;
  int64_t operations = 0;
  // Fails with the first combination, which is the author's own.
  auto look = [&](const Values &values) {
    TunableCandidate &candidate = choice.candidates.emplace_back();
    candidate.values = values;
    TraceOptions with = options;
    for (const auto &[name, value] : values)
      with.tunables[name] = value;
    auto fails = [&](const Error &error) {
      candidate.code = error.code;
      return choice.module.get() != ModuleOp();
    };
    Result<OwningOpRef<ModuleOp>> traced = trace(source, context, with);
    if (!traced)
      return fails(traced.error());
    OwningOpRef<ModuleOp> work = (*traced)->clone();
    tile::KernelOp kernel = *work->getOps<tile::KernelOp>().begin();
    operations += sizeOf(kernel).operations;
    Result<std::vector<StagePrediction>> stages =
        predictStagesForCpu(kernel, request, PlanChoices());
    if (!stages)
      return fails(stages.error());
    candidate.nanoseconds = callTime(*stages, request.threads, machine);
    candidate.code = "cost.higher";
    all.push_back(
        {values, gridOf(kernel), extentsOf(kernel), *candidate.nanoseconds});
    if (choice.module && *candidate.nanoseconds >= margin * least) {
      if (*candidate.nanoseconds <= least)
        candidate.code = "cost.equal";
      return true;
    }
    chosen = choice.candidates.size() - 1;
    best = all.size() - 1;
    least = *candidate.nanoseconds;
    choice.module = std::move(*traced);
    return true;
  };
  for (const Values &values : combinationsOf(open)) {
    if (choice.candidates.size() == mostCombinations ||
        operations > mostOperations) {
      TunableCandidate &candidate = choice.candidates.emplace_back();
      candidate.values = values;
      candidate.code = "search.budget";
      break;
    }
    if (!look(values))
      return std::nullopt;
  }
  if (request.threads > 1 && operations <= mostOperations)
    for (const Values &values : balanced(all, all[best], request.threads))
      look(values);
  choice.candidates[chosen].code = "chosen";
  return choice;
}

} // namespace tessera
