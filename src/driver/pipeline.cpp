//===- pipeline.cpp - The compiler on one page ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/pipeline.h"

#include "codegen/cpu/expand_math.h"
#include "codegen/llvm/codegen.h"
#include "dialect/specialize.h"
#include "driver/call_time.h"
#include "driver/plan_store.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/vendor.h"
#include "search/search.h"
#include "search/short_code.h"
#include "support/env.h"
#include "support/hash.h"
#include "support/json_scan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace mlir;

namespace tessera {

namespace {

/// Runs the steps of a compilation, timing each.
class StepLog {
public:
  explicit StepLog(std::vector<StageTime> &times) : times(times) {}

  template <typename Step> auto operator()(const char *name, Step step) {
    auto start = std::chrono::steady_clock::now();
    auto result = step();
    times.push_back({name, std::chrono::duration<double>(
                               std::chrono::steady_clock::now() - start)
                               .count()});
    return result;
  }

private:
  std::vector<StageTime> &times;
};

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

} // namespace

/// Writes a stage's text. Dumps are no reason to fail a compilation: the first
/// of a process that cannot be written is told, the others are not.
static void writeDump(const std::string &folder, const std::string &path,
                      const std::string &text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file)
    return;
  int reason = errno;
  // What is no folder, the program says before.
  static std::atomic<bool> told = false;
  std::error_code code;
  if (std::filesystem::is_directory(folder, code) && !told.exchange(true))
    support::logLine("tessera: warning: TESSERA_DUMP_DIR is '" + folder +
                     "', but '" + path + "' cannot be written: " +
                     (reason ? std::strerror(reason) : "unknown reason"));
}

/// Adds, to the stage texts a request wants, files in TESSERA_DUMP_DIR.
static CompileRequest withDumps(const CompileRequest &request,
                                const std::string &kernel) {
  std::optional<std::string> folder =
      support::envText(support::EnvVariable::DumpDir);
  if (!folder)
    return request;
  static std::atomic<int> serial = 0;
  CompileRequest dumping = request;
  std::string prefix =
      *folder + "/" + kernel + "." + std::to_string(serial++) + ".";
  dumping.stageText = [folder = *folder, prefix, inner = request.stageText](
                          const char *stage, std::string text) {
    writeDump(folder, prefix + stage + ".txt", text);
    if (inner)
      inner(stage, std::move(text));
  };
  return dumping;
}

const Machine &machineOf(const CompileRequest &request) {
  if (request.machine)
    return *request.machine;
  for (Isa mine : hostIsas())
    if (mine == request.isa)
      return hostMachine();
  return genericMachine(request.isa);
}

/// The length of the longest chain of dependent operations.
static int64_t longestChain(tile::KernelOp kernel) {
  llvm::DenseMap<Value, int64_t> lengths;
  int64_t longest = 0;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    int64_t length = 0;
    for (Value operand : op->getOperands())
      length = std::max(length, lengths.lookup(operand));
    ++length;
    for (Value result : op->getResults())
      lengths[result] = length;
    longest = std::max(longest, length);
  });
  return longest;
}

/// What a plan for the specialized kernel is for.
static PlanSubject subjectOf(tile::KernelOp kernel, const Target &target,
                             const CompileRequest &request) {
  PlanSubject subject;
  subject.kernel = kernel.getSymName().str();
  subject.hash = support::hashBytes(printed(kernel)).hex();
  subject.target = target.name;
  subject.alias = request.alias;
  kernel.walk([&](tile::DimOp dim) {
    if (std::optional<int64_t> extent = constantIndex(dim.getExtent()))
      subject.extents.emplace_back(dim.getName().str(), *extent);
  });
  if (auto tunables = kernel->getAttrOfType<DictionaryAttr>("tile.tunables"))
    for (NamedAttribute tunable : tunables)
      if (auto value = cast<DictionaryAttr>(tunable.getValue())
                           .getAs<IntegerAttr>("value"))
        subject.tunables.emplace_back(tunable.getName().str(), value.getInt());
  subject.key = planKey(subject, request.extents, request.unitStride);
  return subject;
}

