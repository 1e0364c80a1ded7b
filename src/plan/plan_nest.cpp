//===- plan_nest.cpp - The decisions for one loop nest --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"
#include "plan/squares.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

using namespace mlir;

namespace tessera {

namespace {

/// How the accesses of a phase behave along one dimension.
struct AxisUse {
  /// Accesses whose elements are adjacent along the dimension.
  int64_t adjacent = 0;
  /// Accesses whose elements lie apart: gathers or scatters when vectorized.
  int64_t apart = 0;
};

class NestPlanner {
public:
  NestPlanner(const Phase &phase, const Planning &planning,
              const Layouts &layouts)
      : phase(phase), planning(planning), analysis(planning.analysis),
        target(planning.target), machine(planning.machine), pins(planning.pins),
        layouts(layouts) {
    plan.id = analysis.idOf(phase);
    auto found = planning.choices.nests.find(plan.id);
    if (found != planning.choices.nests.end())
      choice = found->second;
  }

  NestPlan run() {
    describe();
    collect();
    squares.emplace(phase, analysis, accesses);
    if (choice.transposes == false)
      squares->forgo();
    chooseVectorDim();
    findTile();
    chooseSquares();
    chooseUnroll();
    chooseTile();
    chooseReducedBlock();
    chooseEpilogue();
    findJumps();
    if (plan.reducedBlock > 0) {
      plan.blockBytes = bytesOfBlock();
      // The first rows bring the block along, the others find it.
      if (tileDim)
        plan.busyShare = 1 - std::min(1.0, double(plan.tileRows) /
                                               double(*extentOf(tileDim)));
    }
    chooseTail();
    chooseSumBlock();
    return std::move(plan);
  }

private:
  void describe() {
    for (StringAttr dim : phase.kept)
      plan.space += (plan.space.empty() ? "" : ", ") + dim.getValue().str();
    for (StringAttr dim : phase.reduced)
      plan.space +=
          (plan.space.empty() ? "" : ", ") + ("+" + dim.getValue()).str();
    for (const Root &root : phase.roots)
      plan.roots += (plan.roots.empty() ? "" : ", ") + rootName(root);
    if (phase.join) {
      const LawRow &row = rowOf(phase.join->law);
      plan.law = row.name;
      plan.roots += " in one pass";
      reason("passes.joined", Twine(row.name) + ": " + row.statement);
    }
  }

  std::string rootName(const Root &root) const {
    auto viewName = [&](Value view) {
      tile::KernelOp kernel = analysis.kernel;
      return kernel.getArgName(cast<BlockArgument>(view).getArgNumber()).str();
    };
    switch (root.kind) {
    case Root::Kind::Store:
      return "store " + viewName(cast<tile::StoreOp>(root.op).getView());
    case Root::Kind::Scatter:
      return "scatter " + viewName(cast<tile::ScatterOp>(root.op).getView());
    case Root::Kind::Reduce:
      return "reduce " + tile::stringifyCombiner(
                             cast<tile::ReduceOp>(root.op).getCombiner())
                             .str();
    case Root::Kind::ArgReduce:
      return "arg_reduce";
    case Root::Kind::Contract:
      return "contract";
    case Root::Kind::Scan:
      return "scan";
    case Root::Kind::Sort:
      return "sort";
    case Root::Kind::Materialize:
      return "keep";
    }
    return "";
  }

  /// The accesses and element widths of the phase.
  void collect() {
    llvm::SmallSet<Operation *, 16> seen;
    for (const Root &root : phase.roots) {
      if (!root.op)
        continue;
      if (std::optional<Access> access = getAccess(root.op))
        accesses.push_back(*access);
      for (Value value : analysis.phases.cone(root)) {
        Operation *op = value.getDefiningOp();
        if (!op || !seen.insert(op).second)
          continue;
        expensive += isDeferred(op) && isExpensive(op);
        if (std::optional<Access> access = getAccess(op))
          accesses.push_back(*access);
        note(tile::getElement(value.getType()));
      }
    }
    collectBuffers();
    for (const Access &access : accesses)
      note(access.viewType().getElementType());
    for (const Root &root : phase.epilogue) {
      if (std::optional<Access> access = getAccess(root.op))
        note(access->viewType().getElementType());
      for (Value value : analysis.phases.cone(root)) {
        note(tile::getElement(value.getType()));
        if (Operation *op = value.getDefiningOp())
          if (std::optional<Access> access = getAccess(op))
            note(access->viewType().getElementType());
      }
    }
  }

