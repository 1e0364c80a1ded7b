//===- search.cpp - Choosing a plan by predicted time ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/candidates.h"
#include "search/short_code.h"

#include "fmt/format.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tessera {

namespace {

/// Kernels whose default plan is longer are not searched, nor do those of more
/// than the second number evaluate values again, which may multiply their code.
constexpr int64_t longestSearched = 6000, longestEvaluatedAgain = 1500;
/// What other tiles of contractions have to gain.
constexpr double clearly = 0.9;
/// Vectors per iteration of programs that advance together.
constexpr int64_t chainsTogether = 2;

class Search {
public:
  explicit Search(const SearchInput &input) : input(input) {}

  Result<SearchResult> run() {
    PlanChoices start = input.start;
    std::string what = "default";
    if (list.evaluated(start.keeping, start.passes) > mostLookedAt) {
      makeShort(list.analysis(start.keeping, start.passes), 1, start);
      what = shortWith(1);
      result.isShort = true;
    }
    Result<PricedPlan> base = list.price(start, what);
    if (!base) {
      // What does not fit the scratch memory may be evaluated again instead.
      Error first = base.error();
      for (Keeping keeping : {Keeping::Expensive, Keeping::Required}) {
        PlanChoices choices = start;
        choices.keeping = keeping;
        if (!base)
          base = list.price(choices, whatOf(keeping));
      }
      if (!base)
        return first;
    }
    list.begin(std::move(*base));
    shorten();
    if (best().instructions <= longestSearched) {
      searchKeeping();
      searchVectorDims();
      searchAtoms();
      searchSquares();
      searchUnroll();
      searchTiles();
      searchTail();
      searchStores();
      searchEdges();
      const PricedPlan alone = best();
      searchTogether();
      // Programs that wait for nothing show what tails take.
      if (best().index != alone.index) {
        searchShorter();
        searchTail(" of programs together");
      }
      searchPrefetch();
      searchPasses(alone);
      searchSplits();
    } else {
      list.refuse(
          fmt::format("any other plan: {} instructions are more than {}",
                      best().instructions, longestSearched),
          "search.size", {});
    }
    result.choices = best().choices;
    result.candidates = list.finish();
    return std::move(result);
  }

private:
  const PricedPlan &best() const { return list.best(); }

  static std::string shortWith(int64_t unroll) {
    return fmt::format("short code, {} vector{} per iteration", unroll,
                       unroll == 1 ? "" : "s");
  }

  /// Fewer vectors per iteration, where the code would take long to compile.
  void shorten() {
    for (int64_t unroll : {2, 1}) {
      if (emittedOf(best().prices) <= longestDefault)
        return;
      PlanChoices choices = best().choices;
      makeShort(list.analysis(choices.keeping, choices.passes), unroll,
                choices);
      Result<PricedPlan> shorter = list.price(choices, shortWith(unroll));
      if (!shorter)
        continue;
      if (emittedOf(shorter->prices) >= emittedOf(best().prices)) {
        list.dropLast();
        continue;
      }
      list.take(std::move(*shorter), "admission.instructions");
      result.isShort = true;
    }
  }

  static const char *whatOf(Keeping keeping) {
    return keeping == Keeping::Expensive ? "only expensive values are kept"
                                         : "values are evaluated again";
  }

  void searchKeeping() {
    bool isTooLong = false;
    for (Keeping keeping : {Keeping::Expensive, Keeping::Required}) {
      PlanChoices choices = best().choices;
      choices.keeping = keeping;
      if (best().instructions > longestEvaluatedAgain)
        list.refuse(whatOf(keeping), "search.size", choices);
      else if (isTooLong)
        list.refuse(whatOf(keeping), "admission.instructions", choices);
      else
        list.consider(choices, whatOf(keeping));
      // What keeps less evaluates more.
      isTooLong = list.last().code == "admission.instructions";
    }
  }

