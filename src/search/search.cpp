//===- search.cpp - Choosing a plan by predicted time ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/search.h"

#include "codegen/cpu/expand_math.h"
#include "realize/cpu/realize.h"
#include "search/short_code.h"

#include "fmt/format.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

using namespace mlir;

namespace tessera {

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

namespace {

/// Code of more instructions is not admitted beside the default plan: it takes
/// long to compile and leaves the caches of instructions.
constexpr int64_t mostInstructions = 700;
/// The same with what is rarely reached, which only takes time to compile.
constexpr int64_t mostWithRare = 900;
/// Kernels whose default plan is longer are not searched, nor do those of more
/// than the second number evaluate values again, which may multiply their code.
constexpr int64_t longestSearched = 6000, longestEvaluatedAgain = 1500;
/// Instructions of all candidates that are realized.
constexpr int64_t searchBudget = 40000;
/// Predictions that differ by less are not told apart.
constexpr double margin = 0.98;
/// What other tiles of contractions have to gain.
constexpr double clearly = 0.9;

/// A candidate that was realized.
struct Priced {
  PlanChoices choices;
  Plan plan;
  std::vector<StagePrice> prices;
  double nanoseconds = 0;
  /// By stage.
  std::vector<StagePrediction> stages;
  int64_t instructions = 0;
  /// Those that are not rarely reached: what counts for admission.
  int64_t usualInstructions = 0;
  /// Its place in the list of candidates.
  size_t index = 0;
};

class Search {
public:
  explicit Search(const SearchInput &input) : input(input) {}

  Result<SearchResult> run() {
    PlanChoices start = input.start;
    std::string what = "default";
    if (analyzed(start.keeping, start.passes).evaluated > mostLookedAt) {
      makeShort(analysis(start.keeping, start.passes), 1, start);
      what = shortWith(1);
      result.isShort = true;
    }
    Result<Priced> base = price(start, what);
    if (!base) {
      // What does not fit the scratch memory may be evaluated again instead.
      Error first = base.error();
      for (Keeping keeping : {Keeping::Expensive, Keeping::Required}) {
        PlanChoices choices = start;
        choices.keeping = keeping;
        if (!base)
          base = price(choices, whatOf(keeping));
      }
      if (!base)
        return first;
    }
    best = std::move(*base);
    shorten();
    seen.emplace(keyOf(best), best);
    if (best.instructions <= longestSearched) {
      searchKeeping();
      searchVectorDims();
      searchAtoms();
      searchSquares();
      searchUnroll();
      searchTiles();
      searchTail();
      searchStores();
      searchEdges();
      const Priced alone = best;
      searchTogether();
      // Programs that wait for nothing show what tails take.
      if (best.index != alone.index) {
        searchShorter();
        searchTail(" of programs together");
      }
      searchPrefetch();
      searchPasses(alone);
      searchSplits();
    } else {
      refuse(fmt::format("any other plan: {} instructions are more than {}",
                         best.instructions, longestSearched),
             "search.size", {});
    }
    result.candidates[best.index].code = "chosen";
    result.choices = best.choices;
    return std::move(result);
  }

private:
  struct Analyzed {
    Analyzed(const SearchInput &input, Keeping keeping, Passes passes)
        : facts(input.kernel, input.alias, input.extents, input.strides,
                keeping, passes),
          evaluated(evaluatedBy(facts)) {}

    KernelAnalysis facts;
    int64_t evaluated;
  };

  const Analyzed &analyzed(Keeping keeping, Passes passes) {
    std::unique_ptr<Analyzed> &made = analyses[size_t(keeping)][size_t(passes)];
    if (!made)
      made = std::make_unique<Analyzed>(input, keeping, passes);
    return *made;
  }

  const KernelAnalysis &analysis(Keeping keeping, Passes passes) {
    return analyzed(keeping, passes).facts;
  }

  static std::string shortWith(int64_t unroll) {
    return fmt::format("short code, {} vector{} per iteration", unroll,
                       unroll == 1 ? "" : "s");
  }

