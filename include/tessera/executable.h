//===- tessera/executable.h - Compiled kernels and their launch -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An Executable is one kernel compiled for one set of extents. Launching it
// checks the arguments against what it was compiled for and runs its stages,
// each a grid of independent programs, on a task pool. An Executable may be
// launched from any number of threads at once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXECUTABLE_H
#define TESSERA_EXECUTABLE_H

#include "tessera/error.h"
#include "tessera/pool.h"
#include "tessera/tensor.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera {

/// The signature of a compiled stage. `data[i]` is the address of element (0,
/// ..., 0) of view parameter i; `strides` holds the strides of all view
/// parameters one after another, in elements; `scalars` holds one 8-byte slot
/// per scalar parameter, whose first bytes are the value in the parameter's own
/// dtype (two bytes for bf16) and whose other bytes are zero. Programs [begin,
/// end) of the stage's grid are run. `scratch` has the stage's scratchBytes,
/// aligned to 64 bytes. Where a stage has workspaceBytes, `data` ends with the
/// address of its workspace. Returns 0, or the 1-based number of a check that
/// failed (validating builds, and memory for tiles over unbounded extents).
using StageEntry = int32_t (*)(void *const *data, const int64_t *strides,
                               const void *scalars, int64_t begin, int64_t end,
                               void *scratch);

/// One grid of independent programs; the stages of a kernel run in order.
struct Stage {
  StageEntry entry = nullptr;
  /// The function's name in the object file.
  std::string symbol;
  /// Number of programs in the grid.
  int64_t programs = 0;
  /// Scratch one task needs, in bytes.
  int64_t scratchBytes = 0;
  /// Estimated time of one program on one thread, in nanoseconds: what the
  /// runtime's task grain is derived from.
  double nanosecondsPerProgram = 0;
  /// Where several programs share a reduction, the bytes in which they leave
  /// its parts for each other: memory that all calls of one launch have in
  /// common and no other launch has, aligned to 64 bytes. Its first
  /// workspaceZeroBytes are zero before the first program, and are again after
  /// the last.
  int64_t workspaceBytes = 0;
  int64_t workspaceZeroBytes = 0;
};

/// What the executable was compiled to accept for one view parameter.
struct ViewParameter {
  std::string name;
  /// The storage type of its elements.
  DType dtype = DType::F32;
  /// Whether the kernel may store to it.
  bool writable = false;
  /// In elements, one per axis; a launch needs exactly these.
  std::vector<int64_t> extents;
  /// Per axis: true when the compiled code assumes a stride of one element.
  std::vector<bool> unitStride;
  /// Whether a launch takes what Executable::pack made of the array instead.
  bool packed = false;
};

/// How an executable packs an array that it takes packed.
struct PackedParameter {
  /// Its place among the parameters.
  size_t parameter = 0;
  /// What packs: one program per panel. Of `data` it reads the array's entry,
  /// and after those of all views one more, where the panels go.
  Stage stage;
  int64_t panels = 0;
  /// From one panel to the next.
  int64_t panelBytes = 0;
  /// Tells the layout: equal for executables of equal kernels, extents and
  /// plans.
  std::string tag;
};

/// What the executable accepts for one scalar parameter.
struct ScalarParameter {
  std::string name;
  /// The type the value is converted to.
  DType dtype = DType::F32;
  /// The value used when the caller gives none; NaN bits never stand for
  /// "none", `hasDefault` says so. Integers are kept as such: f64 has no room
  /// for all of i64.
  bool hasDefault = false;
  std::variant<double, int64_t> defaultValue = 0.0;
};

/// A parameter of an executable.
using Parameter = std::variant<ViewParameter, ScalarParameter>;

/// How the compiled code treats memory shared between a writable view and the
/// other views.
enum class AliasMode {
  /// No writable view shares a byte with another view.
  Disjoint,
  /// Writable views may be exactly the same view as an input.
  InPlace,
  /// Any overlap.
  Overlap,
};

