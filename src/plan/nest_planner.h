//===- nest_planner.h - What decides the plan of one loop nest -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_NEST_PLANNER_H
#define TESSERA_PLAN_NEST_PLANNER_H

#include "analysis/window_region.h"
#include "plan/plan.h"
#include "plan/squares.h"

#include <optional>
#include <utility>

namespace tessera {

struct ContractionAtom;
struct NarrowOperand;

/// How the accesses of a phase behave along one dimension.
struct AxisUse {
  /// Accesses whose elements are adjacent along the dimension.
  int64_t adjacent = 0;
  /// Accesses whose elements lie apart: gathers or scatters when vectorized.
  int64_t apart = 0;
  /// Loads of elements a small step apart: some vectors and shuffles each.
  int64_t stepped = 0;
};

/// Decides one nest, in an order in which each decision knows those before it.
/// What it finds about the phase is in nest_facts.cpp, what concerns
/// contractions in plan_contraction.cpp, the rest in plan_nest.cpp.
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

  NestPlan run();

private:
  // What is found about the phase.
  /// A tile in memory and the dimension it is laid out along, if not the last.
  struct Buffer {
    mlir::SmallVector<mlir::StringAttr> dims;
    mlir::StringAttr innermost;
  };

  void describe();

  std::string rootName(const Root &root) const;

  /// The accesses and element widths of the phase.
  void collect();

  /// The tiles in memory that are read, or written element by element.
  void collectBuffers();

  /// Whether the buffer's elements along one of its dimensions are adjacent.
  bool isAdjacent(const Buffer &buffer, mlir::StringAttr dim) const;

  AxisUse useAlong(mlir::StringAttr dim) const;

  /// Whether elements a small step apart along the dimension are no reason
  /// against it: in a contraction vectors along another one, which rows of the
  /// result share, are better.
  bool maySteppedPay(mlir::StringAttr dim) const;

  RowsOfVectors rowsOfVectors(mlir::StringAttr dim) const;

  bool isOrdered() const;

  /// Vectors per iteration whose running results fit the registers beside what
  /// is computed for one of them.
  int64_t mostResults() const;

  /// Values that are carried from one vector to the next.
  int64_t runningResults() const;

  void note(mlir::Type type) {
    if (!type.isIntOrFloat())
      return;
    if (type.getIntOrFloatBitWidth() < 32)
      hasNarrow = true;
  }

  std::optional<int64_t> extentOf(mlir::StringAttr dim) const {
    return analysis.phases.liveExtent(phase, dim);
  }

  static int64_t bytesOf(mlir::Type element) {
    return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  }

  mlir::StringAttr vectorDimension() const {
    return mlir::StringAttr::get(analysis.kernel->getContext(), plan.vectorDim);
  }

  /// What speaks for such vectors: several rows share them, which those along a
  /// reduced dimension do not, and the rows of the result that is kept lie
  /// along them. An operand that must be copied speaks against, a little. A
  /// second choice is looked at by the search.
  static int64_t creditOfRows(const RowsOfVectors &rows) {
    if (!rows.isShared)
      return 0;
    if (rows.isSecond)
      return 6;
    return 8 + 2 * rows.areOfResult + 7 * rows.copied;
  }

  void reason(llvm::StringRef code, const llvm::Twine &text) {
    plan.reasons.push_back({code.str(), text.str()});
  }

  // Decisions for all nests.
  void chooseVectorDim();

  void chooseUnroll();

  /// Whether squares of elements are transposed between the vector dimension
  /// and another, and how many rows these have.
  void chooseSquares();

  /// Whether results go past the caches: where the kernel's arrays do not fit
  /// them, what is written would come in from memory first, and push out what
  /// is read.
  void chooseStores();
  void alignStores();

  /// The bytes of all arrays that the kernel reads or writes.
  double bytesOfKernel() const;

  /// Whether the last vector may repeat elements of the one before it: there is
  /// one, and doing an element twice leaves what doing it once does.
  bool mayOverlapTail(int64_t extent) const;

  TailForm usualTail() const;
  void chooseTail();

  /// Whether the nest adds up elements along its lanes in any order.
  bool sumsAlongLanes() const;

