//===- realizer.h - State of one stage function -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the parts of the CPU realization share while one stage function is
// emitted: emitted scalars, buffers in scratch memory, view addresses, extents.
//
//   block.cpp       executes the steps of a block: loops, branches
//   buffers.cpp     scalars, scratch memory and checks of a program
//   prepack.cpp     operands that the caller has packed
//   programs.cpp    the programs of a grid, some of which advance together
//   edges.cpp       bodies of programs that touch no edge, and of the others
//   fold.cpp        folds over computed contributions
//   splits.cpp      reductions that several programs share
//   heap.cpp        memory for tiles whose extents nothing bounds
//   nest.cpp        emits the loop nest of a phase
//   rows.cpp        contractions that have partial sums in their lanes
//   values.cpp      values of tiles at the coordinates of a nest
//   access.cpp      addresses, bounds and masks of loads and stores
//   aligned.cpp     loops over vectors that begin at an aligned element
//   accumulate.cpp  reductions, scans and contractions inside a nest
//   join.cpp        reductions about a reference, in the loop they depend on
//   combination.cpp ordered trees, and scans that need a reduction per element
//   lines.cpp       loops over the lines of a buffer
//   squares.cpp     values with lanes along either of two levels
//   transpose.cpp   transposing a square of vectors
//   sort.cpp        sorting and selection
//   sort_network.cpp  the exchanges of a sort
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_REALIZER_H
#define TESSERA_REALIZE_CPU_REALIZER_H

#include "analysis/interior.h"
#include "plan/plan.h"
#include "realize/cpu/vector_emitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"

namespace tessera {

/// A tile kept in memory, row-major in the order of its dimensions unless
/// another one is the innermost (Realizer::allocate), or overlapping windows
/// have their elements in one place (window_region.h).
struct TileBuffer {
  mlir::Value pointer;
  mlir::Type element;
  llvm::SmallVector<mlir::StringAttr> dims;
  /// In elements; ShapedType::kDynamic where `dynamicStrides` has the value.
  llvm::SmallVector<int64_t> strides;
  llvm::SmallVector<mlir::Value> dynamicStrides;
  /// Of the largest tile it can hold; `dynamicBytes` (i64), if set, where the
  /// extents are unbounded.
  int64_t bytes = 0;
  mlir::Value dynamicBytes;

  /// The distance in bytes between tiles of bounded extents that are kept side
  /// by side.
  int64_t constantSpacing() const;

  /// The dimension along which neighbours are adjacent: the last, unless
  /// another one was wanted.
  mlir::StringAttr innermost() const;

  /// The stride of an axis as an index.
  mlir::Value stride(VectorEmitter &emit, int64_t axis) const;
  /// The bytes of the largest tile it can hold, as i64.
  mlir::Value size(VectorEmitter &emit) const;
  /// The distance in bytes (i64) between tiles that are kept side by side.
  mlir::Value spacing(VectorEmitter &emit) const;
};

struct WindowRegion;

/// Memory for an operand of a contraction in groups (plan_atoms.h). Its element
/// is a narrow integer; strides count such.
struct WordBuffer {
  TileBuffer memory;
  /// The dimension along which elements, or words, lie side by side.
  mlir::StringAttr adjacent;
  /// What the words are combined with by an exclusive or.
  int64_t flips = 0;
};

/// The bytes that one tile may take: 8 GiB.
inline constexpr int64_t largestTile = int64_t(8) << 30;

/// An error of the call at an op's source position.
Error launchError(mlir::Operation *op, Error error);

class Realizer {
public:
  /// `stage` is the number of the stage function among its kernel's.
  Realizer(const Planning &planning, size_t stage, mlir::OpBuilder &builder,
           mlir::Location loc, bool checksOnly)
      : planning(planning), analysis(planning.analysis),
        target(planning.target), stage(stage), checksOnly(checksOnly),
        b(builder), emit(builder, loc, target) {}

  const Planning &planning;
  const KernelAnalysis &analysis;
  const Target &target;
  const size_t stage;
  /// Emits only the checks of data-dependent indices: nothing is written.
  const bool checksOnly;
  mlir::OpBuilder &b;
  VectorEmitter emit;
  /// Receives the decisions as they are applied.
  StagePlan plan;
  /// While the body of programs that touch no edge is emitted: these programs.
  const ProgramBox *interior = nullptr;
  /// The programs of the stage's grid that touch no edge, if others do.
  std::optional<ProgramBox> box;
  /// The grid that the stage runs, if it runs one.
  tile::ParallelOp stageGrid;
  std::vector<std::pair<std::string, int64_t>> bufferSizes;
  /// The first failure; emission goes on, the result is discarded.
  std::optional<Error> failure;

  /// Binds the stage function's arguments; emission starts at the builder's
  /// insertion point.
  void begin(mlir::Value data, mlir::Value strides, mlir::Value scalars,
             mlir::Value scratch);

  /// Executes a block of the kernel. `only`, if set, is the one tile.parallel
  /// of a top-level block that this stage runs; its programs are `coordinates`.
  void runBlock(mlir::Block &block, tile::ParallelOp only = {},
                mlir::Value begin = {}, mlir::Value end = {});

