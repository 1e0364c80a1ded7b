//===- plan_splits.cpp - Reductions that programs share -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grid of few programs leaves threads without work. Where a program is one
// long reduction in any order, and what surrounds it, the reduction can be cut:
// several programs do a part each, and the last of them to finish combines the
// parts in their order and does the rest. What precedes the reduction is done
// by each of them, so nothing may be written there.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// Parts are given to programs, of which there are few: more is no use.
constexpr int64_t mostParts = 256;
/// Parts of loops begin at multiples of this, as vectors do, where that
/// leaves the last part enough.
constexpr int64_t shareUnit = 16, enough = 64;

bool writes(Operation *op) {
  bool found = false;
  op->walk([&](Operation *inner) {
    std::optional<Access> access = getAccess(inner);
    found |= access && access->writes;
  });
  return found;
}

/// The elements of some dimensions; 16 stand for each that data decides.
double elementsOf(ArrayRef<StringAttr> dims, const DimTable &table) {
  double elements = 1;
  for (StringAttr dim : dims)
    elements *= double(table.extentBound(dim).value_or(16));
  return elements;
}

/// The elements of the loops of an operation, of those inside it too.
double workOf(Operation *top, const DimTable &table) {
  double work = 0;
  top->walk([&](Operation *op) {
    std::optional<Root> root = rootOf(op);
    if (!root)
      return;
    SmallVector<StringAttr> kept, reduced;
    rootSpace(*root, kept, reduced);
    kept.append(reduced.begin(), reduced.end());
    work += elementsOf(kept, table);
  });
  if (auto fold = dyn_cast<tile::FoldOp>(top))
    work = (work + 1) * elementsOf({fold.getDimAttr()}, table);
  return work;
}

/// The bytes that one part leaves; -1 where an extent has no bound.
int64_t bytesOf(ValueRange results, const DimTable &table) {
  int64_t bytes = 0;
  for (Value result : results) {
    Type element = tile::getElement(result.getType());
    int64_t size =
        element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
    for (StringAttr dim : tile::getDims(result.getType())) {
      std::optional<int64_t> bound = table.extentBound(dim);
      if (!bound || __builtin_mul_overflow(size, *bound, &size))
        return -1;
    }
    bytes += size;
  }
  return bytes;
}

/// What the operation of a site is called in messages.
const char *nameOf(Operation *op) {
  return isa<tile::FoldOp>(op)     ? "fold"
         : isa<tile::ReduceOp>(op) ? "reduction"
                                   : "contraction";
}

class SiteFinder {
public:
  explicit SiteFinder(const Planning &planning)
      : analysis(planning.analysis), table(analysis.dims) {}

  std::optional<SplitSite> run(const std::vector<Step> &steps,
                               std::string &why) {
    why = "the program has no fold, contraction or reduction in any order "
          "that nothing is written before";
    double most = 0;
    std::optional<SplitSite> best;
    for (const Step &step : steps) {
      Operation *op = step.immediate ? step.immediate : step.phase.roots[0].op;
      std::optional<SplitSite> site = step.immediate
                                          ? foldAt(step.immediate, why)
                                          : loopsAt(step.phase, why);
      if (double work = site ? workOf(op, table) : 0; work > most) {
        best = site;
        most = work;
      }
      if (isWritten(step))
        break;
    }
    if (best)
      why.clear();
    return best;
  }

private:
  static bool isWritten(const Step &step) {
    if (step.immediate)
      return writes(step.immediate);
    return llvm::any_of(
        llvm::concat<const Root>(step.phase.roots, step.phase.epilogue),
        [](const Root &root) { return root.op && writes(root.op); });
  }

  std::optional<SplitSite> foldAt(Operation *op, std::string &why) {
    auto fold = dyn_cast<tile::FoldOp>(op);
    if (!fold || fold.getOrder() != tile::Order::Unordered || writes(fold))
      return std::nullopt;
    SplitSite site{op, fold.getDimAttr(), table.extent(fold.getDimAttr())};
    site.most = std::min(
        table.extentBound(fold.getDimAttr()).value_or(mostParts), mostParts);
    if (site.most < 2) {
      why = "the fold over '" + site.dim.str() + "' has too few iterations";
      return std::nullopt;
    }
    if (bytesOf(fold.getResults(), table) < 0) {
      why = "what the fold over '" + site.dim.str() +
            "' carries has an extent that nothing bounds";
      return std::nullopt;
    }
    return site;
  }