  /// Whether a nest takes so little of the best plan so far that no other form
  /// of it would show in a prediction. Its time is known where it has loops.
  bool isNegligible(int64_t id) const {
    for (const StagePrice &stage : best().prices)
      if (auto found = stage.nestCycles.find(id);
          found != stage.nestCycles.end() &&
          (found->second == 0 ||
           found->second >= (1 - margin) / 2 * stage.cycles))
        return false;
    return best().nestCycles(id) > 0;
  }

  void searchVectorDims() {
    for (const NestPlan &nest : best().nests())
      for (const std::string &dim : nest.alternatives.vectorDims) {
        if (dim == nest.vectorDim)
          continue;
        PlanChoices choices = best().choices;
        choices.nests[nest.id].vectorDim = dim;
        const std::string what =
            fmt::format("{} with lanes along {}", nest.roots, dim);
        if (isNegligible(nest.id))
          list.refuse(what, "search.share", choices);
        else
          list.consider(choices, what);
      }
  }

  void searchAtoms() {
    for (const NestPlan &nest : best().nests())
      for (const std::string &atom : nest.alternatives.atoms) {
        if (atom == nest.atom)
          continue;
        PlanChoices choices = best().choices;
        choices.nests[nest.id].atom = atom;
        list.consider(choices, fmt::format("{} by {}", nest.roots, atom));
      }
    for (const NestPlan &nest : best().nests()) {
      if (nest.atom.empty())
        continue;
      PlanChoices choices = best().choices;
      choices.nests[nest.id].atom = "";
      list.consider(choices, nest.roots + " of widened elements");
    }
  }

  /// What takes different units than the nests beside it is taken to run beside
  /// them, which copies its elements one by one for nothing: the nest by itself
  /// has to be faster, too.
  void searchSquares() {
    for (const NestPlan &nest : best().nests()) {
      if (!nest.transposes)
        continue;
      PlanChoices choices = best().choices;
      choices.nests[nest.id].transposes = false;
      const std::string what = nest.roots + " without transposing";
      if (isNegligible(nest.id))
        list.refuse(what, "search.share", choices);
      else
        list.consider(choices, what, nest.id);
    }
  }

  /// The other ways of writing results, where the planner took the one past the
  /// caches: only where rows happen to be aligned, or through the caches.
  void searchStores() {
    PlanChoices choices = best().choices, unaligned = best().choices;
    bool isOpen = false, isAligned = false;
    for (const NestPlan &nest : best().nests()) {
      if (nest.alignsStores) {
        unaligned.nests[nest.id].alignsStores = false;
        isAligned = true;
      }
      if (nest.storesAround) {
        choices.nests[nest.id].storesAround = false;
        isOpen = true;
      }
    }
    if (isAligned) {
      const size_t aligned = best().index;
      std::optional<PricedPlan> plain =
          list.consider(unaligned, "loops that begin with the rows");
      // The longer code has to gain something.
      if (plain && best().index == aligned &&
          margin * plain->nanoseconds < best().nanoseconds)
        list.take(std::move(*plain), "cost.equal");
    }
    if (isOpen)
      list.consider(choices, "stores through the caches");
  }

  /// Whether the vectors per iteration of a nest are open: the rows of a tile
  /// are chosen together with its vectors, by registers, and squares share
  /// nothing.
  static bool isFree(const NestPlan &nest) {
    return nest.alternatives.mostUnroll > 1 && nest.tileRows == 1;
  }