  /// The tiles in memory that are read, or written element by element.
  void collectBuffers() {
    llvm::SetVector<Value> inMemory;
    for (const Root &root : phase.roots) {
      if (root.kind == Root::Kind::Materialize)
        inMemory.insert(root.value);
      for (Value value : analysis.phases.cone(root)) {
        Operation *op = value.getDefiningOp();
        if (isa<RankedTensorType>(value.getType()) &&
            (!op || !isDeferred(op) || analysis.phases.isMaterialized(value)))
          inMemory.insert(value);
      }
    }
    for (Value value : inMemory) {
      StringAttr innermost = layouts.lookup(value);
      if (!innermost)
        innermost = layoutFor(value, analysis.phases, layouts);
      buffers.push_back({tile::getDims(value.getType()), innermost});
    }
  }

  /// A tile in memory and the dimension it is laid out along, if not the last.
  struct Buffer {
    SmallVector<StringAttr> dims;
    StringAttr innermost;
  };

  /// Whether the buffer's elements along one of its dimensions are adjacent.
  bool isAdjacent(const Buffer &buffer, StringAttr dim) const {
    if (buffer.innermost)
      return buffer.innermost == dim;
    for (StringAttr other : llvm::reverse(buffer.dims)) {
      if (other == dim)
        return true;
      if (analysis.dims.extent(other) != 1)
        return false;
    }
    return false;
  }

  void note(Type type) {
    if (!type.isIntOrFloat())
      return;
    if (type.getIntOrFloatBitWidth() < 32)
      hasNarrow = true;
  }

  std::optional<int64_t> extentOf(StringAttr dim) const {
    return analysis.phases.liveExtent(phase, dim);
  }

  AxisUse useAlong(StringAttr dim) const {
    AxisUse use{squares->buffers(dim, /*adjacent=*/true),
                squares->buffers(dim, /*adjacent=*/false)};
    for (const Access &access : accesses) {
      bool varies = false, adjacent = true;
      for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
        const Access::Axis &described = access.axes[axis];
        bool inOffset =
            described.offset &&
            llvm::is_contained(tile::getDims(described.offset.getType()), dim);
        if (described.dim != dim && !inOffset)
          continue;
        adjacent &= !varies && !inOffset && described.step == 1 &&
                    analysis.strides.isUnit(access, axis);
        varies = true;
      }
      if (varies)
        ++(adjacent ? use.adjacent : use.apart);
    }
    for (const Buffer &buffer : buffers)
      if (llvm::is_contained(buffer.dims, dim))
        ++(isAdjacent(buffer, dim) ? use.adjacent : use.apart);
    return use;
  }

  RowsOfVectors rowsOfVectors(StringAttr dim) const {
    RowsOfVectors rows = tessera::rowsOfVectors(phase, dim, planning);
    return choice.packs == false && rows.copied > 0 ? RowsOfVectors() : rows;
  }

  /// What speaks for such vectors: several rows share them, which those along a
  /// reduced dimension do not, and the rows of the result that is kept lie
  /// along them. An operand that must be copied speaks against, a little.
  static int64_t creditOfRows(const RowsOfVectors &rows) {
    if (!rows.isShared)
      return 0;
    return 8 + 2 * rows.areOfResult + 7 * rows.copied;
  }

  bool isOrdered() const {
    for (const Root &root : phase.roots) {
      if (!root.op)
        continue;
      if (auto reduce = dyn_cast<tile::ReduceOp>(root.op))
        if (reduce.getOrder() != tile::Order::Unordered)
          return true;
      if (auto contract = dyn_cast<tile::ContractOp>(root.op))
        if (contract.getOrder() != tile::Order::Unordered)
          return true;
      if (auto scan = dyn_cast<tile::ScanOp>(root.op))
        if (!isFreeScan(scan))
          return true;
    }
    return false;
  }

