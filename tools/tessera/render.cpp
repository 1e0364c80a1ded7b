//===- render.cpp - Numbers and plans for people --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/render.h"

#include "tools/tessera/command_line.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include <cmath>

using Json = nlohmann::ordered_json;

namespace tessera::cli {

std::string timeText(double seconds) {
  if (seconds < 1e-6)
    return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3)
    return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1)
    return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string sizeText(int64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
    return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
    return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} bytes", bytes);
}

std::string shortened(const std::string &text, size_t width) {
  if (text.size() <= width)
    return text;
  size_t cut = text.rfind(' ', width - 4);
  if (cut == std::string::npos || cut < width / 2)
    cut = width - 4;
  return text.substr(0, cut) + " ...";
}

nlohmann::ordered_json measuredJson(const session::RunResult &result,
                                    const WorkEstimate &work) {
  if (result.timedRuns == 0)
    return nullptr;
  int64_t bytes = work.bytesRead + work.bytesWritten;
  return {{"boundary", "prepared call"},
          {"statistic", "median"},
          {"runs", result.timedRuns},
          {"seconds", result.seconds},
          {"bytes", bytes},
          {"gigabytes_per_second",
           static_cast<double>(bytes) / result.seconds / 1e9}};
}

namespace {

/// Appends the report's sections as indented lines.
class ReportPage {
public:
  explicit ReportPage(const Json &report) : report(report) {}