  /// Fewer vectors per iteration, where the code would take long to compile.
  void shorten() {
    for (int64_t unroll : {2, 1}) {
      if (emittedOf(best.prices) <= longestDefault)
        return;
      PlanChoices choices = best.choices;
      makeShort(analysis(choices.keeping, choices.passes), unroll, choices);
      Result<Priced> shorter = price(choices, shortWith(unroll));
      if (!shorter)
        continue;
      if (emittedOf(shorter->prices) >= emittedOf(best.prices)) {
        result.candidates.pop_back();
        continue;
      }
      result.candidates[best.index].code = "admission.instructions";
      result.isShort = true;
      best = std::move(*shorter);
    }
  }

  static const char *whatOf(Keeping keeping) {
    return keeping == Keeping::Expensive ? "only expensive values are kept"
                                         : "values are evaluated again";
  }

  /// Equal for plans that lead to the same code.
  static std::string keyOf(const Priced &priced) {
    std::string tails;
    for (const StagePlan &stage : priced.plan.stages)
      for (const NestPlan &nest : stage.nests)
        if (nest.alternatives.hasTail)
          tails += std::string(name(nest.tail)) + " ";
    return fmt::format("{} {}{} {:a}", priced.plan.summary(), tails,
                       priced.instructions, priced.nanoseconds);
  }

  Result<Priced> price(const PlanChoices &choices, std::string what) {
    const auto &[facts, evaluated] = analyzed(choices.keeping, choices.passes);
    if (Result<void> fits = checkEvaluated(input.kernel, evaluated); !fits)
      return fits.error();
    Planning planning{facts, input.target, input.machine, input.pins, choices};
    Result<RealizedKernel> realized = realizeForCpu(planning);
    if (!realized)
      return realized.error();
    tile::KernelOp kernel = input.kernel;
    tile::Tier tier = kernel.getTier();
    formMultiplyAdds(realized->module.get(), input.target, tier);
    expandMath(realized->module.get(), input.target, tier);
    Priced priced;
    priced.choices = choices;
    priced.prices =
        priceStages(realized->module.get(), input.target, input.machine);
    std::vector<int64_t> programs;
    for (const RealizedStage &stage : realized->stages)
      programs.push_back(stage.programs);
    for (const StagePrice &stage : priced.prices) {
      priced.instructions += stage.instructions;
      priced.usualInstructions += stage.instructions - stage.rareInstructions;
    }
    const std::vector<TimeTerms> times = predictStages(
        priced.prices, programs, input.traffic, input.target, input.machine);
    for (size_t i = 0; i < times.size(); ++i) {
      priced.nanoseconds += times[i].total;
      priced.stages.push_back(predictionOf(realized->plan.stages[i],
                                           priced.prices[i], programs[i],
                                           times[i].total));
    }
    discard(std::move(realized->module));
    priced.plan = std::move(realized->plan);
    priced.index = result.candidates.size();
    result.candidates.push_back({std::move(what), "cost.higher",
                                 priced.nanoseconds, priced.instructions,
                                 choices});
    return priced;
  }

  /// Looks at a candidate and takes it if it is better, as a whole, by `share`,
  /// and in its nest `within`, if given. Returns it, or the equal one that was
  /// looked at before, if it was admitted.
  std::optional<Priced> consider(const PlanChoices &choices,
                                 const std::string &what,
                                 std::optional<int64_t> within = {},
                                 double share = margin) {
    if (spent > searchBudget) {
      if (!isOver)
        refuse("further candidates", "search.budget", choices);
      isOver = true;
      return std::nullopt;
    }
    Result<Priced> priced = price(choices, what);
    if (!priced) {
      refuse(what, priced.error().code, choices);
      return std::nullopt;
    }
    spent += priced->instructions;
    auto [known, isNew] = seen.try_emplace(keyOf(*priced), *priced);
    if (!isNew) {
      result.candidates.pop_back();
      return known->second;
    }
    PlanCandidate &entry = result.candidates.back();
    if (priced->usualInstructions >
            std::max(mostInstructions, best.usualInstructions) ||
        priced->instructions > std::max(mostWithRare, best.instructions)) {
      entry.code = "admission.instructions";
      return std::nullopt;
    }
    if (within &&
        nestCycles(*priced, *within) >= margin * nestCycles(best, *within))
      entry.code = "cost.higher";
    else if (priced->nanoseconds >= share * best.nanoseconds)
      entry.code =
          priced->nanoseconds > best.nanoseconds ? "cost.higher" : "cost.equal";
    else
      best = *priced;
    return *priced;
  }