  void reason(StringRef code, const Twine &text) {
    plan.reasons.push_back({code.str(), text.str()});
  }

  void chooseVectorDim() {
    for (const Root &root : phase.roots)
      if (root.kind == Root::Kind::Sort || root.kind == Root::Kind::Scatter) {
        reason("scalar.sequential",
               "the elements take their places one after another");
        return;
      }
    StringAttr best;
    int64_t bestScore = 0;
    auto consider = [&](StringAttr dim) {
      AxisUse use = useAlong(dim);
      std::optional<int64_t> extent = extentOf(dim);
      if (dim == pins.vectorAxis && !extent)
        plan.pinConflict = "the extent of vector axis '" + pins.vectorAxis +
                           "' depends on data";
      if (!extent || (*extent < 2 && dim != pins.vectorAxis)) {
        reason("vector.extent", "'" + dim.getValue() + "' is " +
                                    (extent ? "too short" : "not constant"));
        return;
      }
      if (dim == pins.vectorAxis) {
        bestScore = std::numeric_limits<int64_t>::max();
        best = dim;
        return;
      }
      // An access whose elements lie apart costs about as much as it has lanes,
      // unless squares are transposed or an operand is copied.
      const RowsOfVectors rows = rowsOfVectors(dim);
      int64_t score = 2 + 4 * use.adjacent - 4 * use.apart +
                      3 * squares->turned(dim) + creditOfRows(rows);
      use.adjacent += rows.copied;
      if (score > 0 && use.adjacent > 0)
        plan.alternatives.vectorDims.push_back(dim.getValue().str());
      if (dim == choice.vectorDim && pins.vectorAxis.empty()) {
        bestScore = std::numeric_limits<int64_t>::max();
        best = dim;
        return;
      }
      if (score <= 0) {
        reason("vector.strided",
               "accesses along '" + dim.getValue() + "' are not adjacent");
        return;
      }
      if (score > bestScore) {
        bestScore = score;
        best = dim;
      }
    };
    if (isOrdered() && !phase.reduced.empty()) {
      reason("vector.ordered",
             "the order of evaluation is pinned along the reduced dimensions");
      for (StringAttr dim : phase.reduced)
        if (dim == pins.vectorAxis)
          plan.pinConflict = "vector axis '" + pins.vectorAxis +
                             "' is reduced in a fixed order";
    } else
      for (StringAttr dim : llvm::reverse(phase.reduced))
        consider(dim);
    for (StringAttr dim : llvm::reverse(phase.kept))
      consider(dim);
    if (!best)
      return;
    plan.vectorDim = best.getValue().str();
    plan.lanes = pins.lanes ? pins.lanes : target.lanes32();
    if (best == pins.vectorAxis)
      reason("pin.vector_axis", "fixed by the schedule");
    else if (best == choice.vectorDim)
      reason("vector.chosen", "elements along '" + best.getValue() +
                                  "' fill the lanes in the plan that was "
                                  "chosen");
    else
      reason("vector.adjacent",
             "elements along '" + best.getValue() + "' are adjacent in memory");
  }