/// The file's arrays to prepack are arrays of the kernel.
static Result<void> checkPrepacked(const SavedPlan &saved,
                                   tile::KernelOp kernel) {
  std::vector<std::string> arrays;
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<tile::ViewType>(argument.getType()))
      arrays.push_back(kernel.getArgName(argument.getArgNumber()).str());
  for (const std::string &name : saved.choices.prepacked)
    if (!llvm::is_contained(arrays, name))
      return Error{ErrorFamily::Usage,
                   "usage.plan",
                   "plan '" + saved.name +
                       "': prepacked: found the unknown "
                       "array '" +
                       support::excerpt(name) + "', expected one of " +
                       llvm::join(arrays, ", "),
                   {}};
  return {};
}

/// The error of a decision of the file that names no file.
static Error inPlan(const SavedPlan &saved, Error error) {
  const std::string file = "plan '" + saved.name + "': ";
  const llvm::StringRef code = error.code;
  const char *field = code.starts_with("vendor.")    ? "vendor: "
                      : code.starts_with("prepack.") ? "prepacked: "
                                                     : nullptr;
  if (field && !llvm::StringRef(error.message).starts_with(file))
    error.message = file + field + error.message;
  return error;
}

/// What the request fixes of every plan.
static PlanChoices startOf(const CompileRequest &request) {
  PlanChoices start;
  start.prepacked.insert(request.prepacked.begin(), request.prepacked.end());
  return start;
}

