//===- bench_options.cpp - What `tessera bench` is told -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/bench_options.h"

#include "tools/tessera/command_line.h"

#include "bench/core/runner.h"
#include "driver/plan_file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tessera::cli {

using nlohmann::json;

std::string BenchOptions::command() const {
  std::string text = "tessera bench";
  auto add = [&](const char *name, const std::string &value) {
    if (!value.empty())
      text += fmt::format(" {} {}", name, value);
  };
  text += suite.empty() ? " " + op : " --suite " + suite;
  add("--dims", fmt::format("{}", fmt::join(dims, ",")));
  add("--dtype", dtype);
  add("--boundary", boundary);
  add("--plan", plan);
  add("--vendor", vendor);
  if (isa != "native")
    add("--isa", isa);
  if (threads >= 0)
    add("--threads", std::to_string(threads));
  add("--filter", filter);
  add("--peers", peers);
  text += tuned ? " --tuned" : "";
  return text + fmt::format(" --rounds {} --samples {} --row-seconds {:g} "
                            "--seed {}",
                            rounds, samples, rowSeconds, seed);
}

static Error usage(std::string message) {
  return {ErrorFamily::Usage, "usage.bench", std::move(message), {}};
}

Result<void> readNumbers(BenchOptions &options) {
  struct Whole {
    const char *name;
    const std::string &text;
    uint64_t low;
    uint64_t high;
    int &value;
  };
  const Whole wholes[] = {
      {"--threads", options.threadsText, 0, 4096, options.threads},
      {"--rounds", options.roundsText, 1, 10000, options.rounds},
      {"--samples", options.samplesText, 1, 10000, options.samples}};
  for (const Whole &whole : wholes) {
    if (whole.text.empty())
      continue;
    Result<uint64_t> number =
        parseWhole(whole.name, whole.text, whole.low, whole.high);
    if (!number)
      return number.error();
    whole.value = static_cast<int>(*number);
  }
  Result<uint64_t> seed =
      parseWhole("--seed", options.seedText, 0, UINT64_MAX - 1'000'000);
  if (!seed)
    return seed.error();
  options.seed = *seed;
  Result<double> row =
      parseDecimal("--row-seconds", options.rowSecondsText, 0.01, 1e6);
  if (!row)
    return row.error();
  options.rowSeconds = *row;
  Result<double> answer =
      parseDecimal("--answer-seconds", options.answerSecondsText, 0.1, 1e6);
  if (!answer)
    return answer.error();
  options.answerSeconds = *answer;
  return {};
}

bool isUtf8(const std::string &text) {
  auto printed = [&](json::error_handler_t onError) {
    return json(text).dump(-1, ' ', /*ensure_ascii=*/false, onError);
  };
  return printed(json::error_handler_t::ignore) ==
         printed(json::error_handler_t::replace);
}

Result<bench::Suite> chooseSuite(const BenchOptions &options) {
  if (options.op.empty() == options.suite.empty())
    return usage("expected either an operator or --suite NAME");
  if (!options.suite.empty()) {
    if (!options.dims.empty())
      return usage("--dims: a suite has its own shapes");
    if (!options.dtype.empty())
      return usage("--dtype: a suite has its own types");
    if (!options.boundary.empty())
      return usage("--boundary: a suite has its own boundaries");
    if (!options.plan.empty())
      return usage("--plan: a plan is for one operator, found a suite");
    return bench::findSuite(options.suite);
  }
  const kernels::Operator *op = kernels::findOperator(options.op);
  if (!op && options.op.ends_with(".mlir"))
    return usage(fmt::format("'{}' is a file, expected an operator of `tessera "
                             "list`; a kernel of your own is timed by `tessera "
                             "run`",
                             options.op));
  if (!op)
    return usage(describeUnknownOperator(options.op) +
                 "; `tessera list` names them");
  bench::RowSpec row;
  row.operatorName = options.op;
  if (!options.dtype.empty()) {
    std::optional<DType> dtype = parseDType(options.dtype);
    if (!dtype || std::find(op->dtypes.begin(), op->dtypes.end(), *dtype) ==
                      op->dtypes.end()) {
      std::vector<std::string_view> known;
      for (DType one : op->dtypes)
        known.push_back(name(one));
      return usage(fmt::format("--dtype {}: '{}' is made for {}", options.dtype,
                               options.op, fmt::join(known, ", ")));
    }
    row.dtype = *dtype;
  }
  Result<kernels::Dims> dims = parseDims(options.dims);
  if (!dims)
    return dims.error();
  row.dims = std::move(*dims);
  // As in the other verbs: all dimensions have defaults, or are given.
  for (size_t i = 0; options.dims.empty() && i < op->dims.size(); ++i)
    row.dims.emplace(op->dims[i], op->defaultExtents[i]);
  if (Result<void> status = kernels::checkDims(*op, row.dims); !status)
    return status.error();
  if (!options.boundary.empty())
    row.boundary = options.boundary;
  if (!options.plan.empty()) {
    Result<PlanText> plan = readPlanText(options.plan);
    if (!plan)
      return usage("--plan: " + plan.error().message);
    if (!isUtf8(options.plan) || !isUtf8(plan->text))
      return usage("--plan: found bytes that are no UTF-8, expected a saved "
                   "plan");
    row.plan = std::move(*plan);
  }
  bench::Suite suite;
  suite.name = options.op;
  suite.rows.push_back(std::move(row));
  return suite;
}