  void chooseUnroll() {
    if (plan.vectorDim.empty() || sumsRows)
      return;
    StringAttr dim =
        StringAttr::get(analysis.kernel->getContext(), plan.vectorDim);
    int64_t extent = *extentOf(dim);
    int64_t wanted = pins.unroll ? pins.unroll : expensive ? 2 : 4;
    // Running results of all roots take half of the registers at most.
    if (!pins.unroll)
      wanted = std::clamp<int64_t>(
          target.vectorRegisters / (2 * std::max<int64_t>(runningResults(), 1)),
          1, wanted);
    if (llvm::any_of(phase.roots,
                     [](const Root &root) {
                       return root.kind == Root::Kind::ArgReduce;
                     }) &&
        !pins.unroll)
      wanted = 2;
    if (plan.transposes && !pins.unroll)
      wanted = 1;
    // Rows share what is loaded, and need registers for it.
    if (tileDim && !pins.unroll)
      wanted = std::max<int64_t>(1, (target.vectorRegisters >= 32 ? 4 : 2) /
                                        registersPerVector(tiled));
    // The vectors of a scan depend on each other.
    bool isChained = phase.roots[0].kind == Root::Kind::Scan &&
                     llvm::is_contained(phase.reduced, dim);
    int64_t vectors = std::max<int64_t>(1, extent / plan.lanes);
    plan.alternatives.mostUnroll =
        isChained || pins.unroll
            ? 1
            : std::min({vectors, mostResults(), int64_t(16)});
    // The code of a square is long.
    if (plan.transposes)
      plan.alternatives.mostUnroll =
          std::min<int64_t>(plan.alternatives.mostUnroll, 4);
    if (choice.unroll)
      wanted = *choice.unroll;
    wanted = std::clamp<int64_t>(wanted, 1, plan.alternatives.mostUnroll);
    plan.unroll = pins.unroll ? pins.unroll : std::min(wanted, vectors);
    if (pins.unroll > 1 && isChained)
      plan.pinConflict =
          "the vectors of a scan depend on each other and cannot "
          "be unrolled";
    reason("unroll", Twine(plan.unroll) + " vectors per iteration: " +
                         (vectors < wanted  ? "all there are"
                          : pins.unroll     ? "fixed by the schedule"
                          : choice.unroll   ? "chosen by predicted time"
                          : plan.transposes ? "squares share nothing"
                          : expensive       ? "long chains of arithmetic"
                                            : "cheap elements"));
  }

  /// Whether squares of elements are transposed between the vector dimension
  /// and another, and how many rows these have.
  void chooseSquares() {
    if (plan.vectorDim.empty())
      return;
    StringAttr dim =
        StringAttr::get(analysis.kernel->getContext(), plan.vectorDim);
    StringAttr other = squares->partner(dim);
    const int64_t most = squares->mostRows(dim, plan.lanes, target);
    if (!other || most < 2)
      return;
    plan.alternatives.transposes = true;
    if (choice.transposes == false)
      return;
    plan.transposes = true;
    plan.tileDim = other.getValue().str();
    plan.tileRows = most;
    if (choice.tileRows && *choice.tileRows >= 2 && *choice.tileRows <= most &&
        llvm::isPowerOf2_64(*choice.tileRows))
      plan.tileRows = *choice.tileRows;
    reason("tile.squares",
           "squares of " + Twine(plan.tileRows) + " by " + Twine(plan.lanes) +
               " elements are transposed in registers: other accesses are "
               "adjacent along '" +
               plan.tileDim + "'");
    // Lines of the nearest cache need not be waited for.
    plan.asksForLines =
        llvm::any_of(
            phase.roots,
            [](const Root &root) { return root.kind == Root::Kind::Store; }) &&
        bytesOfArrays(accesses, analysis) > double(machine.memory[0].bytes);
    if (plan.asksForLines)
      reason("tile.lines", "lines that a square is stored to are asked for "
                           "before it is loaded: the arrays do not stay in the "
                           "nearest cache");
  }

  /// Finds the contraction of the phase, and the dimension of its result along
  /// which the vectors that are loaded can serve several rows.
  void findTile() {
    if (plan.vectorDim.empty() || phase.roots.size() != 1)
      return;
    if (llvm::none_of(phase.kept,
                      [&](StringAttr dim) { return dim == plan.vectorDim; }))
      return findRowsOfSums();
    tiled = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
    if (!tiled || tiled.getOrder() == tile::Order::Tree)
      return;
    // Without fused multiply-adds an ordered contraction calls a function for
    // each element: no registers are kept across it.
    bool isFloat = isa<FloatType>(tile::getElement(tiled.getType()));
    if (isFloat && !target.hasFma && tiled.getOrder() != tile::Order::Unordered)
      return;
    auto varies = [](Value operand, StringRef dim) {
      return llvm::any_of(tile::getDims(operand.getType()),
                          [&](StringAttr other) { return other == dim; });
    };
    vectorOperand = varies(tiled.getRhs(), plan.vectorDim) ? 1 : 0;
    Value along = tiled->getOperand(vectorOperand);
    for (StringAttr dim : phase.kept)
      if (dim != plan.vectorDim && !varies(along, dim) &&
          extentOf(dim).value_or(0) >= 2)
        tileDim = dim;
  }