Result<PipelineResult> compileForCpu(tile::KernelOp kernel,
                                     const CompileRequest &given) {
  const CompileRequest request = withDumps(given, kernel.getSymName().str());
  PipelineResult result;
  StepLog step(result.times);
  const Target &target = getTarget(request.isa);
  auto show = [&](const char *stage, Operation *op) {
    if (request.stageText)
      request.stageText(stage, printed(op) + "\n");
  };

  if (Result<void> fits = checkSize(kernel); !fits)
    return fits.error();
  const int64_t chain = longestChain(kernel);

  // Extents become constants first: everything after may rely on them.
  Result<void> specialized =
      step("specialize", [&] { return specialize(kernel, request.extents); });
  if (!specialized)
    return specialized.error();
  // A whole text: with its version it can be read again.
  if (request.stageText)
    request.stageText("tile", "module attributes {tile.version = " +
                                  std::to_string(tile::textVersion) +
                                  " : i64} {\n" + printed(kernel) + "\n}\n");

  Result<Pins> pins = readPins(kernel, target);
  if (!pins)
    return pins.error();
  const Machine &machine = machineOf(request);
  result.machine = &machine;

  // Facts about accesses, conflicts and phases, which planning and realization
  // share.
  auto analyze = [&](Keeping keeping, Passes passes) {
    return step("analyze", [&] {
      return std::make_unique<KernelAnalysis>(
          kernel, request.alias, request.extents,
          StrideFacts{request.unitStride}, keeping, passes);
    });
  };
  PlanChoices analyzed;
  std::unique_ptr<KernelAnalysis> analysis =
      analyze(analyzed.keeping, analyzed.passes);
  result.facts.work = estimateWork(kernel, *analysis, request.extents);
  const Traffic traffic = trafficOf(kernel, *analysis, request.extents);

  // Loops, vectors and scratch as planned, nest by nest.
  bool isSearched = false;
  auto realize = [&](const PlanChoices &choices) -> Result<RealizedKernel> {
    if (choices.keeping != analyzed.keeping ||
        choices.passes != analyzed.passes) {
      analyzed = choices;
      analysis = analyze(choices.keeping, choices.passes);
    }
    // What is searched was checked before it was looked at.
    if (!isSearched)
      if (Result<void> fits = checkEvaluated(kernel, evaluatedBy(*analysis));
          !fits)
        return fits.error();
    return step("realize", [&] {
      return realizeForCpu({*analysis, target, machine, *pins, choices},
                           {request.validate});
    });
  };
  auto realizeSaved = [&](const SavedPlan &saved) -> Result<RealizedKernel> {
    Result<RealizedKernel> made = realize(saved.choices);
    if (made)
      if (Result<void> all = checkHonoured(saved, made->plan, *pins); !all)
        return all.error();
    return made;
  };

  // The plan is given, or was found by measuring, or is searched: candidates
  // are realized and priced.
  result.subject = subjectOf(kernel, target, request);
  std::optional<RealizedKernel> realized;
  std::vector<PlanCandidate> candidates;
  if (request.vendor != Vendor::None && !request.savedPlan) {
    PlanChoices handed;
    handed.vendor = request.vendor;
    Result<RealizedKernel> made = realize(handed);
    if (!made)
      return made.error();
    realized = std::move(*made);
    result.planSource = "request";
  } else if (request.choices) {
    Result<RealizedKernel> made = realize(*request.choices);
    if (!made)
      return made.error();
    realized = std::move(*made);
    result.planSource = "request";
  } else if (request.savedPlan) {
    Result<SavedPlan> saved = readPlan(*request.savedPlan);
    if (!saved)
      return saved.error();
    if (PlanChoices asked = startOf(request);
        !asked.prepacked.empty() && asked.prepacked != saved->choices.prepacked)
      return Error{ErrorFamily::Usage,
                   "usage.prepacked",
                   "plan '" + saved->name +
                       "' has other prepacked arrays than those that are "
                       "asked for; leave out one of them",
                   {}};
    if (Result<void> fits = checkSubject(*saved, result.subject); !fits)
      return fits.error();
    if (request.vendor != Vendor::None &&
        request.vendor != saved->choices.vendor)
      return Error{ErrorFamily::Usage,
                   "usage.vendor",
                   "plan '" + saved->name + "': found vendor '" +
                       std::string(name(saved->choices.vendor)) + "', and '" +
                       std::string(name(request.vendor)) +
                       "' is asked for; leave out one of them",
                   {}};
    if (Result<void> known = checkPrepacked(*saved, kernel); !known)
      return known.error();
    Result<RealizedKernel> made = realizeSaved(*saved);
    if (!made)
      return inPlan(*saved, made.error());
    realized = std::move(*made);
    result.planSource = "file";
  } else if (request.useTunedPlans && request.prepacked.empty()) {
    result.tunedPlan = tunedPlanHash(result.subject.key);
    if (std::optional<SavedPlan> tuned = findTunedPlan(result.subject)) {
      if (Result<RealizedKernel> made = realizeSaved(*tuned)) {
        realized = std::move(*made);
        result.planSource = "tuned";
      } else {
        warnAboutTunedPlan(made.error().message);
      }
    }
  }
  if (!realized) {
    Result<SearchResult> found = step("search", [&] {
      return searchPlan(
          {kernel, target, machine, *pins, request.alias, request.extents,
           StrideFacts{request.unitStride}, traffic, startOf(request),
           request.threads, [&](const StagePrediction &stage, int64_t splits) {
             return callTime(stage, splits, request.threads, machine);
           }});
    });
    if (!found)
      return found.error();
    isSearched = true;
    candidates = std::move(found->candidates);
    result.isShort = found->isShort;
    Result<RealizedKernel> made = realize(found->choices);
    if (!made)
      return made.error();
    realized = std::move(*made);
    size_t priced = std::count_if(
        candidates.begin(), candidates.end(),
        [](const PlanCandidate &one) { return one.nanoseconds.has_value(); });
    result.planSource = priced > 1 ? "search" : "default";
  }
  show("loops", realized->module.get());

  // What the report says is read off before lowering rewrites it.
  result.facts.summation = summationOf(realized->plan);
  describeKernel(kernel, *analysis, result.facts);
  countRealized(realized->module.get(), target, kernel.getTier(), result.facts);

  // Multiply-adds between the author's operations first: the expansions of math
  // functions must keep their own roundings.
  result.multiplyAdds = step("multiply-adds", [&] {
    return formMultiplyAdds(realized->module.get(), target, kernel.getTier());
  });
  result.math = step("expand-math", [&] {
    return expandMath(realized->module.get(), target, kernel.getTier());
  });

  std::vector<int64_t> programs;
  for (const RealizedStage &stage : realized->stages)
    programs.push_back(stage.programs);
  if (realized->plan.vendor) {
    // Not by the proof that planned the call.
    for (const RealizedStage &stage : realized->stages)
      if (Result<void> same =
              checkVendorCall(realized->module.get(), stage.symbol, *analysis);
          !same)
        return same.error();
    // What a library's code costs is not known.
    result.prices.resize(programs.size());
    result.predicted.resize(programs.size());
  } else {
    result.prices = priceStages(realized->module.get(), target, machine);
    result.predicted =
        predictStages(result.prices, programs, traffic, target, machine);
  }
  result.emitted = emittedOf(result.prices);
  if (Result<void> fits = checkEmitted(kernel, result.emitted); !fits)
    return fits.error();
  result.isLong = chain > longChain || result.emitted > longestOptimized;

  // LLVM IR and machine code.
  CodegenOptions options;
  options.stageText = request.stageText;
  options.isLong = result.isLong;
  Result<CodegenResult> generated = step("codegen", [&] {
    return generateObject(realized->module.get(), target, options);
  });
  if (!generated)
    return generated.error();
  result.times.push_back({"codegen.lower", generated->lowerSeconds});
  result.times.push_back({"codegen.optimize", generated->optimizeSeconds});
  result.times.push_back({"codegen.emit", generated->emitSeconds});

  result.object = std::move(generated->object);
  result.plan = std::move(realized->plan);
  for (const RealizedPack &pack : realized->packs) {
    // Reading and writing at the pace of memory.
    const double nanoseconds = double(pack.panelBytes) * 0.2;
    result.packs.push_back(
        {pack.parameter,
         {nullptr, pack.stage.symbol, pack.stage.programs,
          pack.stage.scratchBytes, nanoseconds},
         pack.stage.programs,
         pack.panelBytes,
         support::hashBytes(writePlan(result.plan, result.subject)).hex()});
  }
  result.checks = std::move(realized->checks);
  result.plan.candidates = std::move(candidates);
  for (size_t i = 0; i < realized->stages.size(); ++i) {
    const RealizedStage &stage = realized->stages[i];
    double programTime =
        result.predicted[i].total / std::max(double(stage.programs), 1.0);
    result.stages.push_back({nullptr, stage.symbol, stage.programs,
                             stage.scratchBytes, programTime,
                             stage.workspaceBytes, stage.workspaceZeroBytes});
  }
  return result;
}

