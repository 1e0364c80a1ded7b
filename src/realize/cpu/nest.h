//===- nest.h - The loop nest of a phase ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest has one level per dimension of the phase's space: the kept dimensions,
// then the reduced ones. At most one level is the vector level; its loop runs
// over groups of `unroll` vectors, then single vectors, then the tail. Beside
// it one other kept level may be tiled: its loop runs over groups of `tileRows`
// coordinates. What is emitted for one vector of one row is a "copy"; values
// that do not depend on the inner levels are emitted once, before the loop of
// the next level (its anchor), so hoisting is by construction.
//
// Where the plan transposes, the rows of a group and the lanes of one vector
// are a square, which has two sides: lanes along the vector level, or lanes
// along the tiled one. squares.cpp evaluates values on the side on which their
// memory is adjacent and transposes them where the other one is asked for.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_NEST_H
#define TESSERA_REALIZE_CPU_NEST_H

#include "plan/plan_atoms.h"
#include "realize/cpu/realizer.h"

#include <memory>

namespace tessera {

class NestEmitter;

/// A running result of a nest: reduction, scan or contraction. The state of one
/// copy is `types` many values.
class Accumulator {
public:
  virtual ~Accumulator() = default;
  virtual llvm::SmallVector<mlir::Type> types(int64_t lanes) = 0;
  /// The state before the first element. `isFirst` is false for the second and
  /// further partial results of one reduction.
  virtual llvm::SmallVector<mlir::Value>
  initial(NestEmitter &nest, int64_t lanes, bool isFirst) = 0;
  /// Takes the element at the nest's current coordinates.
  virtual llvm::SmallVector<mlir::Value> step(NestEmitter &nest,
                                              mlir::ValueRange state) = 0;
  /// Combines the states of two disjoint parts.
  virtual llvm::SmallVector<mlir::Value>
  merge(NestEmitter &nest, mlir::ValueRange a, mlir::ValueRange b) = 0;
  /// The results from the final state, one per result of the root.
  virtual llvm::SmallVector<mlir::Value> finish(NestEmitter &nest,
                                                mlir::ValueRange state) = 0;
  /// One state for all lanes: there are no partial results to merge.
  virtual bool isSequential() const { return false; }
  /// Elements are taken from the last to the first.
  virtual bool isReversed() const { return false; }

  mlir::Operation *op = nullptr;
};

/// The accumulator of a root of a phase; null for roots that have none.
std::unique_ptr<Accumulator>
makeAccumulator(const Root &root, const Phase &phase, const Target &target);

class NestEmitter {
public:
  NestEmitter(Realizer &realizer, const Phase &phase, const NestPlan &plan);

  /// A nest of no levels, for scalar accesses.
  explicit NestEmitter(Realizer &realizer);

  void run();

  /// Copies an operand of a contraction in groups to memory of its own: see
  /// contraction_atoms.cpp.
  void packWords(mlir::Value operand, const NarrowOperand &narrow,
                 const WordBuffer &buffer);

  void fillWithZeros(const TileBuffer &buffer);

  /// Of a contraction that takes groups of elements: how, else null.
  const AtomOperands *atomOperands() const { return atoms ? &*atoms : nullptr; }
  /// One step of a contraction by its atom, at the current coordinates.
  mlir::Value atomStep(tile::ContractOp contract, mlir::Value accumulator);
  /// What an accumulator begins with for the elements that are shifted; an i32.
  mlir::Value shiftCorrection(tile::ContractOp contract);

  /// The element, or vector of elements, of a tile at the current coordinates;
  /// an emitted scalar for a tile without dimensions.
  mlir::Value value(mlir::Value tile);

  /// One element of a tile over constant extents, the `number`th of `count`
  /// that are spread over all of it.
  mlir::Value sample(mlir::Value tile, int64_t number, int64_t count);

  /// Evaluates a deferred op at the current coordinates, buffers aside.
  mlir::Value evaluate(mlir::Value tile);

  void storeElement(const Access &access, mlir::Value tile);
  /// Says in an operation that loads or stores a vector of the access how many
  /// lines it crosses into on average.
  void noteLines(const Access &access, mlir::Operation *accessing);
  void scatterElement(tile::ScatterOp op);