  /// Where the lanes hold partial sums, several rows are summed up beside each
  /// other: what does not vary from row to row is loaded once, their chains
  /// of additions overlap, and their lanes are added up together at the end.
  void findRowsOfSums() {
    auto contract = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
    if (!contract || contract.getOrder() != tile::Order::Unordered ||
        pins.unroll > 1)
      return;
    int64_t most = 2;
    for (StringAttr dim : phase.kept)
      if (int64_t rows = std::min(extentOf(dim).value_or(0), plan.lanes);
          rows >= most) {
        most = rows;
        tileDim = dim;
      }
    if (!tileDim)
      return;
    // A power of two of them has its sums in as many lanes.
    int64_t registers = registersPerVector(contract);
    for (int64_t rows = 2;
         rows <= most && (rows + 2) * registers <= target.vectorRegisters;
         rows *= 2)
      plan.tileRows = rows;
    if (plan.tileRows == 1)
      return;
    plan.tileDim = tileDim.getValue().str();
    sumsRows = true;
    reason("tile.sums", Twine(plan.tileRows) + " of '" + plan.tileDim +
                            "' together: their lanes are added up at once");
    choosePrefetchedRows(contract);
  }

  /// Whether an operand's rows are read repeatedly by loops inside the tiled
  /// one: but for the first time nothing waits for memory, which can bring the
  /// next rows meanwhile. The processor's own prefetchers do not see them come.
  void choosePrefetchedRows(tile::ContractOp contract) {
    // Further reduced dimensions would have loops of their own inside.
    if (phase.reduced.size() != 1)
      return;
    auto *tiledLevel = llvm::find(phase.kept, tileDim);
    for (Value operand : {contract.getLhs(), contract.getRhs()}) {
      auto load = operand.getDefiningOp<tile::LoadOp>();
      SmallVector<StringAttr> dims = tile::getDims(operand.getType());
      if (!load || analysis.phases.isMaterialized(operand) ||
          !llvm::is_contained(dims, tileDim))
        continue;
      int64_t repeats = 1;
      for (auto *level = tiledLevel + 1; level != phase.kept.end(); ++level)
        if (!llvm::is_contained(dims, *level))
          repeats *= extentOf(*level).value_or(1);
      plan.prefetchesRows |= repeats > 1;
    }
    if (plan.prefetchesRows)
      reason("prefetch.rows",
             "rows are read repeatedly while the next ones are on their way");
  }

  /// Vectors per iteration whose running results fit the registers beside what
  /// is computed for one of them.
  int64_t mostResults() const {
    int64_t results = std::max<int64_t>(runningResults(), 1);
    if (tiled)
      results = registersPerVector(tiled);
    return std::max<int64_t>(1, (target.vectorRegisters - 4) / results);
  }

  /// Values that are carried from one vector to the next.
  int64_t runningResults() const {
    int64_t count = 0;
    for (const Root &root : phase.roots) {
      auto reduce = dyn_cast_or_null<tile::ReduceOp>(root.op);
      // Sums of deviations are computed from another's.
      if (root.kind == Root::Kind::Reduce &&
          root.dependence.form != Dependence::Form::Deviation)
        count += int64_t(reduce.getInputs().size()) *
                 (reduce.getCombiner() == tile::Combiner::Add ? 1 : 2);
    }
    return count;
  }

  /// The registers that one vector of results takes.
  int64_t registersPerVector(tile::ContractOp contract) const {
    Type element = tile::getElement(contract.getType());
    int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    return std::max<int64_t>(1, plan.lanes * bits / target.vectorBits);
  }