  // Shared state.
  mlir::Value scalar(mlir::Value tileScalar);
  /// Whether it has been computed.
  /// A kept tile has one if its elements in memory have to be multiplied by it.
  bool hasScalar(mlir::Value tileScalar) const {
    return scalars.contains(tileScalar);
  }
  void setScalar(mlir::Value tileScalar, mlir::Value emitted) {
    scalars[tileScalar] = emitted;
  }
  mlir::Value extent(mlir::StringAttr dim);
  std::optional<int64_t> constantExtent(mlir::StringAttr dim) const {
    return analysis.dims.extent(dim);
  }
  mlir::Value viewPointer(mlir::BlockArgument view);
  mlir::Value stride(const Access &access, unsigned axis);
  /// Address of memory that may be read at any time: where a masked-off scalar
  /// load goes.
  mlir::Value safePointer() const { return scratch; }
  /// Address of the number of the first failed check.
  mlir::Value checkPointer() const { return scratch; }

  /// Memory for `copies` tiles of the given type, TileBuffer::spacing apart:
  /// scratch, or the heap where an extent has no bound. Elements along
  /// `innermost` are adjacent; where it is null, those along the last
  /// dimension.
  TileBuffer allocate(mlir::Type tileType, llvm::StringRef what,
                      mlir::Operation *op, int64_t copies = 1,
                      mlir::StringAttr innermost = {});
  /// The same without memory, for bounded extents.
  TileBuffer layOut(mlir::Type tileType, mlir::Operation *op,
                    int64_t copies = 1, mlir::StringAttr innermost = {});
  /// Memory for a tile that a nest computes: where its yield wants it, else
  /// scratch in the layout that is planned for it.
  TileBuffer allocateFor(mlir::Value tile, llvm::StringRef what,
                         mlir::Operation *op);
  bool isWanted(mlir::Value tile) const { return wanted.contains(tile); }
  /// The layouts of the tiles that have been allocated.
  Layouts layouts;
  mlir::Value allocateBytes(int64_t bytes, llvm::StringRef what);
  int64_t scratchBytes() const { return scratchSize; }

  /// While a part of a reduction is emitted: the coordinates of the dimension
  /// that are its share.
  struct Share {
    mlir::StringAttr dim;
    mlir::Value begin;
    int64_t extent = 0;
  };
  std::optional<Share> share;
  /// The bytes that a part of a shared reduction leaves in the workspace.
  int64_t partBytes = 0;
  /// Frees what came from the heap; true if anything may have, in which case
  /// checkPointer() holds what the stage returns.
  bool releaseHeap();

  const TileBuffer *findBuffer(mlir::Value tile) const {
    auto it = buffers.find(tile);
    return it == buffers.end() ? nullptr : &it->second;
  }
  void setBuffer(mlir::Value tile, TileBuffer buffer) {
    buffers[tile] = std::move(buffer);
  }

  /// Where an operand's groups have been copied to, or null.
  const WordBuffer *findWords(mlir::Value operand) const {
    auto it = words.find(operand);
    return it == words.end() ? nullptr : &it->second;
  }

  /// What the nest prefetches, if anything.
  const NestPrefetches *prefetchesOf(const NestPlan &nest) const {
    auto it = prefetches.find(nest.id);
    return it == prefetches.end() ? nullptr : &it->second;
  }
  /// How many programs ahead the next one is.
  int64_t programsAhead() const { return advancing; }

  /// An operand of a contraction that the caller packs: a panel for each
  /// combination of the grid's coordinates that it depends on.
  struct PrepackedOperand {
    mlir::Value operand;
    unsigned parameter = 0;
    /// Its layout, without an address.
    TileBuffer panel;
    llvm::SmallVector<unsigned> along;
    int64_t panels = 1;
    int64_t spacing = 0;
  };
  std::vector<PrepackedOperand> prepacked;
  /// Packs panels [first, last) of what programs of `grid` read, as a function
  /// of its own; `destination` is the place of their address after those of the
  /// views.
  void runPacking(tile::ParallelOp grid, const PrepackedOperand &what,
                  int64_t destination, mlir::Value first, mlir::Value last);

  /// Plans and emits a phase.
  void runPhase(const Phase &phase);
  /// Executes a step that is no phase.
  void runImmediate(mlir::Operation &op);
  /// Evaluates a tile into a buffer of its dimensions, of which some are run
  /// over as `spans` say.
  void materializeInto(mlir::Value tile, const TileBuffer &buffer,
                       const CopiedSpans &spans = {});

  void fail(mlir::Operation *op, llvm::StringRef code, const llvm::Twine &why);