  void chooseSumBlock();

  // Decisions for contractions.
  /// Finds the contraction of the phase, and the dimension of its result along
  /// which the vectors that are loaded can serve several rows.
  void findTile();

  /// Where the lanes hold partial sums, several rows are summed up beside each
  /// other: what does not vary from row to row is loaded once, their chains
  /// of additions overlap, and their lanes are added up together at the end.
  void findRowsOfSums();

  /// The most rows along a dimension whose addresses registers hold. Rows that
  /// may hang over the end of an array have one each; others lie one stride
  /// apart.
  int64_t addressedRows(mlir::StringAttr dim) const;

  /// The most rows of the tile whose lines the nearest cache holds at once:
  /// where they lie a multiple of a page apart, or a large part of one, they
  /// have few places there.
  int64_t rowsInNearestCache() const;

  /// From one element of an access along a dimension to the next, as far as
  /// arrays are dense; 0 where it does not vary.
  int64_t bytesApart(const Access &access, mlir::StringAttr dim) const;

  /// Whether the nearest cache has places for all lines that a square is stored
  /// to at once.
  bool hasPlacesForSquare() const;

  /// Whether an operand's rows are read repeatedly by loops inside the tiled
  /// one: but for the first time nothing waits for memory, which can bring the
  /// next rows meanwhile. The processor's own prefetchers do not see them come.
  void choosePrefetchedRows(tile::ContractOp contract);

  /// The registers that one vector of results takes.
  int64_t registersPerVector(tile::ContractOp contract) const;

  /// Rows of the result that are computed together. Their accumulators, the
  /// vectors and one element of each row in turn have to fit the registers.
  void chooseTile();

  /// Decides how many lanes what is left of the vectors of a tile takes, and
  /// for how many rows: where narrower vectors are started at a higher rate.
  void chooseNarrowTail();

  /// The elements of the last, incomplete vector: of all programs, or of those
  /// that end with an array if the others have whole vectors; 0 where there is
  /// none, or no constant.
  int64_t elementsOfTail() const;

  /// What a step of a contraction takes for one vector of so many lanes.
  double cyclesOfVector(int64_t lanes) const;

  /// The costs of vectors of so many bits.
  const CoreCosts &costsOf(int64_t bits) const;

  /// Chooses the contraction atom: both operands are widened from elements that
  /// it multiplies in groups.
  void chooseAtom();

  /// Whether tile registers can hold blocks of the results.
  bool fitsTiles() const;

  /// Whether the operand with the vectors is copied in groups: where it is used
  /// once, they are put together in registers.
  bool copiesWords(const ContractionAtom &atom,
                   const NarrowOperand &vectors) const;

  /// Whether the elements that an operand is widened from can be had.
  bool mayGroup(mlir::Value operand) const;

  /// The reduced dimension that groups are formed along; null for none.
  mlir::StringAttr groupDimension(const NarrowOperand &rows) const;

  /// Operations that each vector of an operand takes beside its loads.
  int64_t operationsOf(mlir::Value operand) const;

  /// Whether an operand's vectors follow each other in memory, as far as arrays
  /// are dense: it takes whole rows, one after another.
  bool liesTogether(mlir::Value operand) const;

  /// Whether the second-level cache holds the matrix that the operand is a part
  /// of, and its vectors are whole lines there, as far as arrays are dense: all
  /// programs find it, and a copy would lie no better.
  bool staysInWholeLines(mlir::Value operand) const;

  /// Whether the operand with the vectors is copied before it is used: all of
  /// it is read again for every group of rows, and where its lines lie far
  /// apart they displace each other in the caches.
  void choosePacking(int64_t uses);

  /// What the windows of an operand cover, in all programs.
  std::optional<WindowRegion> regionOf(mlir::Value operand) const;

  /// Whether the operand of the rows is read in windows that cross edges, so
  /// that each of its elements would have a test for every vector, and is
  /// small enough to be copied by each program.
  bool copiesRowsOfWindows(mlir::Value rows) const;
  bool packsFor(int64_t uses) const;