  void searchUnroll() {
    const std::vector<NestPlan> all = best().nests();
    if (std::none_of(all.begin(), all.end(), isFree))
      return;
    // All nests alike, then each as it fared best among those.
    struct Found {
      int64_t unroll;
      PricedPlan priced;
    };
    std::vector<Found> found;
    const PlanChoices start = best().choices;
    // Where the planner takes several, it knows what registers hold: more have
    // to be clearly better.
    int64_t most = 0;
    for (const NestPlan &nest : all)
      if (isFree(nest))
        most = std::max(most, nest.unroll);
    if (most == 1)
      most = std::numeric_limits<int64_t>::max();
    for (int64_t unroll : {1, 2, 4, 8}) {
      // Twice as many as did not help will not either.
      if (found.size() > 1 &&
          found.back().priced.nanoseconds >
              margin * found[found.size() - 2].priced.nanoseconds)
        break;
      PlanChoices choices = start;
      for (const NestPlan &nest : all)
        if (isFree(nest))
          choices.nests[nest.id].unroll =
              std::min(unroll, nest.alternatives.mostUnroll);
      if (std::optional<PricedPlan> priced = list.consider(
              choices, fmt::format("{} vectors per iteration", unroll), {},
              unroll > most ? clearly : margin))
        found.push_back({unroll, std::move(*priced)});
    }
    PlanChoices mixed = best().choices;
    bool isMixed = false;
    for (const NestPlan &nest : all) {
      double least = 0;
      int64_t unroll = 0;
      bool isKnown = found.size() > 1;
      for (const Found &candidate : found) {
        double cycles = candidate.priced.nestCycles(nest.id);
        isKnown &= cycles > 0;
        if (unroll == 0 || cycles < margin * least) {
          least = cycles;
          unroll = candidate.unroll;
        }
      }
      if (!isKnown || !isFree(nest))
        continue;
      unroll = std::min(unroll, nest.alternatives.mostUnroll);
      isMixed |= mixed.nests[nest.id].unroll != unroll;
      mixed.nests[nest.id].unroll = unroll;
    }
    if (isMixed)
      list.consider(mixed, "vectors per iteration nest by nest");
  }

  /// The tiles of all contractions alike: with other vectors, the rows that the
  /// planner takes with these; fewer rows where these add up along the lanes.
  /// They have to be clearly better: the planner knows inner loops better.
  void searchTiles() {
    const std::vector<NestPlan> all = best().nests();
    auto look = [&](const std::string &what, auto change) {
      PlanChoices choices = best().choices;
      bool isOther = false;
      for (const NestPlan &nest : all)
        if (nest.tileRows > 1 && !nest.transposes)
          isOther |= change(nest, choices.nests[nest.id]);
      if (!isOther)
        return;
      if (best().usualInstructions > mostInstructions)
        list.refuse(what, "search.size", choices);
      else
        list.consider(choices, what, {}, clearly);
    };
    for (int64_t unroll : {1, 2, 4})
      look(fmt::format("tiles of {} vectors", unroll), [&](const NestPlan &nest,
                                                           NestChoice &choice) {
        if (nest.unroll == unroll || nest.alternatives.mostUnroll < unroll ||
            nest.alternatives.mostUnroll == 1)
          return false;
        choice.unroll = unroll;
        choice.tileRows.reset();
        return true;
      });
    look("half as many rows of sums",
         [&](const NestPlan &nest, NestChoice &choice) {
           if (nest.alternatives.mostUnroll > 1)
             return false;
           choice.tileRows = nest.tileRows / 2;
           return true;
         });
  }

  /// `whose` says in the list what has these programs.
  void searchTogether(const std::string &whose = "") {
    for (size_t stage = 0; stage < best().plan.stages.size(); ++stage)
      for (int64_t together = 2 * best().plan.stages[stage].order.together;
           together <= best().plan.stages[stage].order.mostTogether;
           together *= 2) {
        PlanChoices choices = best().choices;
        choices.together[stage] = together;
        const std::string what =
            fmt::format("{} programs together{}", together, whose);
        // Programs that are set apart have a body beside the others'.
        const int64_t bodies = together > 2     ? together / 2
                               : isApart(stage) ? 2
                                                : 1;
        const int64_t expected =
            best().prices[stage].instructions / bodies * together;
        if (expected <= mostInstructions) {
          list.consider(choices, what);
        } else {
          list.refuse(what, "admission.instructions", choices);
          if (together > 4)
            break;
          considerShorter(stage, choices, what);
        }
        // More of them cannot help where these did not.
        const auto taken = best().choices.together.find(stage);
        if (taken == best().choices.together.end() || taken->second != together)
          break;
      }
  }

