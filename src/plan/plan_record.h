//===- plan_record.h - The record of what was decided -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_RECORD_H
#define TESSERA_PLAN_PLAN_RECORD_H

#include "analysis/keeping.h"
#include "analysis/passes.h"
#include "support/vendor.h"
#include "target/cache_sets.h"
#include "tessera/executable.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// How the last, incomplete vector of a loop is done.
enum class TailForm {
  /// One vector under a mask.
  Mask,
  /// A loop over single elements.
  Scalar,
  /// A whole vector that ends with the last element: it repeats what the vector
  /// before it did for the elements that both have.
  Overlap,
};

/// "mask", "scalar", "overlap".
std::string_view name(TailForm tail);

/// What the programs of a grid ask the caches for before it is needed.
enum class Prefetch {
  None,
  /// In the last loop that reads an input, the elements that the next program
  /// reads first.
  Inputs,
  /// In the first loop, too, the elements of outputs that a later one stores.
  InputsAndOutputs,
};

/// "none", "inputs", "inputs and outputs".
std::string_view name(Prefetch prefetch);

/// Where programs check what may lie outside an array.
enum class Edges {
  /// All programs, in one body.
  Checked,
  /// The programs that touch no edge have a body of their own, without checks.
  Apart,
};

/// One reason for a decision, with a stable code.
struct Reason {
  std::string code;
  std::string text;
};

/// What else could have been decided for a nest: everything that is legal and
/// that realization can do.
struct NestAlternatives {
  /// Dimensions that could fill the lanes, the chosen one among them.
  std::vector<std::string> vectorDims;
  /// The most vectors per iteration; 1 where they depend on each other.
  int64_t mostUnroll = 1;
  /// Whether there is an epilogue that registers can hold.
  bool hasEpilogue = false;
  /// Whether there is a tail, and whether its elements may be done twice.
  bool hasTail = false;
  bool overlapsTail = false;
  /// Whether squares can be transposed in registers.
  bool transposes = false;
  /// Whether there are whole vectors of results to write past the caches, and
  /// whether most of them are aligned only if the loop begins where one is.
  bool storesAround = false;
  bool alignsStores = false;
  /// Contraction atoms that apply.
  std::vector<std::string> atoms;
};

/// What a program reads again.
struct RepeatedRead {
  /// All of it, as often as it is read again.
  double bytes = 0;
  /// If it lies in pieces that no prefetcher asks for, the bytes of one; 0
  /// elsewhere.
  double piece = 0;
  /// What is touched from one reading to the next: all of its rows, and other
  /// bytes.
  SpacedRows rows;
  double otherBytes = 0;
};

