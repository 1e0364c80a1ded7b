//===- doctor.cpp - tessera doctor ----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include "driver/cache_store.h"
#include "support/env.h"
#include "target/calibration.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"
#include "tessera/device.h"

#include "llvm/Config/llvm-config.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace tessera::cli {

namespace {

/// Compiles, runs and verifies one small kernel for a level.
bool selfTest(Isa isa) {
  auto start = std::chrono::steady_clock::now();
  session::RunRequest request;
  request.dims = {{"rows", 5}, {"cols", 37}};
  request.isa = isa;
  Result<session::RunResult> result =
      session::runOperator(*kernels::findOperator("softmax"), request);
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  bool passed = result && result->passed();
  fmt::print("  {:<8} softmax 5x37, compiled, run and verified in {}: {}\n",
             name(isa), timeText(seconds), passed ? "PASS" : "FAIL");
  if (!result)
    fmt::print("    {}\n", result.error().str());
  else if (!passed)
    fmt::print("    {}", result->failures());
  return passed;
}

/// Which description of this machine plans are made with, and why.
void printMachine() {
  const MachineChoice &choice = hostMachineChoice();
  fmt::print("machine  {} ({}): {}\n", choice.machine.name,
             choice.machine.provenance, choice.reason);
  std::vector<std::string> sizes;
  for (size_t i = 0; i + 1 < levelNames.size(); ++i)
    sizes.push_back(fmt::format("{} {}", levelNames[i],
                                sizeText(choice.machine.memory[i].bytes)));
  fmt::print("caches   {}\n", fmt::join(sizes, ", "));
  const std::string path = calibrationPath();
  if (path.empty())
    fmt::print("         calibration: off: TESSERA_CALIBRATION says so, or "
               "there is no "
               "home folder\n");
  else if (!choice.warning.empty())
    fmt::print("         calibration: {}\n", choice.warning);
  else if (std::error_code code; !std::filesystem::exists(path, code))
    fmt::print(
        "         calibration: none in '{}'; `tessera calibrate` measures this "
        "machine\n",
        path);
  else
    fmt::print("         calibration: in use\n");
}

/// Where executables are kept, or why they are not.
void printCache() {
  if (const std::string problem = cacheProblem(); !problem.empty()) {
    fmt::print("cache    {}\n", problem);
    return;
  }
  int64_t bytes = 0;
  const std::vector<CacheFile> files = listExecutables();
  for (const CacheFile &file : files)
    bytes += file.bytes;
  fmt::print("cache    {}: {} executables, {} of at most {}\n", *cacheFolder(),
             files.size(), sizeText(bytes), sizeText(cacheLimit()));
}

int doctor() {
  DeviceInfo device = cpuDevice();
  std::vector<std::string_view> levels;
  for (Isa isa : hostIsas())
    levels.push_back(name(isa));
  fmt::print("tessera  {}\nLLVM     {}\nCPU      {}\nISA      {}\n"
             "threads  {}\nmemory   {:.1f} GiB\n",
             TESSERA_VERSION, LLVM_VERSION_STRING, device.name,
             fmt::join(levels, ", "), defaultTaskPool().threads(),
             static_cast<double>(device.memoryBytes) / (1 << 30));
  printMachine();
  printCache();
  fmt::print("environment (for debugging only)\n");
  for (const support::EnvEntry &entry : support::envTable()) {
    const char *value = std::getenv(std::string(entry.name).c_str());
    fmt::print("  {:<18} {}\n    {}: {}\n", entry.name,
               value ? fmt::format("set to '{}'", value) : "not set",
               entry.values, entry.meaning);
  }
  for (const std::string &unknown : support::unknownEnvVariables())
    fmt::print("  {:<18} unknown: Tessera reads no such variable\n", unknown);
  fmt::print("self-test\n");
  bool passed = true;
  for (Isa isa : hostIsas())
    passed &= selfTest(isa);
  return passed ? 0 : 1;
}

} // namespace

Action addDoctor(CLI::App &app) {
  CLI::App *verb = app.add_subcommand(
      "doctor", "what this machine and build can do, and a self-test");
  verb->footer("Example:\n  tessera doctor");
  return [] { return doctor(); };
}

} // namespace tessera::cli
