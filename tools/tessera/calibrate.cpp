//===- calibrate.cpp - `tessera calibrate` --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures this machine, shows the figures beside those that are checked in,
// and keeps them for this user (target/calibration.h).
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/files.h"
#include "tools/tessera/progress_line.h"
#include "tools/tessera/render.h"

#include "bench/core/environment.h"
#include "bench/machine/measure.h"
#include "target/calibration.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include <filesystem>

using Json = nlohmann::ordered_json;

namespace tessera::cli {

namespace {

struct CalibrateOptions {
  std::string output;
  std::string json;
  std::string timeText = "40";
  bool isDryRun = false;
};

/// Where the file goes; empty for a dry run. The user's own folder is made, any
/// other one must be there.
Result<std::string> choosePath(const CalibrateOptions &options,
                               OutputPaths &paths) {
  if (options.isDryRun)
    return std::string();
  if (hostProcessor().vendor.empty())
    return Error{ErrorFamily::Unsupported,
                 "unsupported.calibration",
                 "this system does not say which processor it has, so a stored "
                 "calibration could be taken for that of another; --dry-run "
                 "measures and stores nothing",
                 {}};
  std::string path = options.output;
  std::string option = "--output";
  if (path.empty()) {
    path = calibrationPath();
    option = "calibration";
    if (path.empty())
      return Error{
          ErrorFamily::Usage,
          "usage.calibrate",
          "there is no place for the file: TESSERA_CALIBRATION is off, "
          "or there is no home folder; expected --output FILE or "
          "--dry-run",
          {}};
    std::error_code code;
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path(), code);
  }
  if (Result<void> status = paths.take(path, option, Dash::IsRefused); !status)
    return status.error();
  return path;
}

class Table {
public:
  Table(const bench::MeasuredMachine &measured, const Machine &row)
      : measured(measured), row(row) {}

  void print() const {
    fmt::print("{:<28}{:>10}", "memory, bytes/ns", "size");
    for (const Figure<MemoryLevel> &figure : levelFigures())
      fmt::print("{:>15}{:>9}", figure.name, "row");
    fmt::print("\n");
    for (size_t i = 0; i < levelNames.size(); ++i) {
      int64_t bytes = measured.machine.memory[i].bytes;
      fmt::print("  {:<26}{:>10}", levelNames[i],
                 bytes > 0 ? sizeText(bytes) : "");
      for (const Figure<MemoryLevel> &figure : levelFigures())
        pair(figure, measured.machine.memory[i], row.memory[i], levelNames[i]);
      fmt::print("\n");
    }
    fmt::print("{:<28}{:>10}", "core, by vector width", "");
    for (std::string_view width : widthNames)
      fmt::print("{:>15}{:>9}", width, "row");
    fmt::print("\n");
    for (const Figure<CoreCosts> &figure : coreFigures()) {
      fmt::print("  {:<26}{:>10}", figure.name, figure.unit);
      for (size_t i = 0; i < widthNames.size(); ++i)
        pair(figure, measured.machine.core[i], row.core[i], widthNames[i]);
      fmt::print("\n");
    }
    fmt::print("{:<28}\n", "threads");
    for (const Figure<Machine> &figure : machineFigures()) {
      fmt::print("  {:<26}{:>10}", figure.name, figure.unit);
      pair(figure, measured.machine, row, "");
      fmt::print("\n");
    }
    if (!measured.unsettled.empty())
      fmt::print("~ samples do not agree: the machine was busy, or the time "
                 "short\n");
    if (!measured.kept.empty())
      fmt::print("- not measured, as this processor has no such thing or other "
                 "programs kept its cores; the row's figure is kept\n");
  }

private:
  template <typename Owner>
  void pair(const Figure<Owner> &figure, const Owner &here, const Owner &there,
            std::string_view where) const {
    std::string name = bench::figureName(figure.name, where);
    std::string text =
        measured.kept.contains(name)
            ? "-"
            : fmt::format("{}{:.4g}",
                          measured.unsettled.contains(name) ? "~" : "",
                          here.*figure.value);
    fmt::print("{:>15}{:>9.4g}", text, there.*figure.value);
  }