  /// Steps of the reduced dimensions for each element of the first one, and how
  /// many of its elements are as many streams as the machine follows.
  int64_t stepsInside() const;
  int64_t streamBlock() const;

  /// Whether results read elements beside those of one another, as of a window:
  /// most of them again and again.
  bool readsWindows(const Access &access) const;

  /// Whether the vectors are rows of an array that comes from beyond the
  /// second-level cache, and longer than what a tile reads of them.
  bool comesInStreams() const;

  /// Whether the reduced dimension is done in blocks, if the vectors are read
  /// so many times.
  bool isReadInBlocks(int64_t uses) const;

  /// The caller has copied the operand with the vectors.
  void choosePrepacked();

  /// Whether an access of the contraction is of an array that the caller packs,
  /// vectors along any dimension of the result side by side.
  bool isPrepacked(const Access &access) const;

  /// Whether vectors along the dimension would be those of such an array.
  bool takesPrepacked(mlir::StringAttr dim) const;

  /// Whether the elements of the reduced dimension can be done in blocks: the
  /// results between them lie in memory as they are.
  bool mayBlock() const;

  /// Whether blocks of so many elements are whole groups of the atom, if any.
  bool mayBlockGroups(int64_t block) const;

  void chooseReducedBlock();

  double viewBytes(const Access &access) const;

  /// The array that the nest reads vectors of, if it is one: a contraction's
  /// operand, or what is copied to memory.
  std::optional<Access> streamedOperand() const;

  /// The array that a contraction's operand reads a vector of in each step; of
  /// several none.
  std::optional<Access> streamedBy(mlir::Value operand) const;

  /// Where an array is read in pieces, each piece but the next in a row waits
  /// for memory that no prefetcher has asked for.
  void findJumps();

  /// What a block of the reduced dimension touches of operands and result.
  double bytesOfBlock() const;

  /// Several sums for each result, where results are too few for a core to have
  /// a multiply-add to start whenever it could, and a window's inner loop is
  /// emitted iteration by iteration.
  void chooseChains();

  /// The two loops of a tiled contraction, or one of rows of sums, around its
  /// reduced dimensions: how many coordinates of each are done together, and
  /// the operand that varies.
  struct TileLoop {
    mlir::StringAttr dim;
    int64_t step = 1;
    int operand = 0;
  };
  std::optional<std::pair<TileLoop, TileLoop>> tileLoops() const;

  /// How an operand of such a contraction lies where it is read.
  struct OperandRows {
    /// By a program, each element once.
    double loadedBytes = 0;
    /// All that a program reads, and what one iteration of its loop takes.
    SpacedRows whole, part;
    /// RepeatedRead::piece, within a program and from the array.
    double piece = 0, pieceFar = 0;
  };
  std::optional<OperandRows> rowsOfOperand(const TileLoop &loop) const;

  /// Whether the vectors push themselves out of the second-level cache where
  /// they lie, though not in a copy, which programs in a row would share.
  bool isPushedOutAndShared() const;

  /// What the loops of a tile and other programs read again.
  void findRepeatedReads();

  /// Whether results that have their lanes along a second choice are stored
  /// along another dimension: a square of them is transposed at once where they
  /// come from memory, elements would be stored one by one from registers.
  bool isStoredAcross() const;

  /// Between blocks of the reduced dimension the results are not complete.
  void chooseEpilogue();

  const Phase &phase;
  const Planning &planning;
  const KernelAnalysis &analysis;
  const Target &target;
  const Machine &machine;
  const Pins &pins;
  NestChoice choice;
  const Layouts &layouts;
  mlir::SmallVector<Access> accesses;
  /// Set after the accesses.
  std::optional<Squares> squares;
  mlir::SmallVector<Buffer> buffers;
  /// The contraction whose result is tiled, and along which dimension.
  tile::ContractOp tiled;
  mlir::StringAttr tileDim;
  /// Its operand that varies along the vector dimension.
  int vectorOperand = 0;
  /// Whether the tile has rows of sums along the lanes.
  bool sumsRows = false;
  bool hasNarrow = false;
  int64_t expensive = 0;
  NestPlan plan;
};

} // namespace tessera

#endif // TESSERA_PLAN_NEST_PLANNER_H
