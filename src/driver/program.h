//===- program.h - A kernel from any source, ready to compile ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Program holds the Tile IR of one kernel, traced from C++ or read from text,
// and compiles it for given extents or runs it in the interpreter. No MLIR type
// appears here, so tools and tests include it cheaply.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PROGRAM_H
#define TESSERA_DRIVER_PROGRAM_H

#include "interp/options.h"
#include "support/vendor.h"
#include "target/target.h"
#include "tessera/compile.h"
#include "tessera/dsl/kernel.h"
#include "tessera/executable.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// A parameter of a program, in the order of launch arguments.
struct ProgramParameter {
  std::string name;
  bool isView = false;
  DType dtype = DType::F32;
  int64_t rank = 0;
  bool writable = false;
  /// Whether some op writes to the view.
  bool isStored = false;
  bool hasDefault = false;
  std::variant<double, int64_t> defaultValue = 0.0;
};

struct Machine;
struct Plan;
struct PlanChoices;
struct PlanSubject;

/// A saved plan (driver/plan_file.h).
struct PlanText {
  /// The file, for messages.
  std::string name;
  std::string text;
};

struct CompileRequest {
  /// Extents per parameter, in order; empty for scalars.
  std::vector<std::vector<int64_t>> extents;
  /// Per parameter and axis, whether the stride is known to be one. Empty: the
  /// last axis of every view.
  std::vector<std::vector<bool>> unitStride;
  AliasMode alias = AliasMode::Disjoint;
  /// Code for a level that this machine cannot run is made and not loaded: the
  /// stages of the executable have no entry.
  Isa isa = hostIsas().front();
  /// Threads that calls will have at most: what the values of tunables are
  /// chosen for. 0 for all processors of this machine.
  int threads = 0;
  /// Check data-dependent indices before anything is written.
  bool validate = false;
  /// What code costs where it is to run; null for this machine if it can run
  /// `isa`, else a generic one.
  const Machine *machine = nullptr;
  /// A plan to apply instead of searching one, as far as it is legal.
  std::shared_ptr<const PlanChoices> choices;
  /// A saved plan to apply instead of searching one. What cannot be applied is
  /// an error.
  std::optional<PlanText> savedPlan;
  /// A library that the whole kernel is handed to. Where it is not proved to be
  /// what the library computes, an error.
  Vendor vendor = Vendor::None;
  /// Arrays that the caller packs, by name: launches take what
  /// Executable::pack makes of them.
  std::vector<std::string> prepacked;
  /// Where no plan is given, take a tuned one if there is one
  /// (driver/plan_store.h).
  bool useTunedPlans = true;
  /// Take the executable from this user's disk if it is there, and keep it
  /// there (driver/cache_store.h). Such a kernel has no plan: what it says of
  /// itself is the report.
  bool useDiskCache = false;
  /// Put what the machine code itself tells (stack use, registers) into the
  /// report, which costs disassembling it.
  bool machineFacts = false;
  /// The command that compiles this again, for the launch log; may be empty.
  std::string command;
  /// Receives the text of each stage: "tile", "loops", "llvm", "asm".
  std::function<void(const char *stage, std::string text)> stageText;
};

/// Seconds spent in the parts of a compilation, in order.
struct StageTime {
  std::string stage;
  double seconds = 0;
};

/// How sums are formed: what bounds their rounding (support/bounded.h,
/// Arithmetic).
struct SummationPlan {
  /// Independent partial sums in the nest that has the fewest; 1 covers any
  /// order.
  int64_t partials = 1;
  /// Additions beyond what `partials` implies.
  int64_t extraDepth = 0;
  /// Whether exponentials, and whether deviations from a mean and their
  /// squares, are summed about a reference (support/reference.h).
  bool shifted = false;
  bool aboutReference = false;
  /// Whether contractions may take subnormal numbers for zero.
  bool flushesContractions = false;
};

