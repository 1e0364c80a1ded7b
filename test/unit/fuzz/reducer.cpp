//===- fuzz/reducer.cpp - Smaller programs that still fail -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries, round after round until nothing helps: dropping a statement, putting
// another value of its type in a value's place, taking a branch's or loop's
// initial value for its result, smaller extents, plainer arguments. What became
// unused goes. A step is kept if the program still fails in the same way.
//
//===----------------------------------------------------------------------===//

#include "differential.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace tessera::fuzz {

namespace {

/// "crash", "internal error", "difference": what must stay the same.
std::string failureClass(const Outcome &outcome) {
  if (outcome.message.rfind("died", 0) == 0)
    return outcome.message;
  for (const char *part : {"compile:", "launch:", "wrote"})
    if (outcome.message.find(part) != outcome.message.npos) {
      // The code of the error at the end.
      size_t bracket = outcome.message.rfind('[');
      return part + (bracket == outcome.message.npos
                         ? std::string()
                         : outcome.message.substr(bracket));
    }
  return "difference";
}

class Reducer {
public:
  Reducer(RandomProgram program, const std::vector<Isa> &isas, double seconds)
      : best(std::move(program)), isas(isas),
        deadline(std::chrono::steady_clock::now() +
                 std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::duration<double>(seconds))) {}

  RandomProgram run() {
    kind = failureClass(runInChild(best, isas));
    for (bool changed = true; changed && !late();) {
      changed = false;
      changed |= dropStatements();
      changed |= inlineRegions();
      changed |= forwardValues();
      changed |= shrinkExtents();
      changed |= simplifyArguments();
    }
    return best;
  }

private:
  bool late() const { return std::chrono::steady_clock::now() > deadline; }

  bool attempt(RandomProgram candidate) {
    if (late())
      return false;
    candidate.removeDead();
    if (candidate.body.empty() ||
        candidate.text() + candidate.describeArguments() ==
            best.text() + best.describeArguments())
      return false;
    Outcome outcome = runInChild(candidate, isas);
    if (outcome.status != Status::Differs || failureClass(outcome) != kind)
      return false;
    best = std::move(candidate);
    return true;
  }