  /// Fewer vectors per iteration may make room for several programs.
  void considerShorter(size_t stage, PlanChoices choices,
                       const std::string &what) {
    if (choices.together[stage] == 2) {
      for (auto &[id, nest] : choices.nests)
        nest.unroll.reset();
      list.consider(choices,
                    what + " with the default's vectors per iteration");
      return;
    }
    const int64_t taken = takeVectors(choices, chainsTogether);
    list.consider(choices, what + " with fewer vectors per iteration");
    if (taken == 1)
      return;
    takeVectors(choices, 1);
    list.consider(choices, what + " with 1 vector per iteration");
  }

  /// At most so many vectors per iteration; one where a row has few: the core
  /// finds what follows by itself. Returns the largest number.
  int64_t takeVectors(PlanChoices &choices, int64_t most) {
    constexpr int64_t few = 8;
    const DimTable &dims = list.analysis(choices.keeping, choices.passes).dims;
    int64_t largest = 1;
    for (const NestPlan &nest : best().nests()) {
      if (!isFree(nest))
        continue;
      const std::optional<int64_t> extent = dims.extent(
          StringAttr::get(input.kernel->getContext(), nest.vectorDim));
      const bool isShort = extent && *extent < (few + 1) * nest.lanes;
      const int64_t vectors =
          isShort ? 1 : std::min(most, nest.alternatives.mostUnroll);
      choices.nests[nest.id].unroll = vectors;
      largest = std::max(largest, vectors);
    }
    return largest;
  }

  /// Programs that advance together keep a core busy with two vectors of each,
  /// whose chains take turns. Of plans that predictions do not tell apart
  /// the shorter one is taken: less code is fetched and decoded, which the
  /// price does not know.
  void searchShorter() {
    PlanChoices choices = best().choices;
    takeVectors(choices, chainsTogether);
    const PricedPlan longer = best();
    std::optional<PricedPlan> shorter = list.consider(
        choices, "fewer vectors per iteration of programs together");
    if (shorter && best().index == longer.index &&
        margin * shorter->nanoseconds < best().nanoseconds &&
        shorter->usualInstructions < best().usualInstructions)
      list.take(std::move(*shorter), "cost.equal");
  }

  /// Inputs alone: no gain is predicted for outputs, which a saved plan may
  /// prefetch all the same.
  void searchPrefetch(const std::string &whose = "") {
    for (size_t stage = 0; stage < best().plan.stages.size(); ++stage) {
      if (best().plan.stages[stage].order.mostPrefetch < Prefetch::Inputs)
        continue;
      PlanChoices choices = best().choices;
      choices.prefetch[stage] = Prefetch::Inputs;
      const std::string what = "prefetch inputs" + whose;
      list.consider(choices, what);
      // Programs that advance together take more of the nearest cache.
      if (best().plan.stages[stage].order.together == 1)
        continue;
      choices.together[stage] = 1;
      list.consider(choices, what + ", one program at a time");
    }
  }

  /// Reductions that depend on others, in the loops of those: where the law of
  /// powers allows it. `alone` is the best separate plan with one program at a
  /// time: a joined one that keeps the core busy for longer is not looked at
  /// with several, which have less to wait for.
  void searchPasses(const PricedPlan &alone) {
    tile::KernelOp kernel = input.kernel;
    int64_t reductions = 0;
    kernel->walk([&](tile::ReduceOp) { ++reductions; });
    if (reductions < 2)
      return;
    const std::string what = "dependent reductions in one pass";
    PlanChoices choices = alone.choices, together = best().choices;
    choices.passes = together.passes = Passes::Joined;
    SmallVector<Refusal> refusals;
    // Saved plans may join by the law of the shift, too: no price tells where
    // that gains.
    if (list.analysis(choices.keeping, choices.passes)
            .phases.countJoins(Law::Powers, refusals) == 0) {
      if (!refusals.empty())
        list.refuse(what + ": " + refusals[0].text, refusals[0].code, choices);
      return;
    }
    const bool isSame = choices.together == together.together &&
                        choices.prefetch == together.prefetch;
    const PricedPlan separate = best();
    std::optional<PricedPlan> joined = list.consider(
        choices, isSame ? what : what + ", one program at a time");
    if (!joined ||
        joined->busyCycles() > alone.busyCycles() / (margin * margin))
      return;
    if (!isSame)
      joined = list.consider(together, what);
    // Of two plans that predictions do not tell apart the one with a loop less,
    // if it is not longer for it: what a loop is the first to read is hidden
    // behind the arithmetic of that loop alone, which the price does not know.
    if (joined && best().index == separate.index &&
        margin * joined->nanoseconds < best().nanoseconds &&
        4 * joined->usualInstructions <= 5 * best().usualInstructions)
      list.take(std::move(*joined), "cost.equal");
    // What was chosen for separate loops may differ for these, which read the
    // inputs again.
    if (best().choices.passes == Passes::Joined) {
      searchTogether(" in one pass");
      searchPrefetch(" in one pass");
    }
  }