namespace {
/// What is known of a kernel that was made ready to be priced.
struct PricedKernel {
  const Target &target;
  Pins pins;
  Traffic traffic;
};
} // namespace

static Result<PricedKernel> prepareToPrice(tile::KernelOp kernel,
                                           const CompileRequest &request) {
  const Target &target = getTarget(request.isa);
  if (Result<void> fits = checkSize(kernel); !fits)
    return fits.error();
  if (Result<void> done = specialize(kernel, request.extents); !done)
    return done.error();
  Result<Pins> pins = readPins(kernel, target);
  if (!pins)
    return pins.error();
  KernelAnalysis analysis(kernel, request.alias, request.extents,
                          StrideFacts{request.unitStride});
  return PricedKernel{target, std::move(*pins),
                      trafficOf(kernel, analysis, request.extents)};
}

Result<std::vector<double>> predictForCpu(tile::KernelOp kernel,
                                          const CompileRequest &request,
                                          const PlanChoices &choices,
                                          ArrayRef<Machine> machines) {
  Result<PricedKernel> priced = prepareToPrice(kernel, request);
  if (!priced)
    return priced.error();
  return pricePlan({kernel, priced->target, machineOf(request), priced->pins,
                    request.alias, request.extents,
                    StrideFacts{request.unitStride}, priced->traffic},
                   choices, machines);
}

Result<std::vector<StagePrediction>>
predictStagesForCpu(tile::KernelOp kernel, const CompileRequest &request,
                    const PlanChoices &choices) {
  Result<PricedKernel> priced = prepareToPrice(kernel, request);
  if (!priced)
    return priced.error();
  return pricePlanStages({kernel, priced->target, machineOf(request),
                          priced->pins, request.alias, request.extents,
                          StrideFacts{request.unitStride}, priced->traffic},
                         choices);
}

} // namespace tessera