  /// Calls `visit(block, index)` on a copy of the program for the nth statement
  /// in preorder; false when there is none.
  static bool atStatement(Block &block, size_t &n,
                          const std::function<void(Block &, size_t)> &visit) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (n-- == 0) {
        visit(block, i);
        return true;
      }
      for (Block &region : block[i].regions)
        if (atStatement(region, n, visit))
          return true;
    }
    return false;
  }

  static size_t countStatements(const Block &block) {
    size_t count = block.size();
    for (const Statement &statement : block)
      for (const Block &region : statement.regions)
        count += countStatements(region);
    return count;
  }

  bool dropStatements() {
    bool changed = false;
    for (size_t n = countStatements(best.body); n-- > 0;) {
      if (n >= countStatements(best.body))
        continue;
      RandomProgram candidate = best;
      bool droppable = false;
      size_t at = n;
      atStatement(candidate.body, at, [&](Block &block, size_t i) {
        droppable = block[i].results.empty() &&
                    block[i].head.rfind("tile.yield", 0) != 0;
        if (droppable)
          block.erase(block.begin() + static_cast<int64_t>(i));
      });
      if (droppable)
        changed |= attempt(std::move(candidate));
    }
    return changed;
  }

  /// A branch without results is replaced by one of its halves.
  bool inlineRegions() {
    bool changed = false;
    for (size_t n = 0; n < countStatements(best.body); ++n) {
      for (size_t half = 0; half < 2; ++half) {
        RandomProgram candidate = best;
        bool possible = false;
        size_t at = n;
        atStatement(candidate.body, at, [&](Block &block, size_t i) {
          Statement statement = block[i];
          possible = statement.head.rfind("tile.if", 0) == 0 &&
                     statement.results.empty() &&
                     half < statement.regions.size();
          if (!possible)
            return;
          block.erase(block.begin() + static_cast<int64_t>(i));
          block.insert(block.begin() + static_cast<int64_t>(i),
                       statement.regions[half].begin(),
                       statement.regions[half].end());
        });
        if (possible && attempt(std::move(candidate)))
          changed = true;
      }
    }
    return changed;
  }

  struct Definition {
    Value value;
    bool isConstant;
  };
  void collect(const Block &block, std::vector<Definition> &all) const {
    for (const Statement &statement : block) {
      for (const Value &value : statement.results)
        all.push_back({value, statement.head.rfind("arith.constant", 0) == 0 ||
                                  statement.head.rfind("tile.load", 0) == 0});
      // A combining region keeps its laws only as it is.
      for (size_t i = 0; i < statement.regions.size(); ++i)
        if (i >= statement.headers.size() || statement.headers[i].empty())
          collect(statement.regions[i], all);
    }
  }

  /// The values that are identities of combining regions.
  static void collectIdentities(const Block &block,
                                std::set<std::string> &names) {
    for (const Statement &statement : block) {
      for (const char *keyword : {"identity(", "init("})
        if (size_t at = statement.head.find(keyword); at != std::string::npos)
          collectReferences(
              statement.head.substr(at, statement.head.find(':', at) - at),
              names);
      for (const Block &region : statement.regions)
        collectIdentities(region, names);
    }
  }

  /// Replaces a value by an earlier one of its type (visible or not: a program
  /// that does not verify is not a failure of the same kind), or a constant.
  bool forwardValues() {
    bool changed = false;
    std::vector<Definition> all;
    collect(best.body, all);
    for (size_t i = all.size(); i-- > 0 && !late();) {
      std::set<std::string> used;
      collectReferences(printBlock(best.body, 0), used);
      const Value &value = all[i].value;
      std::set<std::string> identities;
      collectIdentities(best.body, identities);
      if (!used.count(value.name) || identities.count(value.name))
        continue;
      int tries = 0;
      for (size_t j = i; j-- > 0 && tries < 4;) {
        if (!all[j].value.sameType(value) || all[j].value.name == value.name)
          continue;
        if (all[i].isConstant && !all[j].isConstant)
          continue;
        ++tries;
        RandomProgram candidate = best;
        renameReferences(candidate.body, value.name, all[j].value.name);
        if (attempt(std::move(candidate))) {
          changed = true;
          break;
        }
      }
      if (tries == 0 && !all[i].isConstant)
        changed |= replaceByConstant(value);
    }
    return changed;
  }

  bool replaceByConstant(const Value &value) {
    RandomProgram candidate = best;
    bool isFloat = value.element == "f32" || value.element == "f64";
    std::string literal = value.element == "i1" ? "true"
                          : isFloat             ? "1.0 : " + value.element
                                                : "1 : " + value.element;
    std::string scalar = value.name + "s";
    bool found = false;
    size_t total = countStatements(candidate.body);
    for (size_t n = 0; n < total && !found; ++n) {
      size_t at = n;
      atStatement(candidate.body, at, [&](Block &block, size_t i) {
        for (Value &result : block[i].results)
          found |= result.name == value.name;
        if (!found)
          return;
        for (Value &result : block[i].results)
          if (result.name == value.name)
            result.name += "old";
        Block added;
        if (value.dims.empty()) {
          added.push_back(
              {"arith.constant " + literal, {value}, false, {}, {}, {}});
        } else {
          added.push_back({"arith.constant " + literal,
                           {Value{scalar, value.element, {}}},
                           false,
                           {},
                           {},
                           {}});
          added.push_back({"tile.broadcast %" + scalar + " : " + value.element +
                               " -> " + value.type(),
                           {value},
                           false,
                           {},
                           {},
                           {}});
        }
        block.insert(block.begin() + static_cast<int64_t>(i) + 1, added.begin(),
                     added.end());
      });
    }
    return found && attempt(std::move(candidate));
  }

  bool shrinkExtents() {
    bool changed = false;
    for (size_t i = 0; i < best.dims.size(); ++i)
      for (int64_t smaller : {int64_t(1), int64_t(2), best.dims[i].extent / 2,
                              best.dims[i].extent - 1}) {
        const DimSpec &dim = best.dims[i];
        if (dim.isData || !dim.factors.empty() || smaller >= dim.extent ||
            smaller < 1)
          continue;
        RandomProgram candidate = best;
        candidate.dims[i].extent = smaller;
        changed |= attempt(std::move(candidate));
      }
    return changed;
  }

  bool simplifyArguments() {
    bool changed = false;
    for (size_t i = 0; i < best.views.size(); ++i) {
      auto change = [&](auto edit) {
        RandomProgram candidate = best;
        edit(candidate.views[i]);
        changed |= attempt(std::move(candidate));
      };
      if (!best.views[i].sameAs.empty())
        change([](ViewSpec &view) { view.sameAs.clear(); });
      if (!best.views[i].plainLayout)
        change([](ViewSpec &view) { view.plainLayout = true; });
      if (best.views[i].contents != Contents::SmallIntegers)
        change([](ViewSpec &view) { view.contents = Contents::SmallIntegers; });
    }
    return changed;
  }

  RandomProgram best;
  const std::vector<Isa> &isas;
  std::chrono::steady_clock::time_point deadline;
  std::string kind;
};

} // namespace

RandomProgram reduce(RandomProgram program, const std::vector<Isa> &isas,
                     double seconds) {
  return Reducer(std::move(program), isas, seconds).run();
}

} // namespace tessera::fuzz