  /// In a checking stage, reports `error` from the launch where `wrong` (a
  /// truth value, or one per lane) holds.
  void emitCheck(mlir::Value wrong, Error error);
  std::vector<Error> checks;

private:
  void runStep(const Step &step);
  void runParallel(tile::ParallelOp op, mlir::Value begin, mlir::Value end);
  /// The loop over the programs [first, last) of a grid, `together` in each
  /// iteration: phase by phase if there are several.
  void runPrograms(tile::ParallelOp op, mlir::Value first, mlir::Value last,
                   int64_t together, const std::vector<Step> &steps,
                   const std::vector<NestPlan> &nests);
  void runGuarded(mlir::Value condition, llvm::function_ref<void()> body);
  void bindProgram(tile::ParallelOp op, mlir::Value number);
  void runProgram(tile::ParallelOp op);

  /// What one part of a shared reduction leaves for the others: a tile, or a
  /// scalar, at an offset from the part's place.
  struct PartValue {
    mlir::Value result;
    TileBuffer buffer;
    int64_t offset = 0;
  };
  void runSharedProgram(tile::ParallelOp op, mlir::Value number,
                        const std::vector<Step> &steps);
  llvm::SmallVector<PartValue> layOutPart(mlir::ValueRange results);
  void runFoldPart(tile::FoldOp op, mlir::Value split,
                   llvm::ArrayRef<PartValue> values, mlir::Value place);
  void runLoopsPart(const Phase &phase, const SplitSite &site,
                    mlir::Value split, llvm::ArrayRef<PartValue> values,
                    mlir::Value place);
  void combineFolds(tile::FoldOp op, llvm::ArrayRef<PartValue> values,
                    mlir::Value places);
  void combineParts(llvm::ArrayRef<PartValue> values, mlir::Value places);
  /// The memory that all programs of a launch share.
  mlir::Value workspace();
  NestPlan plannedNest(const Phase &phase);
  void emitNest(const Phase &phase, const NestPlan &nest);
  /// Copies an operand of a contraction to memory of its own by `copy`.
  /// Programs that follow one another with the same operand find it there.
  void packOnce(mlir::Value operand, llvm::function_ref<void()> copy);
  void packOperand(mlir::Value operand, const TileBuffer &buffer,
                   const CopiedSpans &spans = {});
  TileBuffer allocateRegion(mlir::Value operand, const WindowRegion &region);
  /// The present program's panel of a prepacked operand; fails where it cannot
  /// be one.
  std::optional<TileBuffer>
  prepackedPanel(mlir::Value operand, llvm::ArrayRef<mlir::StringAttr> dims);
  void packWords(const Phase &phase, const NestPlan &nest);
  void record(const NestPlan &nest);
  template <typename Loop> void runLoop(Loop op);
  /// Over all of its dimension, or from `first` to `last`.
  void runFold(tile::FoldOp op, mlir::Value first = {}, mlir::Value last = {});
  void runTreeFold(tile::FoldOp op);
  llvm::SmallVector<mlir::Value>
  combineOnce(mlir::Block &combine, mlir::ValueRange a, mlir::ValueRange c,
              llvm::ArrayRef<TileBuffer> destinations);
  void declareExtent(tile::DimOp dim);
  void allocateOnHeap(TileBuffer &buffer, llvm::StringRef what,
                      mlir::Operation *op, int64_t copies);
  void emitReshapeChecks(mlir::Block &block);
  void runIf(tile::IfOp op);
  void runDecidedIf(tile::IfOp op, mlir::Region &taken);
  /// Runs a block and evaluates the tiles that it yields into `destinations`
  /// (in order of the tile-valued operands); collects its scalars.
  void runYielding(mlir::Block &block, llvm::ArrayRef<TileBuffer> destinations,
                   llvm::SmallVectorImpl<mlir::Value> &scalarResults);
  void evaluateYield(mlir::Operation *yield,
                     llvm::ArrayRef<TileBuffer> destinations,
                     llvm::SmallVectorImpl<mlir::Value> &scalarResults);

  /// Inserts at the function's entry, so that the value is available anywhere.
  template <typename Make> mlir::Value atEntry(Make make) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(entryEnd);
    return make();
  }

  mlir::Value data, strideArray, scalarArray, scratch;
  mlir::Operation *entryEnd = nullptr;
  int64_t scratchSize = 64;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
  llvm::DenseMap<mlir::Value, TileBuffer> buffers;
  llvm::DenseMap<mlir::Value, WordBuffer> words;
  /// Where the results of operations that are still to be run are wanted.
  llvm::DenseMap<mlir::Value, TileBuffer> wanted;
  llvm::DenseMap<mlir::Value, mlir::Value> viewPointers;
  llvm::DenseMap<std::pair<unsigned, unsigned>, mlir::Value> viewStrides;
  llvm::StringMap<mlir::Value> extents;
  /// By NestPlan::id, of the grid at hand, and how many of its programs advance
  /// together.
  std::map<int64_t, NestPrefetches> prefetches;
  int64_t advancing = 1;

  /// A dimension whose extent nothing bounds. Memory for tiles over it is
  /// requested before `use`, which makes the extent 0 if there is none.
  struct UnboundedDim {
    mlir::arith::SelectOp use;
    int64_t number = 0;
  };
  llvm::StringMap<UnboundedDim> unbounded;
  /// Cells in scratch of the address and the bytes of a piece of the heap.
  llvm::SmallVector<mlir::Value> heapCells;
};

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_REALIZER_H