  const bench::MeasuredMachine &measured;
  const Machine &row;
};

Json machineJson(const Machine &machine) {
  // One form of a description in files: that of the calibration.
  Calibration calibration;
  calibration.machine = machine;
  return Json::parse(calibrationText(calibration))["machine"];
}

int calibrate(const CalibrateOptions &options) {
  Result<double> seconds = parseDecimal("--time", options.timeText, 0.1, 3600);
  if (!seconds)
    return report(seconds.error());
  OutputPaths paths;
  Result<std::string> path = choosePath(options, paths);
  if (!path)
    return report(path.error());
  if (!options.json.empty())
    if (Result<void> status =
            paths.take(options.json, "--json", Dash::IsStandardOutput);
        !status)
      return report(status.error());
  const bool isQuiet = options.json == "-";

  const MachineChoice base = uncalibratedHostMachine();
  ProgressLine line;
  line.show("making memory to measure with");
  bench::MeasuredMachine measured = bench::measureMachine(
      base.machine, *seconds, [&](const bench::Progress &progress) {
        line.show(fmt::format("turn {}: {} of {} probes settled, at most {}",
                              progress.turn, progress.settled, progress.probes,
                              leftText(progress.secondsLeft)));
      });
  line.clear();
  Calibration calibration = {.processor = hostProcessor(),
                             .measured = bench::utcNow(),
                             .machine = measured.machine};
  calibration.machine.provenance = "measured by tessera calibrate";
  calibration.machine.processors.clear();
  calibration.machine.level.clear();

  if (!isQuiet) {
    fmt::print("processor  {}\nrow        {} ({}): {}\n",
               calibration.processor.str(), base.machine.name,
               base.machine.provenance, base.reason);
    Table(measured, base.machine).print();
  }
  if (!path->empty())
    if (Result<void> status = writeCalibration(*path, calibration); !status)
      return report(status.error());
  if (!options.json.empty()) {
    Json json = {{"schema", "tessera-calibrate"},
                 {"schemaVersion", calibrationVersion},
                 {"processor", calibration.processor.str()},
                 {"measured", calibration.measured},
                 {"turns", measured.turns},
                 {"storedIn", *path},
                 {"machine", machineJson(calibration.machine)},
                 {"row", machineJson(base.machine)},
                 {"notMeasured", measured.kept},
                 {"unsettled", measured.unsettled}};
    if (Result<void> status =
            writeFile(options.json, json.dump(2) + "\n", "--json");
        !status)
      return report(status.error());
  }
  if (isQuiet)
    return 0;
  if (path->empty())
    fmt::print("stored nowhere (--dry-run)\n");
  else if (*path == calibrationPath())
    fmt::print("stored in '{}'; used from now on\n", *path);
  else
    fmt::print("stored in '{}'; TESSERA_CALIBRATION={} uses it\n", *path,
               *path);
  return 0;
}

} // namespace

Action addCalibrate(CLI::App &app) {
  CLI::App *verb = app.add_subcommand(
      "calibrate", "measure this machine, for better plans; never required");
  auto options = std::make_shared<CalibrateOptions>();
  CLI::Option *output =
      verb->add_option("--output", options->output,
                       "where the figures are kept, instead of the user's file")
          ->type_name("FILE");
  verb->add_option("--time", options->timeText,
                   "about how long it may take in seconds, 0.1 to 3600");
  verb->add_option("--json", options->json,
                   "write the figures beside those of the row as JSON; - for "
                   "standard output")
      ->type_name("FILE");
  verb->add_flag("--dry-run", options->isDryRun, "store nothing")
      ->excludes(output);
  verb->footer("Examples:\n  tessera calibrate\n  tessera calibrate --dry-run "
               "--time 10\nLet nothing else run meanwhile.");
  return [options] { return calibrate(*options); };
}

} // namespace tessera::cli