  /// Writes to, or reads, a buffer at the current coordinates.
  void writeBuffer(const TileBuffer &buffer, mlir::Value value);
  mlir::Value readBuffer(const TileBuffer &buffer);
  /// The kept value of a tile: what the buffer has, times the tile's scale.
  mlir::Value readKept(mlir::Value tile, const TileBuffer &buffer);

  /// The coordinate along a dimension: an index, of the first lane for the
  /// vector dimension.
  mlir::Value coordinate(mlir::StringAttr dim);
  bool isVectorDim(mlir::StringAttr dim) const {
    return lanes > 1 && dim == vectorDim;
  }
  /// Whether this is a part of a reduction that several programs share: what it
  /// is added to comes in when the parts are.
  bool isPart() const { return r.share.has_value(); }

  Realizer &r;
  VectorEmitter &emit;
  mlir::OpBuilder &b;
  /// Lanes of the code being emitted, and the active ones (null: all).
  int64_t lanes = 1;
  mlir::Value mask;
  /// What is being emitted, of the copies of one iteration: its vectors, row by
  /// row.
  int64_t copy = 0;

private:
  struct Level {
    mlir::StringAttr dim;
    /// Coordinates that are run over; std::nullopt if data decides.
    std::optional<int64_t> extent;
    /// What ends them earlier in some of the programs that run this code.
    LiveLimit limit;
    /// Of a tiled level, how many coordinates the programs that end early have,
    /// if that is one number; 0 elsewhere.
    int64_t edge = 0;
    /// The first coordinate, where programs share the dimension; null for 0.
    mlir::Value base;
    mlir::Value coordinate;
    mlir::Operation *anchor = nullptr;
    /// Values that depend on this level and outer ones, by slotOf().
    llvm::SmallVector<llvm::DenseMap<mlir::Value, mlir::Value>, 4> cache;
    /// Corrections of the rows of this iteration, if they were asked for.
    llvm::SmallVector<mlir::Value> corrections;
  };
  /// Of a square, what differs with the side that its lanes lie along.
  struct Side {
    mlir::StringAttr vectorDim;
    int vectorLevel = -1, tileLevel = -1;
    int64_t lanes = 1, vectors = 1, rows = 1;
    mlir::Value mask;
    bool isWhole = false;
  };
  using State = llvm::SmallVector<mlir::Value>;
  /// States of all accumulators, per copy.
  using States = llvm::SmallVector<State, 4>;

  /// An address and how it varies over the lanes.
  struct Address {
    mlir::Value pointer;
    /// Element offsets of the lanes; null when contiguous or uniform.
    mlir::Value laneOffsets;
    bool isContiguous = false;
    /// Where the access is inside the view; null: everywhere.
    mlir::Value inside;
    /// Where the elements of the lanes lie a small constant number of elements
    /// apart, that number; 0 elsewhere. `inside` is then the same for all
    /// lanes, and the axis along them is at `stepPosition` in the first lane
    /// and has to be below `stepLimit` in each; -1 where it is.
    int64_t step = 0;
    mlir::Value stepPosition;
    int64_t stepLimit = -1;
  };

  /// With `mayStep`, elements that lie a small step apart are described as
  /// such.
  Address address(const Access &access, bool mayStep = false);
  /// In which lanes such elements are inside.
  mlir::Value steppedInside(const Address &at);
  mlir::Value loadStepped(const Access &access, const Address &at,
                          mlir::Value userMask);
  mlir::Value staysIn64Bits(const Access::Axis &axis);
  void emitCheck(const Access &access, unsigned axis, mlir::Value offset);
  mlir::Value outside(mlir::Value index, int64_t extent);
  mlir::Value loadElement(const Access &access);
  void prefetchNext(const Access &access, mlir::Value pointer);
  mlir::Value storedAddress(const Access &access);
  void prefetchStored(const Access &access);
  void prefetchVector(mlir::Value pointer, mlir::Type storage, bool isStored);
  mlir::Value emitOp(mlir::Operation *op);
  mlir::Value gatherElement(tile::GatherOp op);
  mlir::Value reshapeElement(tile::ReshapeOp op);
  mlir::Value reshapeBetweenExtents(const TileBuffer &buffer,
                                    llvm::ArrayRef<mlir::StringAttr> dims);
  mlir::Value bufferAt(const TileBuffer &buffer, mlir::Value offset,
                       mlir::Value laneOffsets, bool isContiguous);
  mlir::Value coordinateOffset(const TileBuffer &buffer,
                               mlir::StringAttr except,
                               mlir::Value &laneOffsets, bool &isContiguous);