/// What a kernel has to do at the least, from its accesses and operations.
struct WorkEstimate {
  /// Bytes of all views that are read and written, each element once.
  int64_t bytesRead = 0;
  int64_t bytesWritten = 0;
  /// Floating operations; a function such as exp counts as one, a fused
  /// multiply-add as two.
  double flops = 0;
};

struct CompiledKernel {
  Executable executable;
  /// The object file the executable was loaded from.
  std::string object = {};
  /// The plan, and the candidates it was chosen from (plan/plan.h); null for a
  /// kernel from disk.
  std::shared_ptr<const Plan> plan = {};
  /// What the plan is for, to save it (driver/plan_file.h); null with the plan.
  std::shared_ptr<const PlanSubject> subject = {};
  /// Where the plan is from: "search", "default" (there was nothing to
  /// choose), "file", "tuned", "request".
  std::string planSource = {};
  /// The plan in one line.
  std::string planSummary = {};
  std::vector<StageTime> times = {};
  /// The execution report as JSON text (docs/report.md), of the compilation
  /// that made the object.
  std::string report = {};
  SummationPlan summation = {};
  WorkEstimate work = {};
  /// Whether it is from disk.
  CompileRecord cache = {};
};

/// What is on disk for a request (driver/cache_store.h).
struct CacheState {
  /// The key's name; empty where the request is none of the cache's business.
  std::string key;
  /// Whether compiling would take the executable from disk.
  bool isHit = false;
  /// Why not.
  std::string reason;
  /// The file of the executable, or of the one whose key is nearest; empty for
  /// none.
  std::string path;
  /// In which parts the nearest key differs.
  struct Difference {
    std::string part, found, wanted;
  };
  std::vector<Difference> differences;
};

class Program {
public:
  /// Traces a kernel. Fails with Diagnostic or Usage errors.
  static Result<Program> fromKernel(const Kernel &kernel,
                                    const TraceOptions &options);

  /// Reads Tile IR text that holds one kernel, or the one called `kernel`.
  /// Malformed, ill-typed or hostile text is a Diagnostic at its position.
  static Result<Program> fromText(const std::string &text,
                                  const std::string &fileName,
                                  const std::string &kernel = "");
  static Result<Program> fromFile(const std::string &path,
                                  const std::string &kernel = "");

  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;
  ~Program();

  const std::string &name() const;
  /// The file the text was read from; empty for a traced kernel.
  const std::string &fileName() const;
  const std::vector<ProgramParameter> &parameters() const;
  /// The dimensions the kernel declares, in order.
  std::vector<std::string> dims() const;
  std::string text() const;
  Tier tier() const;
  void setTier(Tier tier);

  /// The extents of all parameters that follow from those of given dimensions
  /// and of given arrays (absent ones are unknown); ranks must be right.
  Result<std::vector<std::vector<int64_t>>> deriveExtents(
      const std::map<std::string, int64_t> &dims,
      const std::vector<std::optional<std::vector<int64_t>>> &known) const;

  Result<CompiledKernel> compile(const CompileRequest &request) const;

  /// What the disk has of a request's executable, without compiling it.
  Result<CacheState> cacheState(const CompileRequest &request) const;

  /// What a plan is predicted to take on each of several machines, in
  /// nanoseconds of one call on one thread.
  Result<std::vector<double>> predict(const CompileRequest &request,
                                      const PlanChoices &choices,
                                      std::span<const Machine> machines) const;

  /// Compiles for the given arguments: their extents, strides and overlap.
  Result<CompiledKernel> compileFor(std::span<const Argument> arguments,
                                    CompileRequest request = {}) const;

  /// Runs the reference interpreter.
  Result<void> interpret(std::span<const Argument> arguments,
                         const InterpretOptions &options,
                         InterpretReport *report = nullptr) const;

  struct State;

private:
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace tessera

#endif // TESSERA_DRIVER_PROGRAM_H