/// The decisions for one phase.
struct NestPlan {
  /// Names the nest within its kernel: the number of the operation it begins
  /// with. Equal for equal Tile IR.
  int64_t id = 0;
  /// The index space, outermost first: "row, col".
  std::string space;
  /// What the nest computes: "reduce max", "store y", ...
  std::string roots;
  /// The dimension whose elements fill the lanes; empty for scalar code.
  std::string vectorDim;
  int64_t lanes = 1;
  /// Vectors per iteration of the vector loop; for a reduction along the vector
  /// dimension also the number of independent partial results.
  int64_t unroll = 1;
  TailForm tail = TailForm::Mask;
  /// A kept dimension of which `tileRows` coordinates are done at once, so that
  /// what is loaded along the vector dimension serves all of them; empty for
  /// none.
  std::string tileDim;
  int64_t tileRows = 1;
  /// Where fewer lanes hold what the last vector along the vector dimension has
  /// (`tailElements`, also of programs that end with an array), and the machine
  /// takes less for vectors of so many: their number, a part of `lanes`; 0 for
  /// none. They are computed for `tailRows` rows together, after all others.
  int64_t tailLanes = 0;
  int64_t tailElements = 0;
  int64_t tailRows = 1;
  /// Whether what is adjacent in memory along `tileDim` is read and written in
  /// vectors along it: squares of `tileRows` by `lanes` elements are transposed
  /// in registers where they meet what is adjacent along `vectorDim`.
  bool transposes = false;
  /// Whether rows of an operand that the next iteration of the tiled loop reads
  /// are prefetched, where loops inside read the present ones repeatedly.
  bool prefetchesRows = false;
  /// Whether the lines that a square is stored to are prefetched before it is
  /// loaded.
  bool asksForLines = false;
  /// Whether results are written to memory past the caches, as far as their
  /// vectors are aligned there; and whether the loop over vectors begins at the
  /// first element where they are, after those before it.
  bool storesAround = false;
  bool alignsStores = false;
  /// Sums of each result of a contraction, one for every so many iterations of
  /// its innermost reduced loop, which are added up at the end.
  int64_t chains = 1;
  /// The operand of a contraction (0 or 1) that is first copied to memory of
  /// its own, its vectors side by side; -1 for none.
  int packedOperand = -1;
  /// Whether the caller has copied it, before the launch.
  bool prepacked = false;
  /// The contraction atom that takes groups of elements along `groupDim`, a
  /// reduced dimension (target/contraction_atoms.h); empty for none. The packed
  /// operand then has groups side by side; without one, groups are put together
  /// in registers where they are multiplied.
  std::string atom;
  std::string groupDim;
  /// With an atom, the operand that varies along the lanes (0 or 1).
  int vectorOperand = -1;
  /// Whether the other operand, that of the rows, is copied as well.
  bool packsRows = false;
  /// The operand (0 or 1) that is copied as the region of its array which its
  /// windows cover (window_region.h); -1 for none.
  int regionOperand = -1;
  /// Coordinates of a contraction's reduced dimension that are done for all of
  /// its results before the next ones, so that what they read stays in the
  /// nearest cache; 0 for all.
  int64_t reducedBlock = 0;
  /// Short pieces that lie far apart, in which arrays are read from beyond the
  /// second-level cache, of all programs; those of rows that are read side by
  /// side count for less. Each is a jump of the machine's (MemoryLevel).
  double jumps = 0;
  /// With a reducedBlock, the bytes that one block of all results touches: what
  /// is read again is read from where these stay. 0 elsewhere.
  double blockBytes = 0;
  /// What a tiled contraction reads again, for each program.
  std::vector<RepeatedRead> repeats;
  /// The share of its computation during which nothing is read from further
  /// away: what works on a block that is there already.
  double busyShare = 0;
  /// Whether the phase's epilogue is done in the registers of its results.
  bool epilogue = false;
  /// Iterations of a long summation after which the partial sums are added to
  /// outer ones, so that errors grow with the root of the length; 0 for none.
  int64_t sumBlock = 0;
  /// The law by which reductions join the loop of the one that they depend on
  /// ("shift", "powers"); empty where none does.
  std::string law;
  /// The number of partial sums of a summation, as far as its rounding errors
  /// are concerned.
  int64_t partials = 1;
  NestAlternatives alternatives;
  std::vector<Reason> reasons;
  /// Why a pin could not be honoured here; empty when all were.
  std::string pinConflict;
};

/// How the programs of a grid follow one another, and differ.
struct GridPlan {
  /// Programs that advance together, phase by phase: while one waits for the
  /// end of a reduction the next one's loop runs.
  int64_t together = 1;
  /// The most that could.
  int64_t mostTogether = 1;
  Prefetch prefetch = Prefetch::None;
  /// The most that there is to prefetch.
  Prefetch mostPrefetch = Prefetch::None;
  Edges edges = Edges::Checked;
  /// The dimension along which one program follows another; empty for the last
  /// of the grid's.
  std::string innermost;
  /// Parts that the reduction of each program is done in, by as many programs;
  /// the last of them to finish combines them and does what follows.
  int64_t splits = 1;
  /// The most that there could be; 1 where there is nothing to split, for the
  /// reason `unsplit`.
  int64_t mostSplits = 1;
  std::string unsplit;
  /// What is split: the dimension, the nests (NestPlan::id) from the first to
  /// the last, the iterations that stay together, and the bytes that a part
  /// leaves for the others.
  std::string splitDim;
  std::pair<int64_t, int64_t> splitNests = {0, -1};
  int64_t splitUnits = 1;
  int64_t partBytes = 0;
  /// Programs that touch no edge of an array, where others do and they can be
  /// set apart; 0 elsewhere.
  int64_t interior = 0;
  std::vector<Reason> reasons;
};

/// The decisions for one grid of programs.
struct StagePlan {
  std::string grid;
  int64_t programs = 1;
  GridPlan order;
  std::vector<NestPlan> nests;
};

/// "all", "expensive", "required".
std::string_view name(Keeping keeping);
/// "checked", "apart".
std::string_view name(Edges edges);
/// "separate", "joined".
std::string_view name(Passes passes);