  std::string run() {
    const Json &plan = report["plan"];
    line(0, "kernel   {}, {}, tier {}", text(report["kernel"]),
         text(plan["target"]), text(report["numerics"]["tier"]));
    line(0, "plan     {}", text(plan["summary"]));
    if (std::string from = origin(text(plan["source"])); !from.empty())
      line(1, "{}", from);
    if (!plan["vendor"].is_null())
      addVendor(plan["vendor"]);
    for (const Json &packed : plan["prepacked"])
      line(0,
           "packed   {} before the launch: {} panels over {}, each {} "
           "row-major in {} bytes; {} bytes in all",
           text(packed["array"]), text(packed["panels"]),
           text(packed["panels_over"]).empty() ? "nothing"
                                               : text(packed["panels_over"]),
           text(packed["panel"]), text(packed["panel_spacing"]),
           text(packed["bytes"]));
    for (const Json &candidate : plan["tunables"])
      addTunables(candidate);
    if (plan["vendor"].is_null())
      for (const Json &stage : plan["stages"])
        addStage(stage);
    addCandidates();
    addLoops();
    addMachine();
    addWork();
    addMeasured();
    addPasses();
    for (const Json &remark : report["remarks"])
      line(0, "remark   {}", text(remark["text"]));
    for (const Json &note : report["notes"])
      line(0, "note     {}", text(note));
    return std::move(page);
  }

private:
  static std::string text(const Json &value) {
    if (value.is_null())
      return "unknown";
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  /// Where a plan is from that was not searched.
  static std::string origin(const std::string &source) {
    if (source == "default")
      return "the planner's default, nothing else was looked at";
    if (source == "file")
      return "from a file";
    if (source == "tuned")
      return "tuned for this machine";
    return source == "request" ? "given by the caller" : "";
  }

  /// The strings of an array, separated by commas.
  static std::string list(const Json &values) {
    std::string joined;
    for (const Json &value : values)
      joined += (joined.empty() ? "" : ", ") + text(value);
    return joined.empty() ? "one element" : joined;
  }

  template <typename... Values>
  void line(int indent, fmt::format_string<Values...> form,
            Values &&...values) {
    page += std::string(indent * 2, ' ') +
            fmt::format(form, std::forward<Values>(values)...) + "\n";
  }

  void addVendor(const Json &vendor) {
    line(0, "vendor   {}: the whole kernel is {} of {}",
         text(vendor["interface"]), text(vendor["function"]),
         vendor["library"].is_null() ? "a library that is linked later"
                                     : text(vendor["library"]));
    for (const char *role : {"a", "b", "c"}) {
      const Json &matrix = vendor[role];
      line(1, "{} is '{}'{}, {}", role, text(matrix["array"]),
           matrix["transposed"].get<bool>() ? " transposed" : "",
           matrix["leading_axis"].is_null()
               ? "of one row"
               : fmt::format("leading dimension: the stride of axis {}, at "
                             "least {}",
                             text(matrix["leading_axis"]),
                             text(matrix["least_leading_dimension"])));
    }
    line(1, "proved from the kernel's subscripts, and checked in the emitted "
            "code; what the library takes is not predicted");
  }

  void addTunables(const Json &candidate) {
    std::string values;
    for (const auto &[name, value] : candidate["values"].items())
      values +=
          fmt::format("{}{}={}", values.empty() ? "" : ",", name, text(value));
    line(0, "tunables {}: {}{}", values, text(candidate["code"]),
         candidate["predicted_seconds"].is_null()
             ? ""
             : fmt::format(
                   ", predicted {} with {} threads",
                   timeText(candidate["predicted_seconds"].get<double>()),
                   text(report["plan"]["threads"])));
  }

  void addStage(const Json &stage) {
    std::string grid = text(stage["grid"]);
    line(0, "stage    {}: {} programs over {}, {} bytes of scratch",
         text(stage["symbol"]), text(stage["programs"]),
         grid.empty() ? "nothing" : grid, text(stage["scratch_bytes"]));
    if (stage["programs_together"].get<int64_t>() > 1)
      line(1, "{} programs advance together, phase by phase",
           text(stage["programs_together"]));
    if (stage["splits"].get<int64_t>() > 1)
      line(1, "{} programs share each reduction, {} bytes of workspace",
           text(stage["splits"]), text(stage["workspace_bytes"]));
    if (stage["interior_programs"].get<int64_t>() > 0)
      line(1, "{} programs touch no edge of an array: {}",
           text(stage["interior_programs"]),
           stage["edges"] == "apart" ? "they have code without checks"
                                     : "they check all the same");
    if (stage["nests"].empty() &&
        text(stage["symbol"]).starts_with(text(report["kernel"]) + "_stage"))
      line(1, "not vectorized: a program handles single elements; with blocks "
              "or rows it has vectors");
    for (const Json &nest : stage["nests"]) {
      line(1, "nest     {} over {}", text(nest["computes"]),
           list(nest["space"]));
      if (nest["vector_dimension"].is_null())
        line(2, "scalar");
      else
        line(2, "vectors of {} along {}, {} per iteration, tail by {}",
             text(nest["lanes"]), text(nest["vector_dimension"]),
             text(nest["vectors_per_iteration"]), text(nest["tail"]));
      if (!nest["tiled_dimension"].is_null())
        line(2, "{} rows along {} together", text(nest["rows_per_iteration"]),
             text(nest["tiled_dimension"]));
      if (!nest["predicted_ns"].is_null())
        line(2, "predicted {:.0f} ns per program",
             nest["predicted_ns"].get<double>());
      for (const Json &reason : nest["reasons"])
        line(2, "{}: {}", text(reason["code"]), text(reason["text"]));
    }
  }

  void addCandidates() {
    for (const Json &candidate : report["plan"]["candidates"])
      line(0, "looked at {}: {}{}{}", text(candidate["what"]),
           text(candidate["code"]),
           candidate["predicted_seconds"].is_null()
               ? ""
               : ", predicted " +
                     timeText(candidate["predicted_seconds"].get<double>()),
           candidate["instructions"] == 0
               ? ""
               : fmt::format(", {} instructions",
                             text(candidate["instructions"])));
  }

  void addLoops() {
    for (const Json &loop : report["loops"])
      line(
          0, "loop     {}{} {}: step {}, trips {}, lanes {}{}",
          std::string(2 * loop["depth"].get<size_t>(), ' '), text(loop["kind"]),
          text(loop["variable"]), text(loop["step"]), text(loop["trip_count"]),
          text(loop["lanes"]),
          loop["carried_values"].get<int64_t>() > 0
              ? fmt::format(", {} carried values", text(loop["carried_values"]))
              : "");
    const Json &loads = report["vectorized_loads"];
    line(0,
         "accesses {} of {} loads vectorized, {} masked loads, {} masked "
         "stores, {} gathers",
         text(loads["vector"]), text(loads["total"]),
         text(report["masked_accesses"]["loads"]),
         text(report["masked_accesses"]["stores"]), text(loads["gathers"]));
    for (const Json &buffer : report["allocations"])
      line(0, "scratch  {}: {} bytes", text(buffer["what"]),
           text(buffer["bytes"]));
  }

  void addMachine() {
    const Json &machine = report["machine"];
    line(0, "machine  {}, {} vector registers of {} bits, object {} bytes",
         text(machine["isa"]), text(machine["vector_registers"]),
         text(machine["vector_bits"]), text(machine["object_bytes"]));
    for (const Json &symbol : machine["symbols"])
      line(1,
           "{}: {} bytes of code, {} bytes of stack, {} stack accesses, {} "
           "vector registers",
           text(symbol["name"]), text(symbol["code_bytes"]),
           text(symbol["stack_bytes"]), text(symbol["stack_accesses"]),
           text(symbol["vector_registers_used"]));
  }

  void addWork() {
    const Json &work = report["work"];
    if (!report["plan"]["vendor"].is_null())
      return line(0,
                  "work     {} bytes read, {} bytes written, {:.4g} operations",
                  text(work["bytes_read"]), text(work["bytes_written"]),
                  work["flops"].get<double>());
    line(0,
         "work     {} bytes read, {} bytes written, {:.4g} operations, "
         "predicted {} on one thread{}",
         text(work["bytes_read"]), text(work["bytes_written"]),
         work["flops"].get<double>(),
         timeText(work["predicted_seconds"].get<double>()),
         work["bound_by"].is_null() ? ""
                                    : ", bound by " + text(work["bound_by"]));
    for (const Json &term : work["predicted_terms"]) {
      const double seconds = term["seconds"].get<double>();
      line(1, "{}: {} {}{}", text(term["stage"]), text(term["term"]),
           seconds < 0 ? "-" : "", timeText(std::abs(seconds)));
    }
  }

  void addMeasured() {
    const Json &measured = report["measured"];
    if (measured.is_null())
      return;
    double seconds = measured["seconds"].get<double>();
    if (!report["plan"]["vendor"].is_null())
      return line(0, "measured {} on one thread (median of {} prepared calls)",
                  timeText(seconds), text(measured["runs"]));
    double predicted = report["work"]["predicted_seconds"].get<double>();
    // Where there is nothing to do, no time is predicted.
    line(0, "measured {} on one thread (median of {} prepared calls){}",
         timeText(seconds), text(measured["runs"]),
         predicted > 0
             ? fmt::format(", {:.2f} of the prediction", seconds / predicted)
             : "");
  }

  void addPasses() {
    std::string times;
    for (const Json &pass : report["passes"])
      times +=
          fmt::format("{}{} {}", times.empty() ? "" : ", ", text(pass["name"]),
                      timeText(pass["seconds"].get<double>()));
    line(0, "passes   {}", times);
  }

  const Json &report;
  std::string page;
};

} // namespace

std::string renderReport(const std::string &report) {
  Json parsed = Json::parse(report);
  return ReportPage(parsed).run();
}

} // namespace tessera::cli
