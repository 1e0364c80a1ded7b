//===- report.cpp - The execution report ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/report.md lists every field with its source.
//
//===----------------------------------------------------------------------===//

#include "driver/report.h"

#include "driver/object_facts.h"
#include "driver/remarks.h"
#include "runtime/host/vendor_library.h"

#include "nlohmann/json.hpp"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <map>

using Json = nlohmann::ordered_json;
using llvm::StringRef;

namespace tessera {

/// Raised when a field changes its meaning or goes away.
static constexpr int reportSchema = 1;

namespace {

class ReportWriter {
public:
  ReportWriter(const PipelineResult &compiled, const ExecutableInfo &info,
               tile::KernelOp kernel, const CompileRequest &request)
      : compiled(compiled), info(info), kernel(kernel), request(request),
        target(getTarget(request.isa)) {}

  std::string run() {
    Json report;
    report["schema"] = reportSchema;
    report["kernel"] = info.kernel;
    report["origin"] = name(ExecutableOrigin::Compiled);
    report["parameters"] = parameters();
    report["plan"] = plan();
    report["passes"] = passes();
    report["loops"] = loops();
    report["allocations"] = allocations();
    addAccesses(report);
    report["epilogue_regions"] = epilogues();
    report["numerics"] = numerics();
    report["machine"] = machine();
    report["work"] = work();
    report["remarks"] = Json::array();
    for (const Reason &remark : remarksOn(compiled, info, kernel.getTier()))
      report["remarks"].push_back(
          {{"code", remark.code}, {"text", remark.text}});
    report["measured"] = nullptr;
    report["notes"] = notes;
    // Names of a text may hold any bytes; those that are no UTF-8 are replaced.
    return report.dump(2, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace);
  }

private:
  Json parameters() const {
    Json result = Json::array();
    for (const Parameter &parameter : info.parameters) {
      if (const auto *view = std::get_if<ViewParameter>(&parameter)) {
        result.push_back({{"name", view->name},
                          {"kind", "view"},
                          {"dtype", name(view->dtype)},
                          {"writable", view->writable},
                          {"extents", view->extents},
                          {"unit_stride", view->unitStride}});
        continue;
      }
      const auto &scalar = std::get<ScalarParameter>(parameter);
      result.push_back({{"name", scalar.name},
                        {"kind", "scalar"},
                        {"dtype", name(scalar.dtype)}});
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Plan
  //===--------------------------------------------------------------------===//

  std::optional<int64_t> extentOf(StringRef dim) const {
    for (const auto &[name, extent] : compiled.facts.dims)
      if (dim == name)
        return extent;
    return std::nullopt;
  }

  /// The dimensions of a list as the plan writes it, reduced ones included.
  static std::vector<std::string> dimsOf(StringRef space) {
    std::vector<std::string> dims;
    llvm::SmallVector<StringRef> parts;
    space.split(parts, ", ", -1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      part.consume_front("+");
      dims.push_back(part.str());
    }
    return dims;
  }

  /// The largest index space one program runs over, by dimension.
  Json tileShape(const StagePlan &stage) const {
    Json best = Json::object();
    double bestElements = -1;
    for (const NestPlan &nest : stage.nests) {
      Json shape = Json::object();
      double elements = 1;
      for (const std::string &dim : dimsOf(nest.space)) {
        std::optional<int64_t> extent = extentOf(dim);
        shape[dim] = extent ? Json(*extent) : Json();
        elements *= double(extent.value_or(1));
      }
      if (elements > bestElements) {
        bestElements = elements;
        best = std::move(shape);
      }
    }
    return best;
  }

  static bool isRejection(const Reason &reason) {
    StringRef code = reason.code;
    return code == "vector.extent" || code == "vector.strided" ||
           code == "vector.ordered";
  }

  /// `stage` is its place among the stage functions.
  Json nestJson(const NestPlan &nest, size_t stage) const {
    Json entry{{"space", dimsOf(nest.space)},
               {"computes", nest.roots},
               {"vector_dimension", nullptr},
               {"lanes", nest.lanes},
               {"vectors_per_iteration", nest.unroll},
               {"tiled_dimension", nullptr},
               {"rows_per_iteration", nest.tileRows},
               {"packs_operand", nest.packedOperand >= 0},
               {"atom", nullptr},
               {"reduced_block", nest.reducedBlock},
               {"epilogue", nest.epilogue},
               {"transposes", nest.transposes},
               {"stores_around_caches", nest.storesAround},
               {"aligns_stores", nest.alignsStores},
               {"tail", name(nest.tail)},
               {"predicted_ns", nullptr},
               {"reasons", Json::array()},
               {"rejected_alternatives", Json::array()}};
    entry["id"] = nest.id;
    const auto &cycles = compiled.prices[stage].nestCycles;
    if (auto found = cycles.find(nest.id); found != cycles.end())
      entry["predicted_ns"] =
          found->second / compiled.machine->costs(target).gigahertz;
    if (!nest.vectorDim.empty())
      entry["vector_dimension"] = nest.vectorDim;
    if (nest.tileRows > 1)
      entry["tiled_dimension"] = nest.tileDim;
    if (!nest.atom.empty())
      entry["atom"] = nest.atom;
    for (const Reason &reason : nest.reasons) {
      Json item{{"code", reason.code}, {"text", reason.text}};
      // Nothing was priced: these were not legal or not sensible.
      if (isRejection(reason))
        item["predicted_cost"] = nullptr;
      entry[isRejection(reason) ? "rejected_alternatives" : "reasons"]
          .push_back(std::move(item));
    }
    return entry;
  }

  Json plan() const {
    int64_t width = 1;
    Json stages = Json::array(), shapes = Json::array();
    Json reasons = Json::array(), rejected = Json::array();
    // Checking stages come first and have no plan.
    size_t first = info.stages.size() - compiled.plan.stages.size();
    for (const auto &[number, stage] : llvm::enumerate(compiled.plan.stages)) {
      const Stage &emitted = info.stages[first + number];
      Json entry{{"symbol", emitted.symbol},
                 {"grid", stage.grid},
                 {"programs", stage.programs},
                 {"programs_together", stage.order.together},
                 {"prefetch", name(stage.order.prefetch)},
                 {"edges", name(stage.order.edges)},
                 {"interior_programs", stage.order.interior},
                 {"splits", stage.order.splits},
                 {"scratch_bytes", emitted.scratchBytes},
                 {"workspace_bytes", emitted.workspaceBytes},
                 {"nests", Json::array()}};
      for (const Reason &reason : stage.order.reasons)
        reasons.push_back({{"code", reason.code}, {"text", reason.text}});
      for (const NestPlan &nest : stage.nests) {
        width = std::max(width, nest.lanes);
        Json item = nestJson(nest, first + number);
        for (const Json &reason : item["reasons"])
          reasons.push_back(reason);
        for (const Json &reason : item["rejected_alternatives"])
          rejected.push_back(reason);
        entry["nests"].push_back(std::move(item));
      }
      stages.push_back(std::move(entry));
      shapes.push_back(tileShape(stage));
    }
    Json result;
    result["backend"] = "cpu";
    result["target"] = compiled.plan.target;
    result["summary"] = compiled.plan.summary();
    result["source"] = compiled.planSource;
    result["vendor"] = vendor();
    result["prepacked"] = Json::array();
    for (const PrepackedPlan &packed : compiled.plan.prepacked)
      result["prepacked"].push_back(
          {{"array", packed.name},
           {"panels", packed.panels},
           {"panels_over", packed.grid},
           {"panel", packed.panel},
           {"panel_bytes", packed.bytes},
           {"panel_spacing", packed.spacing},
           {"bytes", packed.panels * packed.spacing}});
    result["alias"] = name(compiled.plan.alias);
    result["tile_shape"] = shapes;
    result["vector_width"] = width;
    // Facts of GPU plans.
    for (const char *field : {"threadgroup_size", "simdgroup_grid", "staging",
                              "double_buffer", "cooperative_layout"})
      result[field] = nullptr;
    const BoundsFact &bounds = compiled.facts.bounds;
    result["outer_bounds_proven"] = bounds.checked == 0;
    result["bounds"] = {{"axes", bounds.axes}, {"checked", bounds.checked}};
    result["reasons"] = unique(reasons);
    result["keeping"] = name(compiled.plan.keeping);
    result["passes"] = name(compiled.plan.passes);
    result["threads"] = request.threads;
    result["tunables"] = tunables();
    result["candidates"] = candidates();
    for (const Json &candidate : result["candidates"])
      if (candidate["code"] != "chosen")
        rejected.push_back(
            {{"code", candidate["code"]},
             {"text", candidate["what"]},
             {"predicted_cost", candidate["predicted_seconds"]}});
    result["rejected_alternatives"] = unique(rejected);
    result["stages"] = stages;
    return result;
  }

  /// The values that were looked at, or those that the kernel came with.
  Json tunables() const {
    Json result = Json::array();
    auto add = [&](const auto &values, StringRef code) {
      Json entry{{"values", Json::object()}, {"code", code}};
      for (const auto &[name, value] : values)
        entry["values"][name] = value;
      entry["predicted_seconds"] = nullptr;
      result.push_back(std::move(entry));
    };
    for (const TunableCandidate &candidate : compiled.tunables) {
      add(candidate.values, candidate.code);
      if (candidate.nanoseconds)
        result.back()["predicted_seconds"] = 1e-9 * *candidate.nanoseconds;
    }
    if (result.empty() && !compiled.subject.tunables.empty())
      add(compiled.subject.tunables, "given");
    return result;
  }

  /// The call that the kernel is; null where it is compiled.
  Json vendor() const {
    if (!compiled.plan.vendor)
      return nullptr;
    const VendorCall &call = *compiled.plan.vendor;
    Json result{{"interface", name(call.library)},
                {"library", nullptr},
                {"function", call.function},
                {"m", call.m},
                {"n", call.n},
                {"k", call.k},
                {"alpha", call.alpha},
                {"beta", VendorCall::beta},
                {"batch", call.batch}};
    if (info.vendor)
      result["library"] = info.vendor->file();
    for (const auto &[role, matrix] :
         {std::pair("a", &call.a), {"b", &call.b}, {"c", &call.c}}) {
      Json entry{{"array", matrix->name},
                 {"transposed", matrix->transposed},
                 {"leading_axis", nullptr},
                 {"least_leading_dimension", matrix->leastLeading}};
      if (matrix->leadingAxis >= 0)
        entry["leading_axis"] = matrix->leadingAxis;
      result[role] = std::move(entry);
    }
    return result;
  }

  Json candidates() const {
    Json result = Json::array();
    for (const PlanCandidate &candidate : compiled.plan.candidates) {
      Json entry{{"what", candidate.what},
                 {"code", candidate.code},
                 {"predicted_seconds", nullptr},
                 {"instructions", candidate.instructions}};
      if (candidate.nanoseconds)
        entry["predicted_seconds"] = 1e-9 * *candidate.nanoseconds;
      result.push_back(std::move(entry));
    }
    return result;
  }

  static Json unique(const Json &list) {
    Json result = Json::array();
    for (const Json &entry : list)
      if (llvm::none_of(result,
                        [&](const Json &known) { return known == entry; }))
        result.push_back(entry);
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Passes, loops, memory
  //===--------------------------------------------------------------------===//

  /// Analyses change nothing; a null says that it was not observed.
  Json passes() const {
    Json result = Json::array();
    for (const StageTime &time : compiled.times) {
      Json changed = true;
      if (time.stage == "analyze" || time.stage == "load" ||
          time.stage == "codegen.emit")
        changed = false;
      else if (time.stage == "codegen.optimize")
        changed = nullptr;
      result.push_back({{"name", time.stage},
                        {"changed", changed},
                        {"seconds", time.seconds}});
    }
    return result;
  }

  const StagePlan *stagePlan(const std::string &symbol) const {
    size_t first = info.stages.size() - compiled.plan.stages.size();
    for (size_t i = first; i < info.stages.size(); ++i)
      if (info.stages[i].symbol == symbol)
        return &compiled.plan.stages[i - first];
    return nullptr;
  }

  /// The dimension a loop runs over, if its step and trips leave one candidate.
  std::string variableOf(const LoopFact &loop, const StagePlan &stage) const {
    llvm::StringSet<> candidates;
    std::string last;
    auto consider = [&](const std::string &dim, int64_t step) {
      std::optional<int64_t> extent = extentOf(dim);
      if (extent && loop.trips && step == loop.step &&
          (*extent / step == *loop.trips ||
           (step > 1 && *loop.trips < *extent / step)) &&
          candidates.insert(dim).second)
        last = dim;
    };
    for (const NestPlan &nest : stage.nests)
      for (const std::string &dim : dimsOf(nest.space)) {
        if (dim != nest.vectorDim) {
          if (dim == nest.tileDim)
            consider(dim, nest.tileRows);
          consider(dim, 1);
          continue;
        }
        consider(dim, nest.lanes * nest.unroll);
        consider(dim, nest.lanes);
        consider(dim, 1);
      }
    return candidates.size() == 1 ? last : "";
  }

  Json loops() const {
    Json result = Json::array();
    for (const LoopFact &loop : compiled.facts.loops) {
      const StagePlan *stage = stagePlan(loop.function);
      bool isGrid =
          loop.depth == 0 && !loop.trips && stage && !stage->grid.empty();
      std::string variable = !stage   ? ""
                             : isGrid ? stage->grid
                                      : variableOf(loop, *stage);
      Json entry{{"function", loop.function},
                 {"variable", nullptr},
                 {"kind", isGrid                                      ? "grid"
                          : loop.lanes > 1 && loop.step >= loop.lanes ? "vector"
                          : loop.carried > 0 ? "reduction"
                                             : "serial"},
                 {"depth", loop.depth},
                 {"lanes", std::max<int64_t>(loop.lanes, 1)},
                 {"elements_per_lane", nullptr},
                 {"step", loop.step},
                 {"trip_count", nullptr},
                 {"carried_values", loop.carried},
                 {"accesses", loop.accesses}};
      if (!variable.empty())
        entry["variable"] = variable;
      if (loop.trips)
        entry["trip_count"] = *loop.trips;
      if (loop.lanes > 1 && loop.step >= loop.lanes)
        entry["elements_per_lane"] = loop.step / loop.lanes;
      result.push_back(std::move(entry));
    }
    return result;
  }

  Json allocations() const {
    Json result = Json::array();
    for (const auto &[what, bytes] : compiled.plan.buffers)
      result.push_back(
          {{"what", what}, {"bytes", bytes}, {"where", "scratch"}});
    return result;
  }

  void addAccesses(Json &report) const {
    const AccessCounts &counts = compiled.facts.accesses;
    int64_t vectors = counts.vectorLoads + counts.maskedLoads;
    report["vectorized_loads"] = {
        {"vector", vectors},
        {"scalar", counts.scalarLoads},
        {"gathers", counts.gathers},
        {"total", vectors + counts.scalarLoads + counts.gathers}};
    report["vectorized_stores"] = {
        {"vector", counts.vectorStores + counts.maskedStores},
        {"scalar", counts.scalarStores},
        {"scatters", counts.scatters}};
    report["masked_accesses"] = {{"loads", counts.maskedLoads},
                                 {"stores", counts.maskedStores}};
  }

  /// Nests that do more to a contraction's result before it leaves them.
  Json epilogues() const {
    Json result = Json::array();
    for (const StagePlan &stage : compiled.plan.stages)
      for (const NestPlan &nest : stage.nests)
        if (StringRef(nest.roots).contains("contract") &&
            StringRef(nest.roots).contains("store"))
          result.push_back(
              {{"space", dimsOf(nest.space)}, {"computes", nest.roots}});
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Numbers, machine, work
  //===--------------------------------------------------------------------===//

  Json numerics() {
    Json accumulation = Json::array(), functions = Json::array();
    for (const auto &[what, type] : compiled.facts.accumulations)
      accumulation.push_back({{"operation", what}, {"type", type}});
    for (const FunctionUse &use : compiled.facts.functions)
      functions.push_back({{"name", use.name},
                           {"type", use.isF64 ? "f64" : "f32"},
                           {"ulps", use.constant},
                           {"ulps_per_x", use.perX},
                           {"uses", use.uses}});
    const SummationPlan &sums = compiled.facts.summation;
    return {{"tier", tile::stringifyTier(kernel.getTier()).str()},
            {"contraction",
             {{"multiply_adds_formed", compiled.multiplyAdds},
              {"fused_in_hardware", target.hasFma}}},
            {"accumulation", accumulation},
            {"summation",
             {{"partials", sums.partials},
              {"extra_depth", sums.extraDepth},
              {"about_reference", sums.shifted || sums.aboutReference},
              {"flushes_contractions", sums.flushesContractions}}},
            {"functions", functions}};
  }

  Json machine() {
    Json result{{"isa", target.name},
                {"costs", compiled.machine->name},
                {"costs_from", compiled.machine->provenance},
                {"vector_bits", target.vectorBits},
                {"vector_registers", target.vectorRegisters},
                {"object_bytes", compiled.object.size()},
                {"code_bytes", nullptr},
                {"spills", nullptr},
                {"symbols", Json::array()},
                {"shared_memory", nullptr},
                {"occupancy", nullptr}};
    if (!request.machineFacts) {
      notes.push_back("the machine code was not disassembled for this report");
      return result;
    }
    Result<std::vector<FunctionFact>> functions =
        readFunctions(compiled.object, target);
    if (!functions) {
      notes.push_back(functions.error().message);
      return result;
    }
    int64_t code = 0, stackAccesses = 0;
    for (const FunctionFact &fact : *functions) {
      code += fact.codeBytes;
      stackAccesses += fact.stackAccesses;
      result["symbols"].push_back(
          {{"name", fact.name},
           {"code_bytes", fact.codeBytes},
           {"instructions", fact.instructions},
           {"stack_bytes", fact.stackBytes},
           {"stack_accesses", fact.stackAccesses},
           {"vector_registers_used", fact.vectorRegisters},
           {"vector_instructions",
            {{"512", fact.vector512},
             {"256", fact.vector256},
             {"128", fact.vector128}}}});
    }
    result["code_bytes"] = code;
    result["spills"] = stackAccesses;
    return result;
  }

  Json work() const {
    const WorkEstimate &estimate = compiled.facts.work;
    Json terms = Json::array();
    double seconds = 0;
    std::map<std::string, double> sums;
    for (const auto &[number, time] : llvm::enumerate(compiled.predicted)) {
      seconds += 1e-9 * time.total;
      const std::string &stage = info.stages[number].symbol;
      auto add = [&](const char *term, double nanoseconds) {
        terms.push_back({{"stage", stage},
                         {"term", term},
                         {"seconds", 1e-9 * nanoseconds}});
        sums[term] += nanoseconds;
      };
      add("operations", time.throughput);
      add("waiting", time.waiting);
      add("memory", time.memory);
      add("repeated reads", time.repeatedReads);
      if (time.savedAhead > 0)
        add("saved by prefetching", -time.savedAhead);
    }
    auto most = std::max_element(
        sums.begin(), sums.end(),
        [](const auto &a, const auto &b) { return a.second < b.second; });
    Json result{{"bytes_read", estimate.bytesRead},
                {"bytes_written", estimate.bytesWritten},
                {"flops", estimate.flops},
                {"predicted_seconds", seconds},
                {"bound_by", nullptr},
                {"predicted_terms", terms}};
    if (most != sums.end() && most->second > 0)
      result["bound_by"] = most->first;
    // What a library's code takes is not known.
    if (compiled.plan.vendor) {
      result["predicted_seconds"] = nullptr;
      result["predicted_terms"] = Json::array();
      result["bound_by"] = nullptr;
    }
    return result;
  }

  const PipelineResult &compiled;
  const ExecutableInfo &info;
  tile::KernelOp kernel;
  const CompileRequest &request;
  const Target &target;
  Json notes = Json::array();
};

} // namespace

std::string makeReport(const PipelineResult &compiled,
                       const ExecutableInfo &info, tile::KernelOp kernel,
                       const CompileRequest &request) {
  return ReportWriter(compiled, info, kernel, request).run();
}

} // namespace tessera