  void emitLevel(unsigned level);
  void emitReduction();
  void emitReducedLevel(unsigned level, States &states);
  /// Whether so many iterations of the inner reduced loop are emitted one after
  /// another: what they load and the running results fit the registers.
  bool fitsRegisters(int64_t iterations) const;
  bool isWindow(unsigned level) const;
  void emitWindow(unsigned level, States &states);
  void addUpChains(States &states);
  void emitReducedBlocks();
  void loopOverBlock(unsigned level, States &states,
                     llvm::function_ref<void()> body);
  void emitBlockedSum(unsigned level, int64_t groups, States &states);
  void emitBody(States *states);
  void emitTree();
  void finishReduction(States &states);
  void emitEpilogue();
  void emitRoot(const Root &root);
  bool liesAlongLanes(mlir::Value result);
  void evaluateAhead(int64_t end);
  /// Whether several rows are summed up along the lanes at once.
  bool sumsRows() const {
    return plan.tileRows > 1 && vectorLevel >= int(keptLevels);
  }
  State addUpRows(States states);
  void finishRows(States &states);
  void prefetchRows();
  void prefetchRow(const Access &access, mlir::Value row);
  mlir::ValueRange slice(mlir::ValueRange state, unsigned accumulator);
  State initialState(bool isFirst);
  State mergeStates(mlir::ValueRange a, mlir::ValueRange b);
  int levelOf(mlir::Value tile);
  int64_t vectorOf(int64_t number) const { return number % vectors; }
  int64_t rowOf(int64_t number) const { return number / vectors; }
  int64_t copies() const { return vectors * rows; }
  int64_t slotOf(mlir::Value tile) const;
  mlir::Value *cached(mlir::Value tile, int level);
  llvm::SmallVector<mlir::Value> sources(mlir::Value tile);
  void evaluateAtLevel(mlir::Value tile, int level);
  bool isReversed() const;

  /// A loop over `trips` coordinates from `first` on by `step` that carries
  /// states; emits straight-line code for a single trip. Each iteration has
  /// `vectorCount` vectors.
  void loop(unsigned level, int64_t first, int64_t trips, int64_t step,
            int64_t vectorCount, States *states,
            llvm::function_ref<void()> body);
  void enter(unsigned level, mlir::Value coordinate);
  mlir::Value end(unsigned level, int64_t last);
  mlir::Value fromBase(unsigned level, mlir::Value coordinate);
  std::optional<int64_t> extentOf(unsigned level) const;
  bool staysInside(const Access &access, unsigned axis) const;
  bool isSeenInside(const Access &access, unsigned axis) const;
  void emitTiledLevel(unsigned level, llvm::function_ref<void()> inner);
  void emitRows(unsigned level, int64_t together,
                llvm::function_ref<void()> inner);
  void emitVectorLevel(unsigned level, llvm::function_ref<void()> inner);
  void emitLiveVectors(unsigned level, llvm::function_ref<void()> inner);
  void loopBetween(unsigned level, mlir::Value first, mlir::Value last,
                   int64_t step, int64_t vectorCount, int64_t trips,
                   int64_t tripsAtEdge, llvm::function_ref<void()> body);
  void noteTrips(mlir::scf::ForOp loop, unsigned level, int64_t trips,
                 int64_t tripsAtEdge);
  int64_t leastLive(unsigned level) const;

  void emitLiveRows(unsigned level, int64_t together,
                    llvm::function_ref<void()> inner);
  // The last vectors of a tile, if they are narrower.
  void emitNarrowTails(unsigned level, llvm::function_ref<void()> inner);
  void emitNarrowTail(unsigned level, llvm::function_ref<void()> inner);

  // Loops that begin at an aligned element.
  /// False where no address is known, and nothing was emitted.
  bool emitAlignedVectors(unsigned level, llvm::function_ref<void()> inner);
  mlir::Value elementsBeforeAligned(unsigned level);
  void emitRest(unsigned level, mlir::Value first, mlir::Value count,
                llvm::function_ref<void()> inner);
  void loopOf(unsigned level, mlir::Value first, mlir::Value last, int64_t step,
              int64_t vectorCount, int64_t trips,
              llvm::function_ref<void()> body);

