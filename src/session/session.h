//===- session/session.h - Compile, run and check a kernel ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One call from an operator of the table, or a program, to a verdict about
// every element it wrote:
//
//   auto result = session::runOperator(*kernels::findOperator("softmax"),
//                                      {.dims = {{"rows", 3}, {"cols", 17}}});
//   if (result && result->passed()) ...
//
// Arrays lie in memory that ends at a guard page; outputs hold NaN patterns
// before the run. Afterwards the inputs, the bytes around every array and the
// gaps between the elements of strided outputs must be what they were.
//
// One compilation serves any number of runs: keep a CompiledOperator and call
// run() with other values.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_SESSION_H
#define TESSERA_SESSION_SESSION_H

#include "driver/program.h"
#include "kernels/table.h"
#include "session/verify.h"
#include "support/guarded_buffer.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::session {

using Edge = support::GuardedBuffer::Edge;
using Arrays = std::map<std::string, TensorRef, std::less<>>;

enum class Backend { Cpu, Interpreter };

/// What is compiled. Everything has a default.
struct RunRequest {
  /// Extents of dimensions. Those that given arrays imply may be left out; if
  /// none is given, an operator's others are its default extents.
  kernels::Dims dims = {};
  /// The storage type of floating parameters of an operator. Programs read from
  /// text have their own types.
  DType dtype = DType::F32;
  /// Values of scalars and constants by name; absent ones take their default.
  kernels::Settings settings = {};
  /// Values of tunables by name; absent ones are chosen.
  std::map<std::string, int64_t> tunables = {};
  /// Optional arrays to generate (inputs) or to compute (outputs). Those in
  /// `inputs` need not be named again.
  std::vector<std::string> present = {};
  /// Arrays to use instead of generated ones, copied by every run.
  Arrays inputs = {};
  /// The files that arrays of `inputs` were read from, for the log alone.
  std::map<std::string, std::string, std::less<>> inputFiles = {};
  Backend backend = Backend::Cpu;
  Isa isa = defaultIsa();
  /// Default for an operator, what the text says for a program.
  std::optional<Tier> tier = {};
  /// Threads that runs will have at most; 0 for all processors
  /// (driver/program.h).
  int threads = 0;
  /// Check data-dependent indices before anything is written.
  bool validate = true;
  /// A plan to apply instead of searching one, and whether tuned ones are
  /// looked for (driver/program.h).
  std::shared_ptr<const PlanChoices> choices = {};
  /// What code costs where it is to run (driver/program.h).
  const Machine *machine = nullptr;
  std::optional<PlanText> savedPlan = {};
  bool useTunedPlans = true;
  /// Take the executable from disk if it is there, and keep it there
  /// (driver/program.h).
  bool useDiskCache = false;
  /// A library that the whole kernel is handed to (driver/program.h).
  Vendor vendor = Vendor::None;
  /// Arrays that are packed before a launch (driver/program.h).
  std::vector<std::string> prepacked = {};
  /// Strides of an array in elements, by name; absent ones are dense.
  std::map<std::string, std::vector<int64_t>, std::less<>> strides = {};
  /// Outputs that are the same memory as an input: output name to input name.
  std::map<std::string, std::string, std::less<>> inPlace = {};
  /// The end of each array that touches a guard page.
  Edge edge = Edge::End;
  /// Disassemble the code for the report (driver/program.h).
  bool machineFacts = false;
  /// Receives the text of each stage (driver/program.h).
  std::function<void(const char *stage, std::string text)> stageText = {};
};

/// The largest program that RunValues::checkAccesses interprets: elements of
/// all its arrays, and steps of the interpreter (an operation on one element,
/// an iteration, an instance).
inline constexpr int64_t maxCheckedElements = int64_t{1} << 20;
inline constexpr int64_t maxCheckedSteps = int64_t{1} << 24;

/// What one run adds.
struct RunValues {
  uint64_t seed = 0;
  /// The class of generated floating inputs; masks and indices stay what they
  /// are.
  std::optional<kernels::ValueClass> valueClass = {};
  /// Arrays for this run alone, with the extents of the compilation.
  Arrays inputs = {};
  /// 0 means all of the pool.
  int threads = 0;
  TaskPool *pool = nullptr;
  bool verify = true;
  /// Before a compiled launch, interpret the program on copies of the arrays
  /// and fail where two instances of a parallel region race or an access leaves
  /// the view that it promised to stay in. Programs past the limits below are
  /// not interpreted.
  bool checkAccesses = false;
  /// Prepared runs to time after the checked one, until about this many seconds
  /// are spent; 0 for none. At least one is made otherwise.
  double timeSeconds = 0;
  /// Runs compiled code in the place of this process, which cannot run that of
  /// other machines: it must check the arguments as a launch does.
  std::function<Result<void>(const CompiledKernel &kernel,
                             std::span<const Argument> arguments)>
      launcher = {};
};

struct RunResult {
  std::vector<OutputResult> outputs;
  /// Everything wrong beside wrong elements: overwritten guards or inputs.
  std::vector<std::string> problems;
  /// Whether the outputs were compared.
  bool verified = false;
  /// "passed" or "skipped, too large"; empty where races were not looked for.
  std::string raceCheck;
  /// Median time of a prepared run; 0 if none was timed.
  double seconds = 0;
  int timedRuns = 0;

  /// No problem, and every element was accepted.
  bool passed() const;
  /// One line per problem and wrong output, for test failures.
  std::string failures() const;
};

/// How tuning goes on.
struct TuneProgress {
  /// "verifying", "timing", "confirming".
  const char *step = "";
  /// Plans that are done, of how many; both 0 where that is not counted.
  size_t done = 0;
  size_t all = 0;
  double secondsLeft = 0;
};