  /// Rows of the result that are computed together. Their accumulators, the
  /// vectors and one element of each row in turn have to fit the registers.
  void chooseTile() {
    if (!tileDim || sumsRows)
      return;
    int64_t extent = *extentOf(tileDim);
    // Cycles of one step of the contraction: two multiply-adds or two loads in
    // each, and the latency of a multiply-add between two of one accumulator.
    auto cycles = [&](int64_t rows) {
      double products = 0.5 * double(rows * plan.unroll);
      double loads = 0.5 * double(rows + plan.unroll);
      return std::max({products, loads, 4.0}) + 0.2 * loads;
    };
    auto registers = [&](int64_t rows) {
      return (rows * plan.unroll + plan.unroll + 1) * registersPerVector(tiled);
    };
    double least = std::numeric_limits<double>::max();
    for (int64_t rows = 1; rows <= std::min<int64_t>(extent, 16); ++rows) {
      if (rows > 1 && registers(rows) >= target.vectorRegisters)
        break;
      if (choice.tileRows == rows) {
        plan.tileRows = rows;
        break;
      }
      int64_t rest = extent % rows;
      double total =
          double(extent / rows) * cycles(rows) + (rest ? cycles(rest) : 0);
      if (total < least) {
        least = total;
        plan.tileRows = rows;
      }
    }
    if (plan.tileRows == 1)
      return;
    plan.tileDim = tileDim.getValue().str();
    reason("tile.rows", Twine(plan.tileRows) + " of '" + plan.tileDim +
                            "' together: " + Twine(registers(plan.tileRows)) +
                            " of " + Twine(target.vectorRegisters) +
                            " registers");
    choosePacking(extent / plan.tileRows);
  }

  /// Whether an operand's vectors follow each other in memory, as far as arrays
  /// are dense: it takes whole rows, one after another.
  bool liesTogether(Value operand) const {
    auto load = operand.getDefiningOp<tile::LoadOp>();
    if (!load)
      return false;
    Access access = *getAccess(load);
    const unsigned last = access.axes.size() - 1;
    const Access::Axis &row = access.axes[last];
    return last > 0 && row.dim && row.dim.getValue() == plan.vectorDim &&
           row.step == 1 && !row.offset &&
           extentOf(row.dim) == analysis.accesses.extent(access, last) &&
           access.axes[last - 1].dim && access.axes[last - 1].step == 1 &&
           tile::getDims(operand.getType()).size() == 2;
  }

  /// Whether the operand with the vectors is copied before it is used: all of
  /// it is read again for every group of rows, and where its lines lie far
  /// apart they displace each other in the caches.
  void choosePacking(int64_t uses) {
    constexpr int64_t fewUses = 5;
    Value operand = tiled->getOperand(vectorOperand);
    Operation *op = operand.getDefiningOp();
    std::optional<int64_t> elements =
        analysis.dims.elements(tile::getDims(operand.getType()));
    const bool lieApart =
        rowsOfVectors(
            StringAttr::get(analysis.kernel->getContext(), plan.vectorDim))
            .copied > 0;
    if (!op || !isDeferred(op) || analysis.phases.isMaterialized(operand) ||
        !elements ||
        (!choice.packs &&
         ((uses < fewUses && !lieApart) || liesTogether(operand))))
      return;
    const int64_t size = bytesOf(tile::getElement(operand.getType()));
    if (choice.packs
            ? !*choice.packs
            : !lieApart && (*elements > machine.memory[1].bytes / 2 / size ||
                            *elements <= machine.memory[0].bytes / 2 / size))
      return;
    plan.packedOperand = vectorOperand;
    reason("pack.operand", "its " + Twine(*elements * size) +
                               " bytes are read " + Twine(uses) +
                               " times, from memory of their own");
  }

  /// Whether the elements of the reduced dimension can be done in blocks: the
  /// results between them lie in memory as they are.
  bool mayBlock() const {
    if (!tiled || phase.reduced.size() != 1 ||
        tile::ContractOp(tiled).getOrder() == tile::Order::Right)
      return false;
    return extentOf(phase.reduced[0]).has_value();
  }

  void chooseReducedBlock() {
    if (!mayBlock())
      return;
    int64_t extent = *extentOf(phase.reduced[0]);
    if (choice.reducedBlock) {
      if (*choice.reducedBlock < extent)
        plan.reducedBlock = *choice.reducedBlock;
      return;
    }
    // An array that is not copied and comes from far away: its rows are streams
    // that prefetchers follow, as many as they can.
    constexpr int64_t streams = 16;
    std::optional<Access> streamed = streamedOperand();
    if (plan.packedOperand >= 0 || !streamed ||
        viewBytes(*streamed) <= machine.memory[1].bytes || extent <= streams ||
        *extentOf(vectorDimension()) <= plan.lanes * plan.unroll)
      return;
    plan.reducedBlock = streams;
    reason("reduced.streams", Twine(streams) + " of '" +
                                  phase.reduced[0].getValue() +
                                  "' for all results before the next: rows "
                                  "that come from memory are read along");
  }