  // Groups of elements.
  void emitGroups(unsigned level, States *states,
                  llvm::function_ref<void()> body);
  int64_t slotsOfElement() const;
  bool variesWithGroup(mlir::Value tile) const;
  mlir::Value word(mlir::Value operand, const NarrowOperand &narrow);
  mlir::Value evaluateWord(mlir::Value operand, const NarrowOperand &narrow);
  mlir::Value loadWord(const NarrowOperand &narrow);
  mlir::Value interleavedWord(const NarrowOperand &narrow);
  mlir::Value narrowBits(const NarrowOperand &narrow);
  mlir::Value wordAddress(const TileBuffer &buffer);
  mlir::Value atomResult(mlir::Value accumulator, mlir::Value first,
                         mlir::Value second);
  void emitPacked();
  void emitCorrections(mlir::Value operand, Level &level);

  // Tile registers.
  void emitTiles();
  void emitTileLevels(unsigned level, int64_t rowCount, int64_t columnCount);
  void emitTileBlock(int64_t rowCount, int64_t columnCount);
  void loadTileShapes(int64_t rowCount, int64_t columnCount);
  std::pair<mlir::Value, mlir::Value> tileRowsAt(mlir::Value operand);
  void tileIntrinsic(llvm::StringRef name, mlir::ValueRange operands);
  mlir::Value tileNumber(int64_t number);

  // Squares.
  void orientValues();
  std::optional<bool> sideOf(mlir::Value tile);
  bool isOnOtherSide(mlir::Value tile) const;
  bool storesAcross(const Root &root);
  void emitSquares();
  void askForLines();
  void turn();
  llvm::SmallVector<int64_t> squareCopies() const;
  void transposeFromOtherSide(mlir::Value tile);

  const Phase *phase = nullptr;
  NestPlan plan;
  /// Null for none.
  const NestPrefetches *prefetches = nullptr;
  mlir::StringAttr vectorDim;
  int vectorLevel = -1, tileLevel = -1;
  llvm::SmallVector<Level> levels;
  unsigned keptLevels = 0;
  /// Vectors, and rows of the tiled level, in the iteration being emitted.
  int64_t vectors = 1, rows = 1;
  /// Sums of each result: all copies' first ones, then their second ones.
  int64_t chains = 1;
  /// Of the first reduced dimension, where its coordinates are done in blocks
  /// (null elsewhere): the block at hand.
  mlir::Value blockBegin, blockEnd;
  /// Of a vector level whose last vector is narrower, what is emitted: the
  /// whole vectors, or the last one.
  bool isAtTail = false;
  /// Whether all rows of the iteration are seen, where the tiled level may end
  /// early.
  bool hasLiveRows = false;
  /// Whether every lane of them is seen, where the vector level may end early.
  bool isWhole = false;
  /// Of a contraction, or a copy of its operand, that takes groups of elements.
  const ContractionAtom *atom = nullptr;
  std::optional<AtomOperands> atoms;
  int groupLevel = -1;
  /// The element of the groups being emitted, and how many there are; one more
  /// than a full group has stands for the group itself.
  int64_t element = 0, elements = 1;
  /// Where the shapes of tile registers are loaded from, and whether blocks
  /// have different ones.
  mlir::Value tileShapes;
  bool changesTileShapes = false;
  /// What is copied in groups.
  struct Packing {
    mlir::Value operand;
    NarrowOperand narrow;
    WordBuffer buffer;
  };
  std::optional<Packing> packing;
  /// The square being emitted, of those of an iteration; its other side, and
  /// whether that is the one along the tiled level.
  int64_t square = 0;
  Side other;
  bool isTurned = false;
  /// The live lanes of the last rows, if they are fewer than `tileRows`.
  mlir::Value rowMask;
  /// Values that vary along both levels of a square: whether their lanes lie
  /// along the tiled one by nature.
  llvm::DenseMap<mlir::Value, bool> turnedByNature;
  /// Loads that may have become dead, since others took their place.
  llvm::SetVector<mlir::Operation *> loadedAgain;
  llvm::SmallVector<std::unique_ptr<Accumulator>> accumulators;
  llvm::SmallVector<unsigned> accumulatorSizes;
  llvm::DenseSet<mlir::Value> evaluatedHere;
};

/// Emits a joined phase: its loop about a reference, and what that gives about
/// the centre.
void emitJoined(Realizer &realizer, const Phase &phase, const NestPlan &plan);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_NEST_H
