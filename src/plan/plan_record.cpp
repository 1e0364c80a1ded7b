//===- plan_record.cpp - The record of what was decided -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_record.h"

#include <algorithm>

namespace tessera {

std::string_view name(TailForm tail) {
  switch (tail) {
  case TailForm::Mask:
    return "mask";
  case TailForm::Scalar:
    return "scalar";
  case TailForm::Overlap:
    return "overlap";
  }
  return "";
}

std::string_view name(Keeping keeping) {
  switch (keeping) {
  case Keeping::All:
    return "all";
  case Keeping::Expensive:
    return "expensive";
  case Keeping::Required:
    return "required";
  }
  return "";
}

std::string_view name(Prefetch prefetch) {
  switch (prefetch) {
  case Prefetch::None:
    return "none";
  case Prefetch::Inputs:
    return "inputs";
  case Prefetch::InputsAndOutputs:
    return "inputs and outputs";
  }
  return "";
}

std::string_view name(Edges edges) {
  return edges == Edges::Apart ? "apart" : "checked";
}

std::string_view name(Passes passes) {
  return passes == Passes::Joined ? "joined" : "separate";
}

std::string VendorCall::summary() const {
  std::string text = function + "(" + (a.transposed ? "T" : "N") + ", " +
                     (b.transposed ? "T" : "N") + ", m " + std::to_string(m) +
                     ", n " + std::to_string(n) + ", k " + std::to_string(k);
  if (alpha != 1)
    text += ", alpha -1";
  text += ")";
  for (int64_t extent : batch)
    text += " x" + std::to_string(extent);
  return text;
}

std::string Plan::summary() const {
  std::string text;
  if (vendor)
    return vendor->summary();
  for (const StagePlan &stage : stages) {
    if (!text.empty())
      text += " | ";
    text += stage.grid.empty() ? "one program" : "parallel " + stage.grid;
    if (stage.order.together > 1)
      text += " x" + std::to_string(stage.order.together);
    if (stage.order.splits > 1)
      text += ", " + std::to_string(stage.order.splits) + " splits of " +
              stage.order.splitDim;
    if (stage.order.edges == Edges::Apart)
      text += ", edges apart";
    for (const NestPlan &nest : stage.nests) {
      text += "; " + nest.roots + " over " + nest.space;
      if (nest.vectorDim.empty())
        text += " (scalar)";
      else
        text +=
            " (" + nest.vectorDim + " x" + std::to_string(nest.lanes) +
            (nest.unroll > 1 ? " x" + std::to_string(nest.unroll) : "") +
            (nest.tileRows > 1
                 ? ", " + nest.tileDim + " x" + std::to_string(nest.tileRows)
                 : "") +
            (nest.tailLanes > 0
                 ? ", the last x" + std::to_string(nest.tailLanes) + " by " +
                       std::to_string(nest.tailRows)
                 : "") +
            (nest.reducedBlock > 0 ? ", by " + std::to_string(nest.reducedBlock)
                                   : "") +
            (nest.transposes ? " transposed" : "") +
            (nest.alignsStores   ? ", around the caches, aligned"
             : nest.storesAround ? ", around the caches"
                                 : "") +
            (nest.prepacked            ? ", prepacked"
             : nest.packedOperand >= 0 ? ", packed"
                                       : "") +
            (nest.atom.empty() ? "" : ", " + nest.atom) + ")";
    }
    if (stage.order.prefetch != Prefetch::None)
      text += "; prefetch " + std::string(name(stage.order.prefetch));
  }
  return text;
}

std::vector<PlanChoices> everyCombination(const Plan &plan) {
  int64_t mostUnroll = 1, mostTogether = 1;
  std::vector<TailForm> tails{TailForm::Mask, TailForm::Scalar};
  Prefetch mostPrefetch = Prefetch::None;
  for (const StagePlan &stage : plan.stages) {
    mostTogether = std::max(mostTogether, stage.order.mostTogether);
    mostPrefetch = std::max(mostPrefetch, stage.order.mostPrefetch);
    for (const NestPlan &nest : stage.nests)
      mostUnroll = std::max(mostUnroll, nest.alternatives.mostUnroll);
    if (tails.size() == 2 &&
        std::any_of(stage.nests.begin(), stage.nests.end(),
                    [](const NestPlan &nest) {
                      return nest.alternatives.overlapsTail;
                    }))
      tails.push_back(TailForm::Overlap);
  }
  std::vector<PlanChoices> all;
  std::vector<std::pair<TailForm, Prefetch>> forms;
  for (TailForm tail : tails)
    for (Prefetch prefetch :
         {Prefetch::None, Prefetch::Inputs, Prefetch::InputsAndOutputs})
      if (prefetch <= mostPrefetch)
        forms.push_back({tail, prefetch});
  for (auto [tail, prefetch] : forms)
    for (int64_t together = 1; together <= std::min<int64_t>(mostTogether, 4);
         together *= 2)
      for (int64_t unroll = 1; unroll <= std::min<int64_t>(mostUnroll, 8);
           unroll *= 2) {
        PlanChoices &choices = all.emplace_back();
        choices.keeping = plan.keeping;
        choices.passes = plan.passes;
        for (size_t number = 0; number < plan.stages.size(); ++number) {
          const StagePlan &stage = plan.stages[number];
          choices.together[number] =
              std::min(together, stage.order.mostTogether);
          choices.prefetch[number] =
              std::min(prefetch, stage.order.mostPrefetch);
          choices.splits[number] = stage.order.splits;
          for (const NestPlan &nest : stage.nests) {
            NestChoice &choice = choices.nests[nest.id];
            if (!nest.vectorDim.empty())
              choice.vectorDim = nest.vectorDim;
            // The vectors and rows of a tile belong together.
            if (nest.tileRows == 1)
              choice.unroll = std::min(unroll, nest.alternatives.mostUnroll);
            choice.tail = tail;
          }
        }
      }
  return all;
}

} // namespace tessera