  /// Several programs share a reduction where there are fewer programs than
  /// threads. What counts is the time on all of them, by the price of the plan
  /// without parts.
  void searchSplits() {
    if (!input.stageTime)
      return;
    for (size_t stage = 0; stage < best().plan.stages.size(); ++stage) {
      const StagePrediction whole = best().stages[stage];
      const double alone = input.stageTime(whole, 1);
      std::vector<std::pair<double, int64_t>> found;
      for (int64_t splits : splitCandidates(whole, input.threads))
        found.emplace_back(input.stageTime(whole, splits), splits);
      std::sort(found.begin(), found.end());
      for (auto [time, splits] : found) {
        PlanChoices choices = best().choices;
        choices.splits[stage] = splits;
        choices.edges.erase(stage);
        choices.together.erase(stage);
        choices.prefetch.erase(stage);
        std::string what = fmt::format(
            "{} programs share a reduction: {:.3g} us instead of {:.3g} us "
            "with {} threads",
            splits, time / 1000, alone / 1000, input.threads);
        if (time >= splitMargin * alone) {
          list.refuse(what, time >= alone ? "cost.higher" : "cost.equal",
                      choices);
          break;
        }
        if (takeSplits(choices, what, stage, splits))
          break;
      }
    }
  }

  /// Takes a plan with parts if it is legal and short enough.
  bool takeSplits(const PlanChoices &choices, const std::string &what,
                  size_t stage, int64_t splits) {
    Result<PricedPlan> priced = list.price(choices, what);
    if (!priced) {
      list.refuse(what, priced.error().code, choices);
      return false;
    }
    // The last part may have a body of its own.
    if (priced->plan.stages[stage].order.splits != splits) {
      list.last().code = "splits.shares";
      return false;
    }
    if (priced->usualInstructions >
        2 * std::max(mostInstructions, best().usualInstructions)) {
      list.last().code = "admission.instructions";
      return false;
    }
    list.take(std::move(*priced), "cost.higher");
    return true;
  }

  bool isApart(size_t stage) const {
    return best().plan.stages[stage].order.edges == Edges::Apart;
  }

  void searchEdges() {
    for (size_t stage = 0; stage < best().plan.stages.size(); ++stage)
      if (best().plan.stages[stage].order.interior > 0) {
        PlanChoices choices = best().choices;
        choices.edges[stage] = Edges::Apart;
        list.consider(choices, "programs that touch no edge apart");
      }
  }

  void searchTail(const std::string &whose = "") {
    if (!input.pins.tail.empty())
      return;
    auto withTails = [&](TailForm form, auto applies, const char *what) {
      PlanChoices choices = best().choices;
      bool hasTail = false;
      for (const NestPlan &nest : best().nests())
        if (!nest.vectorDim.empty() && nest.tail != form && applies(nest)) {
          choices.nests[nest.id].tail = form;
          hasTail = true;
        }
      if (hasTail)
        list.consider(choices, what + whose);
    };
    withTails(
        TailForm::Scalar, [](const NestPlan &) { return true; },
        "tails one element at a time");
    withTails(
        TailForm::Overlap,
        [](const NestPlan &nest) { return nest.alternatives.overlapsTail; },
        "tails that overlap");
  }

  const SearchInput &input;
  Candidates list{input};
  SearchResult result;
};

} // namespace

Result<SearchResult> searchPlan(const SearchInput &input) {
  return Search(input).run();
}

} // namespace tessera