  /// Whether parts of what a root of loops computes can be combined by name.
  static bool hasParts(const Root &root) {
    if (root.kind == Root::Kind::Contract) {
      auto contract = cast<tile::ContractOp>(root.op);
      return contract.getOrder() == tile::Order::Unordered &&
             isa<RankedTensorType>(contract.getType());
    }
    if (root.kind != Root::Kind::Reduce)
      return false;
    auto reduce = cast<tile::ReduceOp>(root.op);
    return reduce.getOrder() == tile::Order::Unordered &&
           reduce.getCombiner() != tile::Combiner::Custom;
  }

  /// Contractions or reductions that share their loops.
  std::optional<SplitSite> loopsAt(const Phase &phase, std::string &why) {
    // Joined reductions need what all elements give for their second loop, and
    // what is kept beside a reduction would be there in parts.
    if (phase.join || !llvm::all_of(phase.roots, hasParts))
      return std::nullopt;
    SmallVector<Value> results;
    for (const Root &root : phase.roots)
      llvm::append_range(results, root.op->getResults());
    SplitSite site;
    site.op = phase.roots[0].op;
    for (StringAttr dim : phase.reduced)
      if (std::optional<int64_t> extent = table.extent(dim);
          extent && *extent > site.extent.value_or(0)) {
        site.dim = dim;
        site.extent = extent;
      }
    if (!site.dim || bytesOf(results, table) < 0)
      return std::nullopt;
    site.most = std::min(*site.extent, mostParts);
    if (site.most >= 2)
      return site;
    why = std::string("the ") + nameOf(site.op) + " over '" + site.dim.str() +
          "' has too few elements";
    return std::nullopt;
  }

  const KernelAnalysis &analysis;
  const DimTable &table;
};

/// The results of the operations that share the site's loops.
SmallVector<Value> resultsAt(const SplitSite &site,
                             const std::vector<Step> &steps) {
  for (const Step &step : steps)
    if (!step.immediate && step.phase.roots[0].op == site.op) {
      SmallVector<Value> results;
      for (const Root &root : step.phase.roots)
        llvm::append_range(results, root.op->getResults());
      return results;
    }
  return SmallVector<Value>(site.op->getResults());
}

} // namespace

std::optional<SplitSite> findSplit(tile::ParallelOp grid,
                                   const std::vector<Step> &steps,
                                   const Planning &planning, std::string &why) {
  std::optional<int64_t> programs = planning.analysis.dims.elements(
      llvm::to_vector(grid.getDims().getAsRange<StringAttr>()));
  if (!programs || *programs == 0 || *programs > (int64_t(1) << 20)) {
    why = "there are no programs, or more than threads";
    return std::nullopt;
  }
  return SiteFinder(planning).run(steps, why);
}

std::optional<std::pair<int64_t, int64_t>> sharesOf(int64_t extent,
                                                    int64_t splits) {
  const int64_t even = llvm::divideCeil(extent, splits);
  const int64_t aligned = llvm::divideCeil(even, shareUnit) * shareUnit;
  auto lastOf = [&](int64_t share) { return extent - share * (splits - 1); };
  if (lastOf(aligned) >= enough)
    return std::pair(aligned, lastOf(aligned));
  if (lastOf(even) < 1)
    return std::nullopt;
  return std::pair(even, lastOf(even));
}

void planSplits(tile::ParallelOp grid, size_t number,
                const std::vector<Step> &steps, const Planning &planning,
                GridPlan &plan) {
  std::optional<SplitSite> site =
      findSplit(grid, steps, planning, plan.unsplit);
  if (!site)
    return;
  const KernelAnalysis &analysis = planning.analysis;
  const bool isFold = isa<tile::FoldOp>(site->op);
  plan.mostSplits = site->most;
  plan.splitDim = site->dim.str();
  // Operations are numbered in pre-order.
  int64_t first = analysis.numbers.lookup(site->op), last = first;
  site->op->walk([&](Operation *op) {
    last = std::max<int64_t>(last, analysis.numbers.lookup(op));
  });
  plan.splitNests = {first, last};
  plan.splitUnits =
      isFold ? site->most : llvm::divideCeil(*site->extent, shareUnit);
  plan.partBytes = bytesOf(resultsAt(*site, steps), analysis.dims);
  auto chosen = planning.choices.splits.find(number);
  if (chosen == planning.choices.splits.end() || chosen->second <= 1 ||
      chosen->second > site->most ||
      (!isFold && !sharesOf(*site->extent, chosen->second)))
    return;
  plan.splits = chosen->second;
  plan.reasons.push_back(
      {"grid.splits", std::to_string(plan.splits) + " programs share the " +
                          nameOf(site->op) + " over '" + plan.splitDim +
                          "' of each: there are fewer programs than threads"});
}

} // namespace tessera
