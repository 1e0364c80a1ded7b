//===- plan_check.cpp - Whether a saved plan was applied ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_file.h"
#include "plan/plan.h"
#include "support/json_scan.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>

namespace tessera {

namespace {

Error refuse(ErrorFamily family, const SavedPlan &saved,
             const std::string &message) {
  return {family,
          family == ErrorFamily::Usage ? "usage.plan" : "unsupported.plan",
          fmt::format("plan '{}': {}", saved.name, message),
          {}};
}

std::string list(const std::vector<std::string> &names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string quoted(const std::string &dim) {
  return dim.empty() ? "null" : "'" + support::excerpt(dim) + "'";
}

/// What keeps the programs of a stage from advancing together and from
/// prefetching, which ask for the same of their bodies; else `otherwise`.
std::string obstacle(const GridPlan &order, const std::string &otherwise) {
  for (const Reason &reason : order.reasons)
    for (const char *code :
         {"programs.one", "programs.regions", "programs.sequential",
          "programs.extent", "programs.elementwise", "programs.few",
          "programs.splits"})
      if (reason.code == code)
        return reason.text;
  return otherwise;
}

/// Compares one nest of a file with the nest as it was planned.
class NestCheck {
public:
  NestCheck(const SavedNest &saved, const NestPlan &nest, const Pins &pins)
      : saved(saved), nest(nest), pins(pins) {}

  /// What was not applied and why; empty if everything was.
  std::string run() {
    vectorDim();
    unroll();
    rows();
    atom();
    packing();
    reducedBlock();
    epilogue();
    transposing();
    stores();
    alignment();
    tail();
    return problem;
  }

private:
  void differs(const char *field, const std::string &found,
               const std::string &expected, bool isPinned,
               const std::string &why) {
    if (!problem.empty())
      return;
    problem = fmt::format(
        "{}: nest {} ({}), {}: found {}, expected {}: {}", saved.where, nest.id,
        nest.roots, field, found, expected,
        isPinned ? "the kernel's schedule fixes it, and comes first" : why);
  }

  void vectorDim() {
    const auto &wanted = saved.choice.vectorDim;
    if (!wanted || *wanted == nest.vectorDim)
      return;
    const std::vector<std::string> &can = nest.alternatives.vectorDims;
    std::string why;
    for (const Reason &reason : nest.reasons)
      if ((reason.code == "vector.extent" &&
           reason.text.starts_with("'" + *wanted + "'")) ||
          reason.code == "vector.ordered" || reason.code == "scalar.sequential")
        why += (why.empty() ? "" : "; ") + reason.text;
    bool isPinned =
        !pins.vectorAxis.empty() && nest.vectorDim == pins.vectorAxis;
    if (wanted->empty())
      why = "a nest that can fill lanes does";
    else if (why.empty())
      why = "the nest's lanes lie along no other dimension";
    std::string expected = quoted(nest.vectorDim);
    if (!isPinned && !wanted->empty() && can.size() > 1)
      expected = "one of " + list(can);
    differs("vector_dimension", quoted(*wanted), expected, isPinned, why);
  }

  void unroll() {
    const auto &wanted = saved.choice.unroll;
    if (!wanted || *wanted == nest.unroll)
      return;
    int64_t most = nest.alternatives.mostUnroll;
    bool isPinned = pins.unroll != 0 && !nest.vectorDim.empty();
    std::string why =
        nest.vectorDim.empty() ? "the nest has no vectors"
        : most == 1 ? "there is one vector, or one depends on the other"
                    : "more vectors are not there, or their results do not "
                      "fit the registers";
    differs("vectors_per_iteration", std::to_string(*wanted),
            isPinned || most <= 1 ? std::to_string(nest.unroll)
                                  : fmt::format("1 to {}", most),
            isPinned, why);
  }

  void rows() {
    const auto &wanted = saved.choice.tileRows;
    if (!wanted || *wanted == nest.tileRows)
      return;
    differs("rows_per_iteration", std::to_string(*wanted),
            std::to_string(nest.tileRows), false,
            nest.transposes
                ? "the rows of a square are a power of two from 2 on, as far "
                  "as the registers hold it"
            : nest.tileRows > 1
                ? "so many rows are not there, or their results do not fit the "
                  "registers"
                : "nothing that the nest loads serves several rows, or so many "
                  "do not fit the registers");
  }

  void atom() {
    const auto &wanted = saved.choice.atom;
    if (!wanted || *wanted == nest.atom)
      return;
    const std::vector<std::string> &can = nest.alternatives.atoms;
    differs("atom", quoted(*wanted),
            can.empty()
                ? "null"
                : fmt::format("null or one of {}", fmt::join(can, ", ")),
            false,
            "the target has no such atom, or the nest's operands are not what "
            "it takes");
  }

  void packing() {
    const auto &wanted = saved.choice.packs;
    bool packs = nest.packedOperand >= 0;
    if (!wanted || *wanted == packs)
      return;
    differs("packs_operand", *wanted ? "true" : "false",
            packs ? "true" : "false", false,
            "the nest has no operand in an array that it reads again for every "
            "group of rows");
  }

  void reducedBlock() {
    const auto &wanted = saved.choice.reducedBlock;
    if (!wanted || *wanted == nest.reducedBlock)
      return;
    differs("reduced_block", std::to_string(*wanted),
            std::to_string(nest.reducedBlock), false,
            "the nest is no contraction in an order from "
            "its first element to its last, or has no so many elements");
  }

  void epilogue() {
    const auto &wanted = saved.choice.epilogue;
    if (!wanted || *wanted == nest.epilogue)
      return;
    differs("epilogue", *wanted ? "true" : "false",
            nest.epilogue ? "true" : "false", false,
            "nothing follows the nest that could be done in its registers, or "
            "its results are not complete there");
  }

  void transposing() {
    const auto &wanted = saved.choice.transposes;
    if (!wanted || *wanted == nest.transposes)
      return;
    differs("transposes", *wanted ? "true" : "false",
            nest.transposes ? "true" : "false", false,
            "no other dimension of the nest's results has accesses that are "
            "adjacent along it");
  }

  void stores() {
    const auto &wanted = saved.choice.storesAround;
    if (!wanted || *wanted == nest.storesAround)
      return;
    differs("stores_around_caches", *wanted ? "true" : "false",
            nest.storesAround ? "true" : "false", false,
            "the nest stores no whole vectors to an array that the kernel "
            "does not read, or stores squares or tiles of results");
  }

  void alignment() {
    const auto &wanted = saved.choice.alignsStores;
    if (!wanted || *wanted == nest.alignsStores)
      return;
    differs("aligns_stores", *wanted ? "true" : "false",
            nest.alignsStores ? "true" : "false", pins.tail == "overlap",
            "the nest's results do not go past the caches, or their rows are "
            "whole vectors or fewer than two");
  }

  void tail() {
    const auto &wanted = saved.choice.tail;
    if (!wanted || *wanted == nest.tail)
      return;
    differs("tail", std::string(name(*wanted)), std::string(name(nest.tail)),
            !pins.tail.empty(),
            *wanted == TailForm::Overlap
                ? "the nest has no tail whose elements may be done twice"
                : "the nest's tail has one form");
  }

  const SavedNest &saved;
  const NestPlan &nest;
  const Pins &pins;
  std::string problem;
};

} // namespace

Result<void> checkSubject(const SavedPlan &saved, const PlanSubject &subject) {
  auto other = [&](const char *field, const std::string &found,
                   const std::string &expected) {
    return refuse(ErrorFamily::Usage, saved,
                  fmt::format("{}: found {}, expected {}: the plan is for "
                              "another compilation",
                              field, found, expected));
  };
  const PlanSubject &own = saved.subject;
  auto textOf = [](const auto &extents) {
    std::string text;
    for (const auto &[dim, extent] : extents)
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", dim, extent);
    return text.empty() ? "none" : support::excerpt(text, 200);
  };
  if (own.kernel != subject.kernel)
    return other("kernel", quoted(own.kernel), quoted(subject.kernel));
  if (own.target != subject.target)
    return other("target", support::excerpt(own.target), subject.target);
  if (own.alias != subject.alias)
    return other("alias", std::string(name(own.alias)),
                 std::string(name(subject.alias)));
  // In any order.
  auto sorted = [](auto extents) {
    std::sort(extents.begin(), extents.end());
    return extents;
  };
  if (sorted(own.tunables) != sorted(subject.tunables))
    return other("tunables", textOf(own.tunables), textOf(subject.tunables));
  if (sorted(own.extents) != sorted(subject.extents))
    return other("extents", textOf(own.extents), textOf(subject.extents));
  if (own.hash != subject.hash)
    return other("kernel_hash", support::excerpt(own.hash),
                 subject.hash + ", which the kernel's text has");
  return {};
}

Result<void> checkHonoured(const SavedPlan &saved, const Plan &plan,
                           const Pins &pins) {
  auto wrong = [&](const std::string &message) {
    return refuse(ErrorFamily::Usage, saved, message);
  };
  if (saved.stages.size() > plan.stages.size())
    return wrong(fmt::format("stages: found {}, expected {}",
                             saved.stages.size(), plan.stages.size()));
  if (plan.vendor && std::any_of(saved.stages.begin(), saved.stages.end(),
                                 [](const SavedStage &stage) {
                                   return !stage.nests.empty() ||
                                          !stage.grid.value_or("").empty();
                                 }))
    return wrong(fmt::format("vendor: found {}, and stages of compiled loops; "
                             "leave out one of them",
                             name(plan.vendor->library)));
  if (plan.passes == Passes::Joined &&
      std::none_of(plan.stages.begin(), plan.stages.end(),
                   [](const StagePlan &stage) {
                     return std::any_of(stage.nests.begin(), stage.nests.end(),
                                        [](const NestPlan &nest) {
                                          return !nest.law.empty();
                                        });
                   }))
    return refuse(ErrorFamily::Unsupported, saved,
                  "passes: found joined, expected separate: no law lets a "
                  "reduction of the kernel join the loop that it depends on");
  for (size_t i = 0; i < saved.stages.size(); ++i) {
    const SavedStage &mine = saved.stages[i];
    const StagePlan &stage = plan.stages[i];
    const std::string where = fmt::format("stages[{}]", i);
    if (mine.grid && *mine.grid != stage.grid)
      return wrong(fmt::format("{}.grid: found {}, expected {}", where,
                               quoted(*mine.grid), quoted(stage.grid)));
    for (const SavedNest &nest : mine.nests) {
      auto found = std::find_if(
          stage.nests.begin(), stage.nests.end(),
          [&](const NestPlan &planned) { return planned.id == nest.id; });
      if (found == stage.nests.end()) {
        std::vector<std::string> names;
        for (const NestPlan &planned : stage.nests)
          names.push_back(fmt::format("{} ({})", planned.id, planned.roots));
        return wrong(fmt::format(
            "{}.id: found {}, expected one of {}; which nests there are "
            "depends on what is kept (keeping: {}), joined (passes: {}) and "
            "packed",
            nest.where, nest.id, list(names), name(plan.keeping),
            name(plan.passes)));
      }
      if (nest.computes && *nest.computes != found->roots)
        return wrong(fmt::format("{}.computes: found {}, expected {}",
                                 nest.where, quoted(*nest.computes),
                                 quoted(found->roots)));
      if (nest.space && *nest.space != found->space)
        return wrong(fmt::format("{}.space: found {}, expected {}", nest.where,
                                 quoted(*nest.space), quoted(found->space)));
      if (std::string problem = NestCheck(nest, *found, pins).run();
          !problem.empty())
        return refuse(ErrorFamily::Unsupported, saved, problem);
    }
    const GridPlan &order = stage.order;
    if (mine.together && *mine.together != order.together) {
      const bool isMany = order.mostTogether > 1;
      return refuse(
          ErrorFamily::Unsupported, saved,
          fmt::format("{}.programs_together: found {}, expected {}: {}", where,
                      *mine.together,
                      isMany ? fmt::format("1 to {}", order.mostTogether) : "1",
                      isMany ? "there are too few programs for more"
                             : obstacle(order, "they run one after another")));
    }
    if (mine.prefetch && *mine.prefetch != order.prefetch) {
      std::vector<std::string_view> can;
      for (Prefetch each :
           {Prefetch::None, Prefetch::Inputs, Prefetch::InputsAndOutputs})
        if (each <= order.mostPrefetch)
          can.push_back(name(each));
      const std::string none =
          "the programs have no loop that reads, or stores after another loop, "
          "what moves with them";
      return refuse(ErrorFamily::Unsupported, saved,
                    fmt::format("{}.prefetch: found {}, expected {}: {}", where,
                                quoted(std::string(name(*mine.prefetch))),
                                oneOf(can),
                                order.mostPrefetch == Prefetch::None
                                    ? obstacle(order, none)
                                    : none));
    }
    if (mine.splits && *mine.splits != stage.order.splits)
      return refuse(
          ErrorFamily::Unsupported, saved,
          fmt::format(
              "{}.splits: found {}, expected {}: {}", where, *mine.splits,
              stage.order.mostSplits > 1
                  ? fmt::format("1 to {}", stage.order.mostSplits)
                  : "1",
              stage.order.mostSplits > 1
                  ? fmt::format("not every part of '{}' would have elements",
                                stage.order.splitDim)
                  : stage.order.unsplit));
    if (mine.edges && *mine.edges != stage.order.edges) {
      std::string why;
      for (const Reason &reason : stage.order.reasons)
        if (reason.code.starts_with("edges."))
          why = reason.text;
      if (why.empty())
        why = "all programs touch an edge of an array, or none does";
      return refuse(ErrorFamily::Unsupported, saved,
                    fmt::format("{}.edges: found {}, expected {}: {}", where,
                                quoted(std::string(name(*mine.edges))),
                                quoted(std::string(name(stage.order.edges))),
                                why));
    }
  }
  return {};
}

} // namespace tessera