struct TuneOptions {
  /// Time to spend, about; a slow kernel takes what a few runs take.
  double seconds = 10;
  /// Plans to look at beside the chosen one, those with the shortest
  /// predicted times; 0 for all that were admitted.
  size_t candidates = 0;
  uint64_t seed = 0;
  std::function<void(const TuneProgress &)> progress = {};
};

/// One plan that tuning looked at.
struct TuneCandidate {
  /// PlanCandidate::what, ::code, and its predicted time in seconds.
  std::string what;
  std::string code;
  double predicted = 0;
  /// Median of a run; absent if it was not timed.
  std::optional<double> seconds;
  /// What is wrong with its results or its compilation, which is a defect of
  /// the compiler; empty if nothing is.
  std::string problem;
};

struct TuneOutcome {
  /// The plan that the search chose first.
  std::vector<TuneCandidate> candidates;
  /// The fastest one, 0 for the chosen.
  size_t best = 0;
  /// From a race of their own: the chosen plan, the best one compiled again
  /// from its saved form, and the largest relative difference between the
  /// chosen one and a second compilation of it.
  double chosenSeconds = 0;
  double bestSeconds = 0;
  double noise = 0;
  /// Median of how many times as fast the best plan was.
  double gain = 1;
  /// The best plan, compiled; the chosen one is CompiledOperator::compiled().
  std::optional<CompiledKernel> kernel;

  /// Whether the best plan is faster by more than the noise.
  bool isFaster() const { return best > 0 && gain > 1 + noise; }
  /// Whether no plan had a problem.
  bool passed() const;
};

/// One array parameter of a compiled operator.
struct ArrayParameter {
  std::string name;
  DType dtype = DType::F32;
  bool isOutput = false;
  std::vector<int64_t> extents;
};

/// A kernel compiled for a request whose arrays need not exist.
struct Compilation {
  Program program;
  CompiledKernel kernel;
  kernels::Dims dims;
  /// Per parameter, in order; empty for scalars.
  std::vector<std::vector<int64_t>> extents;
};

enum class Assume {
  /// Dense arrays: what a run of the request compiles.
  Dense,
  /// Adjacent elements along the last axis only, any stride elsewhere: for code
  /// that other programs call.
  LastAxisAdjacent,
};

class CompiledOperator {
public:
  /// Fails with Usage errors (dims, names, types), those of tracing and
  /// compilation, and Unsupported where the memory cannot be had.
  static Result<CompiledOperator> create(const kernels::Operator &op,
                                         const RunRequest &request);
  static Result<CompiledOperator> create(Program program,
                                         const RunRequest &request);

  CompiledOperator(CompiledOperator &&) noexcept;
  CompiledOperator &operator=(CompiledOperator &&) noexcept;
  ~CompiledOperator();

  /// Makes the arguments, launches, times and verifies. A verdict of wrong is
  /// no error; failing launches are.
  Result<RunResult> run(const RunValues &values = {});

  /// Times the kernel's plan against others, on the arguments of the last run,
  /// in rotating order on one thread until about `seconds` are spent. Returns
  /// the median time of each in seconds; nothing is said of their results.
  Result<std::vector<double>> race(std::span<const CompiledKernel> others,
                                   double seconds);

  /// Measures the plans that the compilation looked at: verifies each, times
  /// those that are right against the chosen one, and confirms the fastest. For
  /// a compilation that searched its plan.
  Result<TuneOutcome> tune(const TuneOptions &options);

  /// Makes the arguments of a run and launches nothing.
  Result<void> fill(const RunValues &values = {});
  /// Judges outputs that something else computed from the arguments of the last
  /// run or fill. `factor` widens every error bound: 1 is this kernel's own.
  /// The bounds are computed once per filling.
  Result<std::vector<OutputResult>> judge(const Arrays &outputs,
                                          double factor = 1);

  const Program &program() const;
  /// Null for the interpreter.
  const CompiledKernel *compiled() const;
  std::vector<ArrayParameter> arrays() const;
  /// The array of a parameter as the last run left it; null if there is none of
  /// that name.
  const TensorRef *array(std::string_view name) const;
  /// The extents by dimension; empty for programs.
  const kernels::Dims &dims() const;

  /// For compileOperator and compileProgram.
  static Result<Compilation> compileOnly(Program program,
                                         const kernels::Operator *op,
                                         const RunRequest &request,
                                         Assume assume);
  /// For cacheStateOfOperator and cacheStateOfProgram.
  static Result<CacheState> cacheState(Program program,
                                       const kernels::Operator *op,
                                       const RunRequest &request);

private:
  struct State;
  explicit CompiledOperator(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

/// The program of an operator under a request: its trace, without compiling.
Result<Program> traceOperator(const kernels::Operator &op,
                              const RunRequest &request);

/// Compiles without running; `inputs` of the request give extents alone.
Result<Compilation> compileOperator(const kernels::Operator &op,
                                    const RunRequest &request,
                                    Assume assume = Assume::Dense);
Result<Compilation> compileProgram(Program program, const RunRequest &request,
                                   Assume assume = Assume::Dense);

/// What the disk has of the executable that a run of the request uses.
Result<CacheState> cacheStateOfOperator(const kernels::Operator &op,
                                        const RunRequest &request);
Result<CacheState> cacheStateOfProgram(Program program,
                                       const RunRequest &request);

Result<RunResult> runOperator(const kernels::Operator &op,
                              const RunRequest &request = {},
                              const RunValues &values = {});
Result<RunResult> runProgram(Program program, const RunRequest &request = {},
                             const RunValues &values = {});

} // namespace tessera::session

#endif // TESSERA_SESSION_SESSION_H