/// A library of another vendor that compiled code calls
/// (runtime/host/vendor_library.h).
class VendorLibrary;

/// The runtime's half of an executable: plain data, no compiler types.
struct ExecutableInfo {
  /// The kernel's name.
  std::string kernel;
  /// In the order of launch arguments.
  std::vector<Parameter> parameters;
  /// In the order in which they run.
  std::vector<Stage> stages;
  /// The arrays that are taken packed.
  std::vector<PackedParameter> packs;
  AliasMode alias = AliasMode::Disjoint;
  /// Messages of the checks a stage can report, by number minus one.
  std::vector<Error> checks;
  /// Keeps the machine code alive.
  std::shared_ptr<void> code;
  /// The library that does the work, null for none. It has threads of its own,
  /// as many as a launch may use.
  std::shared_ptr<VendorLibrary> vendor;
  /// The `tessera run` command, up to scalars and threads, that compiles this
  /// kernel again: what the verbose log prints. May be empty.
  std::string command;
};

struct PackedArray;

/// An array in the layout that one executable reads it in (Executable::pack).
/// It owns its memory, which copies share; a default one has none.
class Packed {
public:
  Packed() = default;
  /// Of its memory; 0 for none.
  int64_t bytes() const;

  std::shared_ptr<const PackedArray> array;
};

/// One argument of a launch, in parameter order: a view or a scalar, or a
/// packed array for a view that the executable takes so. An integer given for a
/// floating parameter is converted; the reverse is an error unless the value is
/// integral. Scalars with a default may be left out at the end of the list.
using Argument = std::variant<TensorRef, double, int64_t, Packed>;

/// What a launch may decide. Everything has a default.
struct LaunchOptions {
  /// Threads that may take part, the caller included; 0 means all of the pool.
  int threads = 0;
  /// The pool that runs the tasks; null means the process-wide default pool.
  TaskPool *pool = nullptr;
  /// Options that the verbose log adds to the command, "--seed 3": what made
  /// the arguments.
  std::string_view logOptions = {};
};

class PreparedLaunch;

/// A compiled kernel. Copies share the code; a copy is cheap.
class Executable {
public:
  /// Wraps what a compiler made; see tessera/compile.h for where executables
  /// come from.
  explicit Executable(ExecutableInfo info);

  /// What it was compiled for.
  const ExecutableInfo &info() const { return *shared; }

  /// Checks every argument (count, rank, dtype, extents, strides, alignment of
  /// the data pointer to its element size, overlap) and runs the kernel.
  /// Returns a Launch error, with nothing written, when a check fails.
  Result<void> launch(std::span<const Argument> arguments,
                      const LaunchOptions &options = {}) const;

  /// Does the checks of launch() once; the result can be run many times and
  /// allocates nothing when it is run, but for tiles over data-dependent
  /// extents that nothing bounds.
  Result<PreparedLaunch> prepare(std::span<const Argument> arguments,
                                 const LaunchOptions &options = {}) const;

  /// Brings an array into the layout that the executable reads it in, for any
  /// number of launches: parameter `name` was among CompileOptions::prepacked.
  /// The array itself is no longer needed afterwards, and later changes of it
  /// have no effect. Fails with a Launch error for an array that launch() would
  /// not take.
  Result<Packed> pack(std::string_view name, const TensorRef &array,
                      const LaunchOptions &options = {}) const;

private:
  std::shared_ptr<const ExecutableInfo> shared;
};

/// A launch whose checks have been done. It owns its scratch memory, so one
/// PreparedLaunch must not be run from two threads at once; make two.
class PreparedLaunch {
public:
  PreparedLaunch(PreparedLaunch &&) noexcept;
  PreparedLaunch &operator=(PreparedLaunch &&) noexcept;
  ~PreparedLaunch();

  /// Runs the kernel. Only a data-dependent check of a validating executable
  /// can fail here.
  Result<void> run();

private:
  friend class Executable;
  struct State;
  explicit PreparedLaunch(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace tessera

#endif // TESSERA_EXECUTABLE_H