  /// Records what is not realized.
  void refuse(const std::string &what, const std::string &code,
              const PlanChoices &choices) {
    result.candidates.push_back({what, code, {}, 0, choices});
  }

  void searchKeeping() {
    bool isTooLong = false;
    for (Keeping keeping : {Keeping::Expensive, Keeping::Required}) {
      PlanChoices choices = best.choices;
      choices.keeping = keeping;
      if (best.instructions > longestEvaluatedAgain)
        refuse(whatOf(keeping), "search.size", choices);
      else if (isTooLong)
        refuse(whatOf(keeping), "admission.instructions", choices);
      else
        consider(choices, whatOf(keeping));
      // What keeps less evaluates more.
      isTooLong = result.candidates.back().code == "admission.instructions";
    }
  }

  /// The nests of the best plan so far.
  std::vector<NestPlan> nests() const {
    std::vector<NestPlan> all;
    for (const StagePlan &stage : best.plan.stages)
      all.insert(all.end(), stage.nests.begin(), stage.nests.end());
    return all;
  }

  /// Whether a nest takes so little of the best plan so far that no other form
  /// of it would show in a prediction. Its time is known where it has loops.
  bool isNegligible(int64_t id) const {
    for (const StagePrice &stage : best.prices)
      if (auto found = stage.nestCycles.find(id);
          found != stage.nestCycles.end() &&
          (found->second == 0 ||
           found->second >= (1 - margin) / 2 * stage.cycles))
        return false;
    return nestCycles(best, id) > 0;
  }

  void searchVectorDims() {
    for (const NestPlan &nest : nests())
      for (const std::string &dim : nest.alternatives.vectorDims) {
        if (dim == nest.vectorDim)
          continue;
        PlanChoices choices = best.choices;
        choices.nests[nest.id].vectorDim = dim;
        const std::string what =
            fmt::format("{} with lanes along {}", nest.roots, dim);
        if (isNegligible(nest.id))
          refuse(what, "search.share", choices);
        else
          consider(choices, what);
      }
  }

  void searchAtoms() {
    for (const NestPlan &nest : nests())
      for (const std::string &atom : nest.alternatives.atoms) {
        if (atom == nest.atom)
          continue;
        PlanChoices choices = best.choices;
        choices.nests[nest.id].atom = atom;
        consider(choices, fmt::format("{} by {}", nest.roots, atom));
      }
    for (const NestPlan &nest : nests()) {
      if (nest.atom.empty())
        continue;
      PlanChoices choices = best.choices;
      choices.nests[nest.id].atom = "";
      consider(choices, nest.roots + " of widened elements");
    }
  }

  /// What takes different units than the nests beside it is taken to run beside
  /// them, which copies its elements one by one for nothing: the nest by itself
  /// has to be faster, too.
  void searchSquares() {
    for (const NestPlan &nest : nests()) {
      if (!nest.transposes)
        continue;
      PlanChoices choices = best.choices;
      choices.nests[nest.id].transposes = false;
      const std::string what = nest.roots + " without transposing";
      if (isNegligible(nest.id))
        refuse(what, "search.share", choices);
      else
        consider(choices, what, nest.id);
    }
  }

  /// The other ways of writing results, where the planner took the one past the
  /// caches: only where rows happen to be aligned, or through the caches.
  void searchStores() {
    PlanChoices choices = best.choices, unaligned = best.choices;
    bool isOpen = false, isAligned = false;
    for (const NestPlan &nest : nests()) {
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
      const size_t aligned = best.index;
      std::optional<Priced> plain =
          consider(unaligned, "loops that begin with the rows");
      // The longer code has to gain something.
      if (plain && best.index == aligned &&
          margin * plain->nanoseconds < best.nanoseconds) {
        result.candidates[aligned].code = "cost.equal";
        best = std::move(*plain);
      }
    }
    if (isOpen)
      consider(choices, "stores through the caches");
  }