  StringAttr vectorDimension() const {
    return StringAttr::get(analysis.kernel->getContext(), plan.vectorDim);
  }

  double viewBytes(const Access &access) const {
    double bytes = double(bytesOf(access.viewType().getElementType()));
    for (unsigned axis = 0; axis < access.axes.size(); ++axis)
      bytes *= double(analysis.accesses.extent(access, axis));
    return bytes;
  }

  /// The array that the nest reads vectors of, if it is one: a contraction's
  /// operand, or what is copied to memory.
  std::optional<Access> streamedOperand() const {
    if (plan.vectorDim.empty() || phase.roots.size() != 1)
      return std::nullopt;
    Operation *op = phase.roots[0].op;
    if (tiled)
      op = tile::ContractOp(tiled)->getOperand(vectorOperand).getDefiningOp();
    else if (phase.roots[0].kind != Root::Kind::Materialize)
      return std::nullopt;
    auto load = dyn_cast_or_null<tile::LoadOp>(op);
    if (!load || (tiled && analysis.phases.isMaterialized(load.getResult())))
      return std::nullopt;
    return getAccess(load);
  }

  /// Where an array is read in pieces, each piece but the next in a row waits
  /// for memory that no prefetcher has asked for.
  void findJumps() {
    std::optional<Access> access = streamedOperand();
    if (!access || plan.packedOperand >= 0)
      return;
    // As many bytes as are read in the time of one jump: alone, and where
    // several streams are read side by side. Measured on one micro-architecture
    // (bench/results).
    constexpr double alone = 420, amongStreams = 300;
    const bool isAlong = !tiled || plan.reducedBlock > 0;
    for (unsigned axis = 0; axis < access->axes.size(); ++axis) {
      if (!access->axes[axis].dim || access->axes[axis].dim != plan.vectorDim ||
          !analysis.strides.isUnit(*access, axis))
        continue;
      int64_t piece =
          isAlong ? *extentOf(vectorDimension()) : plan.lanes * plan.unroll;
      int64_t row = analysis.accesses.extent(*access, axis);
      if (piece >= row && isAlong)
        return;
      double pieces = viewBytes(*access) / double(std::min(piece, row)) /
                      double(bytesOf(access->viewType().getElementType()));
      plan.jumpBytes = pieces * (plan.reducedBlock > 0 ? amongStreams : alone);
    }
  }

  /// What a block of the reduced dimension touches of operands and result.
  double bytesOfBlock() const {
    auto contract = tile::ContractOp(tiled);
    double bytes = 0;
    for (Value tile :
         {contract.getLhs(), contract.getRhs(), contract.getResult()}) {
      double size = double(bytesOf(tile::getElement(tile.getType())));
      for (StringAttr dim : tile::getDims(tile.getType()))
        size *= dim == phase.reduced[0] ? double(plan.reducedBlock)
                                        : double(extentOf(dim).value_or(1));
      bytes += size;
    }
    return bytes;
  }

  static int64_t bytesOf(Type element) {
    return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  }

  /// Between blocks of the reduced dimension the results are not complete.
  void chooseEpilogue() {
    plan.alternatives.hasEpilogue =
        tiled && !phase.epilogue.empty() && plan.reducedBlock == 0;
    plan.epilogue =
        plan.alternatives.hasEpilogue && choice.epilogue.value_or(true);
    if (!plan.epilogue)
      return;
    for (const Root &root : phase.epilogue)
      plan.roots += ", " + rootName(root);
    reason("epilogue.registers",
           "what follows is done while the results are in registers");
  }

