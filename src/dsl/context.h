//===- dsl/context.h - The trace in progress --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One TraceContext exists per trace. It is current on the thread that runs the
// author's function, where every call of the front end finds it. It owns the
// module under construction, the diagnostics, the stack of open regions and the
// list of live Tile objects.
//
// How carries are inferred: when a loop opens, each live tile with a value gets
// a placeholder for "its value at the start of an iteration". When the loop
// closes, a tile whose value is still the placeholder was not assigned, and the
// placeholder becomes the value from before; the others become carries.
// Placeholders are kept until the trace ends, so that a handle to one never
// dangles, and `forwarded` says what each became.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_CONTEXT_H
#define TESSERA_DSL_CONTEXT_H

#include "dialect/tile_dialect.h"
#include "tessera/dsl/region.h"
#include "tessera/dsl/view.h"
#include "tessera/error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace tessera {

using detail::RegionKind;
using detail::Site;

/// Its arguments, printed one after another.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  (stream << ... << parts);
  return text;
}

/// "file:line".
std::string spell(Site site);

/// A value with the element type the author sees.
struct Operand {
  mlir::Value value;
  DType dtype = DType::F32;
};

/// What is known of a dimension; Dim::handle points at one.
struct DimRecord {
  mlir::StringAttr name;
  mlir::Operation *op = nullptr;
  Site site;
  /// The dimension that this one is a block of; null for others.
  mlir::StringAttr blockOf;
};

/// The head of the list of live tiles, and access to the list's links.
struct LiveTiles {
  Tile *first = nullptr;
  void add(Tile *tile, uint64_t identity);
  static void remove(Tile *tile);
  void clear();
  template <typename Visit> void each(Visit visit) {
    for (Tile *tile = first; tile; tile = tile->next)
      visit(tile);
  }
  static uint64_t identity(const Tile *tile) { return tile->identity; }
  static detail::Value &state(Tile *tile) { return tile->state; }
};

class TraceContext {
public:
  TraceContext(mlir::MLIRContext &context, const TraceOptions &options);
  ~TraceContext();
  TraceContext(const TraceContext &) = delete;

  /// The trace in progress on this thread; null outside of one.
  static TraceContext *current();

  //===--- Diagnostics ----------------------------------------------------===//

  void error(Site where, const char *code, std::string message);
  /// Records the error and returns a poison tile.
  Tile fail(Site where, const char *code, std::string message);
  Tile poison(Site where);

  //===--- Values ---------------------------------------------------------===//

  mlir::Location loc(Site where);
  /// The type in which tiles of `type` compute, and the type it is stored as.
  mlir::Type computeIRType(DType type);
  mlir::Type storageIRType(DType type);

  Tile make(mlir::Value value, DType dtype, Site where);
  detail::Value makeValue(mlir::Value value, DType dtype, Site where);
  /// The IR value, or null: silently for poison, with an error for a tile
  /// without a value, of another trace or of a region that has ended.
  mlir::Value use(const detail::Value &value, Site where);

  /// An operand's value; a number becomes a constant of `type` (an index if
  /// `asIndex`). Null after an error.
  mlir::Value operand(const Arg &arg, DType type, bool asIndex,
                      const char *what);
  /// A number as a constant, with the type of Tile's constructor.
  Operand literal(const Arg &arg);
  mlir::Value constant(double value, DType type, Site where);
  mlir::Value integer(int64_t value, mlir::Type type, Site where);

  /// Brings operands to one element type; false after an error. `what` names
  /// the operation.
  bool unifyTypes(llvm::ArrayRef<const Arg *> args, const char *what,
                  llvm::SmallVectorImpl<mlir::Value> &values, DType &dtype);
  /// Broadcasts values to the union of their dimensions.
  void unifyDims(llvm::SmallVectorImpl<mlir::Value> &values, Site where);
  /// One operand on its own.
  std::optional<Operand> single(const Arg &arg);