  /// Whether the vectors per iteration of a nest are open: the rows of a tile
  /// are chosen together with its vectors, by registers, and squares share
  /// nothing.
  static bool isFree(const NestPlan &nest) {
    return nest.alternatives.mostUnroll > 1 && nest.tileRows == 1;
  }

  void searchUnroll() {
    const std::vector<NestPlan> all = nests();
    if (std::none_of(all.begin(), all.end(), isFree))
      return;
    // All nests alike, then each as it fared best among those.
    struct Found {
      int64_t unroll;
      Priced priced;
    };
    std::vector<Found> found;
    const PlanChoices start = best.choices;
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
      if (std::optional<Priced> priced =
              consider(choices, fmt::format("{} vectors per iteration", unroll),
                       {}, unroll > most ? clearly : margin))
        found.push_back({unroll, std::move(*priced)});
    }
    PlanChoices mixed = best.choices;
    bool isMixed = false;
    for (const NestPlan &nest : all) {
      double least = 0;
      int64_t unroll = 0;
      bool isKnown = found.size() > 1;
      for (const Found &candidate : found) {
        double cycles = nestCycles(candidate.priced, nest.id);
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
      consider(mixed, "vectors per iteration nest by nest");
  }

  /// The tiles of all contractions alike: with other vectors, the rows that the
  /// planner takes with these; fewer rows where these add up along the lanes.
  /// They have to be clearly better: the planner knows inner loops better.
  void searchTiles() {
    const std::vector<NestPlan> all = nests();
    auto look = [&](const std::string &what, auto change) {
      PlanChoices choices = best.choices;
      bool isOther = false;
      for (const NestPlan &nest : all)
        if (nest.tileRows > 1 && !nest.transposes)
          isOther |= change(nest, choices.nests[nest.id]);
      if (!isOther)
        return;
      if (best.usualInstructions > mostInstructions)
        refuse(what, "search.size", choices);
      else
        consider(choices, what, {}, clearly);
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

  static double nestCycles(const Priced &priced, int64_t id) {
    double cycles = 0;
    for (const StagePrice &stage : priced.prices)
      if (auto found = stage.nestCycles.find(id);
          found != stage.nestCycles.end())
        cycles += found->second;
    return cycles;
  }

  void searchTogether() {
    for (size_t stage = 0; stage < best.plan.stages.size(); ++stage)
      for (int64_t together = 2;
           together <= best.plan.stages[stage].order.mostTogether;
           together *= 2) {
        PlanChoices choices = best.choices;
        choices.together[stage] = together;
        std::string what = fmt::format("{} programs together", together);
        // Programs that are set apart have a body beside the others'.
        const int64_t bodies = together > 2     ? together / 2
                               : isApart(stage) ? 2
                                                : 1;
        const int64_t expected =
            best.prices[stage].instructions / bodies * together;
        if (expected > mostInstructions) {
          refuse(what, "admission.instructions", choices);
          if (together > 4)
            break;
          // Fewer vectors per iteration may make room for them.
          if (together == 4) {
            takeOneVector(choices);
            what += " with 1 vector per iteration";
          } else {
            for (auto &[id, nest] : choices.nests)
              nest.unroll.reset();
            what += " with the default's vectors per iteration";
          }
        }
        consider(choices, what);
        // More of them cannot help where these did not.
        if (!best.choices.together.count(stage) ||
            best.choices.together[stage] != together)
          break;
      }
  }

  void takeOneVector(PlanChoices &choices) const {
    for (const NestPlan &nest : nests())
      if (isFree(nest))
        choices.nests[nest.id].unroll = 1;
  }

  /// Programs that advance together keep a core busy with one vector of each.
  /// Of plans that predictions do not tell apart the shorter one is taken: less
  /// code is fetched and decoded, which the price does not know.
  void searchShorter() {
    PlanChoices choices = best.choices;
    takeOneVector(choices);
    const Priced longer = best;
    std::optional<Priced> shorter =
        consider(choices, "1 vector per iteration of programs together");
    if (shorter && best.index == longer.index &&
        margin * shorter->nanoseconds < best.nanoseconds &&
        shorter->usualInstructions < best.usualInstructions) {
      result.candidates[best.index].code = "cost.equal";
      result.candidates[shorter->index].code = "cost.higher";
      best = std::move(*shorter);
    }
  }

  /// Inputs alone: no gain is predicted for outputs, which a saved plan may
  /// prefetch all the same.
  void searchPrefetch() {
    for (size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      if (best.plan.stages[stage].order.mostPrefetch < Prefetch::Inputs)
        continue;
      PlanChoices choices = best.choices;
      choices.prefetch[stage] = Prefetch::Inputs;
      const std::string what = "prefetch inputs";
      consider(choices, what);
      // Programs that advance together take more of the nearest cache.
      if (best.plan.stages[stage].order.together == 1)
        continue;
      choices.together[stage] = 1;
      consider(choices, what + ", one program at a time");
    }
  }

  /// Cycles that the operations of all programs take.
  static double busyCycles(const Priced &priced) {
    double cycles = 0;
    for (size_t i = 0; i < priced.prices.size(); ++i)
      cycles += priced.prices[i].throughputCycles *
                double(priced.plan.stages[i].programs);
    return cycles;
  }

  /// Reductions that depend on others, in the loops of those: where the law of
  /// powers allows it. `alone` is the best separate plan with one program at a
  /// time: a joined one that keeps the core busy for longer is not looked at
  /// with several, which have less to wait for.
  void searchPasses(const Priced &alone) {
    tile::KernelOp kernel = input.kernel;
    int64_t reductions = 0;
    kernel->walk([&](tile::ReduceOp) { ++reductions; });
    if (reductions < 2)
      return;
    const std::string what = "dependent reductions in one pass";
    PlanChoices choices = alone.choices, together = best.choices;
    choices.passes = together.passes = Passes::Joined;
    SmallVector<Refusal> refusals;
    // Saved plans may join by the law of the shift, too: no price tells where
    // that gains.
    if (analysis(choices.keeping, choices.passes)
            .phases.countJoins(Law::Powers, refusals) == 0) {
      if (!refusals.empty())
        refuse(what + ": " + refusals[0].text, refusals[0].code, choices);
      return;
    }
    const bool isSame = choices.together == together.together &&
                        choices.prefetch == together.prefetch;
    const Priced separate = best;
    std::optional<Priced> joined =
        consider(choices, isSame ? what : what + ", one program at a time");
    if (!joined || busyCycles(*joined) > busyCycles(alone) / (margin * margin))
      return;
    if (!isSame)
      joined = consider(together, what);
    // Of two plans that predictions do not tell apart the one with a loop less,
    // if it is not longer for it: what a loop is the first to read is hidden
    // behind the arithmetic of that loop alone, which the price does not know.
    if (joined && best.index == separate.index &&
        margin * joined->nanoseconds < best.nanoseconds &&
        4 * joined->usualInstructions <= 5 * best.usualInstructions) {
      result.candidates[best.index].code = "cost.equal";
      best = std::move(*joined);
    }
  }

  /// Several programs share a reduction where there are fewer programs than
  /// threads. What counts is the time on all of them, by the price of the plan
  /// without parts.
  void searchSplits() {
    if (!input.stageTime)
      return;
    for (size_t stage = 0; stage < best.plan.stages.size(); ++stage) {
      const StagePrediction whole = best.stages[stage];
      const double alone = input.stageTime(whole, 1);
      std::vector<std::pair<double, int64_t>> found;
      for (int64_t splits : splitCandidates(whole, input.threads))
        found.emplace_back(input.stageTime(whole, splits), splits);
      std::sort(found.begin(), found.end());
      for (auto [time, splits] : found) {
        PlanChoices choices = best.choices;
        choices.splits[stage] = splits;
        choices.edges.erase(stage);
        choices.together.erase(stage);
        choices.prefetch.erase(stage);
        std::string what = fmt::format(
            "{} programs share a reduction: {:.3g} us instead of {:.3g} us "
            "with {} threads",
            splits, time / 1000, alone / 1000, input.threads);
        if (time >= splitMargin * alone) {
          refuse(what, time >= alone ? "cost.higher" : "cost.equal", choices);
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
    Result<Priced> priced = price(choices, what);
    if (!priced) {
      refuse(what, priced.error().code, choices);
      return false;
    }
    PlanCandidate &entry = result.candidates.back();
    // The last part may have a body of its own.
    if (priced->plan.stages[stage].order.splits != splits)
      entry.code = "splits.shares";
    else if (priced->usualInstructions >
             2 * std::max(mostInstructions, best.usualInstructions))
      entry.code = "admission.instructions";
    else
      best = std::move(*priced);
    return result.candidates.size() - 1 == best.index;
  }

  bool isApart(size_t stage) const {
    return best.plan.stages[stage].order.edges == Edges::Apart;
  }

  void searchEdges() {
    for (size_t stage = 0; stage < best.plan.stages.size(); ++stage)
      if (best.plan.stages[stage].order.interior > 0) {
        PlanChoices choices = best.choices;
        choices.edges[stage] = Edges::Apart;
        consider(choices, "programs that touch no edge apart");
      }
  }

  void searchTail(const std::string &whose = "") {
    if (!input.pins.tail.empty())
      return;
    auto withTails = [&](TailForm form, auto applies, const char *what) {
      PlanChoices choices = best.choices;
      bool hasTail = false;
      for (const NestPlan &nest : nests())
        if (!nest.vectorDim.empty() && nest.tail != form && applies(nest)) {
          choices.nests[nest.id].tail = form;
          hasTail = true;
        }
      if (hasTail)
        consider(choices, what + whose);
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
  /// By what is kept, and by passes.
  std::unique_ptr<Analyzed> analyses[3][2];
  SearchResult result;
  Priced best;
  std::map<std::string, Priced> seen;
  /// Instructions of the candidates so far, and whether that was too many.
  int64_t spent = 0;
  bool isOver = false;
};

} // namespace

static Result<RealizedKernel> realizeToPrice(const SearchInput &input,
                                             PlanChoices choices) {
  KernelAnalysis analysis(input.kernel, input.alias, input.extents,
                          input.strides, choices.keeping, choices.passes);
  const int64_t evaluated = evaluatedBy(analysis);
  if (Result<void> fits = checkEvaluated(input.kernel, evaluated); !fits)
    return fits.error();
  if (evaluated > mostLookedAt)
    makeShort(analysis, 1, choices);
  Result<RealizedKernel> realized = realizeForCpu(
      {analysis, input.target, input.machine, input.pins, choices});
  if (!realized)
    return realized;
  tile::KernelOp kernel = input.kernel;
  formMultiplyAdds(realized->module.get(), input.target, kernel.getTier());
  expandMath(realized->module.get(), input.target, kernel.getTier());
  return realized;
}

/// The stages' times on one thread.
static std::vector<StagePrediction> predicted(const RealizedKernel &realized,
                                              const SearchInput &input,
                                              const Machine &machine) {
  std::vector<int64_t> programs;
  for (const RealizedStage &stage : realized.stages)
    programs.push_back(stage.programs);
  const std::vector<StagePrice> prices =
      priceStages(realized.module.get(), input.target, machine);
  std::vector<TimeTerms> times =
      predictStages(prices, programs, input.traffic, input.target, machine);
  std::vector<StagePrediction> stages;
  for (size_t i = 0; i < times.size(); ++i)
    stages.push_back(predictionOf(realized.plan.stages[i], prices[i],
                                  programs[i], times[i].total));
  return stages;
}

Result<std::vector<double>> pricePlan(const SearchInput &input,
                                      const PlanChoices &choices,
                                      ArrayRef<Machine> machines) {
  Result<RealizedKernel> realized = realizeToPrice(input, choices);
  if (!realized)
    return realized.error();
  std::vector<double> times;
  for (const Machine &machine : machines) {
    double sum = 0;
    for (const StagePrediction &stage : predicted(*realized, input, machine))
      sum += stage.nanoseconds;
    times.push_back(sum);
  }
  return times;
}

Result<std::vector<StagePrediction>>
pricePlanStages(const SearchInput &input, const PlanChoices &choices) {
  Result<RealizedKernel> realized = realizeToPrice(input, choices);
  if (!realized)
    return realized.error();
  return predicted(*realized, input, input.machine);
}

Result<SearchResult> searchPlan(const SearchInput &input) {
  return Search(input).run();
}

} // namespace tessera
