//===- split_candidates.cpp - Parts of reductions worth a look ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/search.h"

#include <algorithm>

namespace tessera {

std::vector<int64_t> splitCandidates(const StagePrediction &stage,
                                     int threads) {
  std::vector<int64_t> candidates;
  // Where there are many programs, they are even enough.
  if (threads <= 1 || stage.programs <= 0 || stage.programs >= 2 * threads)
    return candidates;
  const int64_t most = std::min(
      stage.mostSplits, 4 * (threads + stage.programs - 1) / stage.programs);
  // Powers of two, and what gives each thread as many programs.
  for (int64_t splits = 2; splits <= most; ++splits)
    if ((splits & (splits - 1)) == 0 || stage.programs * splits % threads == 0)
      candidates.push_back(splits);
  return candidates;
}

StagePrediction predictionOf(const StagePlan &stage, const StagePrice &price,
                             int64_t programs, double nanoseconds) {
  StagePrediction prediction{programs, nanoseconds};
  const GridPlan &grid = stage.order;
  if (grid.mostSplits <= 1 || grid.splits > 1)
    return prediction;
  double all = 0, inside = 0;
  for (auto [id, cycles] : price.nestCycles) {
    all += cycles;
    if (id >= grid.splitNests.first && id <= grid.splitNests.second)
      inside += cycles;
  }
  prediction.mostSplits = grid.mostSplits;
  prediction.splitShare = all > 0 ? inside / all : 0;
  prediction.splitUnits = grid.splitUnits;
  prediction.partBytes = double(grid.partBytes);
  return prediction;
}

} // namespace tessera