/// Decisions for one nest that a saved plan or the search fixes; the others are
/// the planner's.
struct NestChoice {
  std::optional<std::string> vectorDim;
  std::optional<int64_t> unroll;
  std::optional<int64_t> tileRows;
  std::optional<bool> packs;
  /// Empty for none.
  std::optional<std::string> atom;
  std::optional<int64_t> reducedBlock;
  std::optional<bool> epilogue;
  std::optional<bool> transposes;
  std::optional<bool> storesAround;
  std::optional<bool> alignsStores;
  std::optional<TailForm> tail;
};

/// One matrix of a call to a library.
struct VendorMatrix {
  /// Of the kernel, and its name.
  unsigned parameter = 0;
  std::string name;
  bool transposed = false;
  /// The axis whose stride is the leading dimension, and the least that it may
  /// be; -1 where there is one row, and any would do.
  int leadingAxis = -1;
  int64_t leastLeading = 1;
  /// By loop of VendorCall::batch, the axis that moves with it; -1 for none.
  std::vector<int> batchAxes;
};

/// A kernel as products of a library: c = alpha a b of row-major matrices, for
/// each index of `batch`.
struct VendorCall {
  Vendor library = Vendor::None;
  /// "cblas_sgemm", ...
  std::string function;
  bool isF64 = false;
  int64_t m = 0, n = 0, k = 0;
  /// 1 or -1.
  double alpha = 1;
  /// What stands in c is never read.
  static constexpr double beta = 0;
  VendorMatrix a, b, c;
  std::vector<int64_t> batch;

  /// "cblas_sgemm(N, T, m 64, n 32, k 128)".
  std::string summary() const;
};

/// An array that the caller packs: panels one after another, each with the
/// elements that programs share, vectors side by side.
struct PrepackedPlan {
  std::string name;
  /// The grid's dimensions by which panels are numbered, row-major, and a
  /// panel's own: "n_blocks", "k, n_block".
  std::string grid;
  std::string panel;
  int64_t panels = 0;
  /// Of one panel, and from one to the next.
  int64_t bytes = 0;
  int64_t spacing = 0;
};

/// Decisions for a kernel that a saved plan or the search fixes.
struct PlanChoices {
  /// The library that the whole kernel is handed to.
  Vendor vendor = Vendor::None;
  /// Names of arrays that the caller packs.
  std::set<std::string> prepacked;
  Keeping keeping = Keeping::All;
  Passes passes = Passes::Separate;
  /// By NestPlan::id.
  std::map<int64_t, NestChoice> nests;
  /// Programs that advance together, by the number of the stage.
  std::map<size_t, int64_t> together;
  /// What is prefetched, by the number of the stage.
  std::map<size_t, Prefetch> prefetch;
  /// By the number of the stage.
  std::map<size_t, Edges> edges;
  /// GridPlan::splits, by the number of the stage.
  std::map<size_t, int64_t> splits;
};

/// A plan that the search looked at.
struct PlanCandidate {
  /// What sets it apart: "2 programs together", "unroll 2", ...
  std::string what;
  /// "chosen", or a code that says why not.
  std::string code;
  /// Predicted time of the whole call on one thread; not known for what was not
  /// realized.
  std::optional<double> nanoseconds;
  /// Instructions of its code, functions expanded.
  int64_t instructions = 0;
  PlanChoices choices;
};

struct Plan {
  std::string kernel;
  std::string target;
  AliasMode alias = AliasMode::Disjoint;
  std::vector<StagePlan> stages;
  /// The call that the kernel is, if it is handed to a library.
  std::optional<VendorCall> vendor;
  std::vector<PrepackedPlan> prepacked;
  Keeping keeping = Keeping::All;
  Passes passes = Passes::Separate;
  std::vector<PlanCandidate> candidates;
  /// Values kept in scratch memory, with their size in bytes.
  std::vector<std::pair<std::string, int64_t>> buffers;

  /// The plan in one line: "rows in parallel; max, sum, store over col in 16
  /// lanes x 4; ...".
  std::string summary() const;
};

/// The candidates around a plan that differ in vectors per iteration (the same
/// of every nest), programs together, tail and prefetching: every combination,
/// for measuring how good the search is.
std::vector<PlanChoices> everyCombination(const Plan &plan);

} // namespace tessera

#endif // TESSERA_PLAN_PLAN_RECORD_H