/// An arm for each library that is named.
static Result<std::vector<bench::Variant>>
libraryArms(const BenchOptions &options) {
  std::vector<bench::Variant> arms;
  if (options.vendor.empty() || options.vendor == "none")
    return arms;
  Result<std::vector<std::string>> names =
      splitList("--vendor", {options.vendor});
  if (!names)
    return names.error();
  for (const std::string &text : *names) {
    Result<Vendor> vendor = parseVendor(text);
    if (!vendor)
      return usage("--vendor: " + vendor.error().message);
    if (*vendor == Vendor::None)
      return usage("--vendor: found 'none' beside a library, expected either");
    for (const bench::Variant &arm : arms)
      if (arm.vendor == *vendor)
        return usage(fmt::format("--vendor: '{}' is named twice", text));
    arms.push_back({text, nullptr, *vendor});
  }
  return arms;
}

Result<void> checkPlan(const std::vector<bench::RowSpec> &rows) {
  for (const bench::RowSpec &row : rows) {
    if (!row.plan)
      continue;
    Result<session::Compilation> compiled = session::compileOperator(
        *kernels::findOperator(row.operatorName), row.runRequest());
    if (!compiled)
      return Error{compiled.error().family, compiled.error().code,
                   "--plan: " + compiled.error().message + "; " + row.id() +
                       " is compiled for " + std::string(name(defaultIsa())) +
                       " (--isa has others)",
                   compiled.error().where};
  }
  return {};
}

Result<std::vector<bench::RowSpec>> chooseRows(const bench::Suite &suite,
                                               const BenchOptions &options) {
  Result<std::vector<bench::Variant>> libraries = libraryArms(options);
  if (!libraries)
    return libraries.error();
  // By threads: workers serve one number of them at a time.
  std::map<int, std::vector<bench::RowSpec>> byThreads;
  std::set<std::string> seen;
  for (bench::RowSpec row : suite.rows) {
    if (options.threads >= 0)
      row.threads = options.threads;
    if (row.threads == 0)
      row.threads = bench::allThreads();
    if (row.threads > bench::allThreads())
      return usage(
          options.threads >= 0
              ? fmt::format("--threads: found {}, this process may use {}",
                            row.threads, bench::allThreads())
              : fmt::format("suite '{}' asks for {} threads in '{}', this "
                            "process may use {}; --threads 0 takes all there "
                            "are",
                            suite.name, row.threads, row.id(),
                            bench::allThreads()));
    for (const bench::Variant &library : *libraries) {
      for (const bench::Variant &variant : row.variants)
        if (variant.name == library.name)
          return usage(fmt::format("--vendor: suite '{}' has a variant '{}' of "
                                   "its own in '{}'",
                                   suite.name, library.name, row.id()));
      row.variants.push_back(library);
    }
    std::string id = row.id();
    if (id.find(options.filter) != std::string::npos && seen.insert(id).second)
      byThreads[row.threads].push_back(std::move(row));
  }
  std::vector<bench::RowSpec> rows;
  for (auto &[threads, some] : byThreads)
    rows.insert(rows.end(), some.begin(), some.end());
  if (suite.rows.empty() && !suite.ceilings)
    return usage(fmt::format("suite '{}' has no rows, expected at least one",
                             suite.name));
  if (rows.empty() && !suite.rows.empty())
    return usage(fmt::format("--filter: no row of suite '{}' contains '{}'",
                             suite.name, options.filter));
  return rows;
}
} // namespace tessera::cli