  /// Whether the last vector may repeat elements of the one before it: there is
  /// one, and doing an element twice leaves what doing it once does.
  bool mayOverlapTail(int64_t extent) const {
    if (tiled || extent < plan.lanes ||
        llvm::none_of(
            phase.kept, [&](StringAttr dim) { return dim == plan.vectorDim; }))
      return false;
    SmallVector<BlockArgument> stored;
    for (const Root &root : phase.roots) {
      if (root.kind == Root::Kind::Store)
        stored.push_back(getAccess(root.op)->view);
      else if (root.kind != Root::Kind::Materialize &&
               root.kind != Root::Kind::Reduce)
        return false;
    }
    if (stored.empty())
      return true;
    // What was stored must not be an operand of what is done again.
    return analysis.accesses.aliasMode() == AliasMode::Disjoint &&
           llvm::none_of(accesses, [&](const Access &access) {
             return !access.writes && llvm::is_contained(stored, access.view);
           });
  }

  void chooseTail() {
    bool masks =
        hasNarrow ? target.hasMaskedByteAccess : target.hasMaskedAccess;
    if (!plan.vectorDim.empty()) {
      int64_t extent = *extentOf(
          StringAttr::get(analysis.kernel->getContext(), plan.vectorDim));
      plan.alternatives.hasTail = extent % plan.lanes != 0;
      plan.alternatives.overlapsTail =
          plan.alternatives.hasTail && mayOverlapTail(extent);
    }
    TailForm usual = masks ? TailForm::Mask : TailForm::Scalar;
    plan.tail = choice.tail.value_or(usual);
    if (!pins.tail.empty())
      plan.tail = pins.tail == "mask"   ? TailForm::Mask
                  : pins.tail == "peel" ? TailForm::Scalar
                                        : TailForm::Overlap;
    if (plan.tail == TailForm::Overlap && !plan.alternatives.overlapsTail)
      plan.tail = usual;
  }

  /// Whether the nest adds up elements along its lanes in any order.
  bool sumsAlongLanes() const {
    if (plan.vectorDim.empty() || phase.reduced.size() != 1 ||
        phase.reduced[0] != plan.vectorDim)
      return false;
    return llvm::any_of(phase.roots, [](const Root &root) {
      auto reduce = dyn_cast_or_null<tile::ReduceOp>(root.op);
      return root.kind == Root::Kind::Reduce &&
             reduce.getCombiner() == tile::Combiner::Add &&
             reduce.getOrder() == tile::Order::Unordered;
    });
  }

  void chooseSumBlock() {
    if (!sumsAlongLanes())
      return;
    int64_t extent = *analysis.dims.extent(phase.reduced[0]);
    int64_t group = plan.lanes * plan.unroll;
    int64_t groups = extent / group;
    // The second loop of a joined phase has one vector per iteration.
    const int64_t fewest = phase.join ? plan.lanes : group;
    plan.partials = fewest;
    constexpr int64_t shortest = 64;
    if (groups <= 2 * shortest)
      return;
    plan.sumBlock =
        std::max<int64_t>(shortest, int64_t(std::sqrt(double(groups))));
    int64_t chain =
        plan.sumBlock + (extent / fewest + plan.sumBlock - 1) / plan.sumBlock;
    plan.partials = std::max(fewest, extent / chain);
    reason("sum.blocks", "partial sums are added up every " +
                             Twine(plan.sumBlock) +
                             " iterations to bound their rounding errors");
  }

  const Phase &phase;
  const Planning &planning;
  const KernelAnalysis &analysis;
  const Target &target;
  const Machine &machine;
  const Pins &pins;
  NestChoice choice;
  const Layouts &layouts;
  SmallVector<Access> accesses;
  /// Set after the accesses.
  std::optional<Squares> squares;
  SmallVector<Buffer> buffers;
  /// The contraction whose result is tiled, and along which dimension.
  tile::ContractOp tiled;
  StringAttr tileDim;
  /// Its operand that varies along the vector dimension.
  int vectorOperand = 0;
  /// Whether the tile has rows of sums along the lanes.
  bool sumsRows = false;
  bool hasNarrow = false;
  int64_t expensive = 0;
  NestPlan plan;
};

} // namespace

NestPlan planNest(const Phase &phase, const Planning &planning,
                  const Layouts &layouts) {
  return NestPlanner(phase, planning, layouts).run();
}

} // namespace tessera