  /// `value` with exactly these dimensions, or null if it has others.
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<mlir::StringAttr> dims,
                     Site where);
  /// `value` as `type`: expanded, an index as i64 or the reverse; or null.
  mlir::Value coerce(mlir::Value value, mlir::Type type, Site where);
  /// An integer scalar as an index; null after an error.
  mlir::Value toIndex(const Arg &arg, const char *what);
  /// An index as an i64; other values as they are.
  mlir::Value fromIndex(mlir::Value value, Site where);

  //===--- Dimensions -----------------------------------------------------===//

  Dim declare(std::string_view name, mlir::Value extent, Site where,
              mlir::StringAttr blockOf = {});
  /// The dimension's record if it can be named here; null after an error.
  const DimRecord *find(const Dim &dim, Site where);
  bool find(const DimList &list, Site where,
            llvm::SmallVectorImpl<mlir::StringAttr> &names);
  /// The dimension that `name` is a block of; null when it is none.
  mlir::StringAttr blockOf(mlir::StringAttr name);
  /// " (declared at file:line)" for a dimension's name.
  std::string declaredAt(mlir::StringAttr name);
  std::string spellDims(mlir::Type tile);

  //===--- Regions --------------------------------------------------------===//

  enum class ScopeKind { Parallel, Serial, Pipeline, Reduction, Isolated };
  struct ScopeEntry {
    uint64_t tile;
    mlir::Value before;
    mlir::Value placeholder;
    Site site;
  };
  struct Scope {
    uint64_t id;
    ScopeKind kind;
    mlir::Operation *op;
    mlir::OpBuilder::InsertPoint outside;
    Order order;
    Site site;
    const char *what;
    std::vector<ScopeEntry> entries;
  };

  /// Opens a region and sets the coordinates; 0 after an error.
  uint64_t openRegion(RegionKind kind, std::span<const Axis> axes, Order order,
                      int64_t window, Coord *coordinates);
  void closeRegion(uint64_t scope);
  Coord coordinate(const Axis &axis, mlir::Value position);

  /// Runs `body` in `block`, in which outer tiles may not be assigned.
  void isolated(mlir::Block *block, Site where, const char *what,
                llvm::function_ref<void()> body);

  /// Ends a block; the values are those of the region.
  void yield(mlir::ValueRange values, Site where);
  /// An operation by name, for those whose builders add no convenience.
  mlir::Operation *create(llvm::StringRef name, Site where,
                          mlir::ValueRange operands, mlir::TypeRange results,
                          llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                          unsigned regions = 0);
  mlir::ArrayAttr strings(llvm::ArrayRef<mlir::StringAttr> names);

  mlir::MLIRContext &mlir;
  const TraceOptions &options;
  mlir::OpBuilder builder;
  uint64_t id;
  LiveTiles live;
  std::vector<Scope> scopes;
  std::vector<Error> diagnostics;
  std::vector<TunableInfo> tunables;
  uint64_t nextIdentity = 1;

private:
  void closeLoop(Scope &scope);
  void closeReduction(Scope &scope);
  void checkUnassigned(const Scope &scope);
  llvm::DenseMap<uint64_t, Tile *> liveByIdentity();
  /// Makes a placeholder's uses, in the IR and in live tiles, uses of `value`.
  void forward(mlir::Value placeholder, mlir::Value value);

  std::vector<std::unique_ptr<DimRecord>> dims;
  llvm::DenseMap<mlir::Value, mlir::Value> forwarded;
  std::vector<mlir::Operation *> retired;
  uint64_t nextScope = 1;
  TraceContext *enclosing;
};

/// Fills a combining region: a block of left and right values of `types` that
/// yields what `combine` returns. False after an error.
bool buildCombiner(TraceContext &context, mlir::Region &region,
                   llvm::ArrayRef<mlir::Type> types,
                   llvm::ArrayRef<DType> dtypes, const Combiner &combine,
                   Site where);

} // namespace tessera

#endif // TESSERA_DSL_CONTEXT_H
