//===- bench/core/environment.cpp - Where a run took place ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/environment.h"

#include "bench/core/row.h"
#include "fmt/format.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"
#include "tessera/device.h"

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

namespace tessera::bench {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string firstLine(const fs::path &file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string shortName(const std::string &processor, size_t cores) {
  std::string slug;
  for (char c : processor) {
    // "(R)" and "(TM)" say nothing.
    if (std::isalnum(static_cast<unsigned char>(c)))
      slug += static_cast<char>(std::tolower(c));
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
  }
  for (const char *noise : {"-r-", "-tm-", "-processor", "-cpu"})
    for (size_t at; (at = slug.find(noise)) != std::string::npos;)
      slug.replace(at, std::string_view(noise).size(),
                   noise[std::string_view(noise).size() - 1] == '-' ? "-" : "");
  while (!slug.empty() && slug.back() == '-')
    slug.pop_back();
  return fmt::format("{}-{}", slug.empty() ? "unknown" : slug, cores);
}

json caches() {
  json result = json::array();
  fs::path folder = "/sys/devices/system/cpu/cpu0/cache";
  std::error_code error;
  for (int index = 0; fs::exists(folder / fmt::format("index{}", index), error);
       ++index) {
    fs::path cache = folder / fmt::format("index{}", index);
    std::string size = firstLine(cache / "size");
    int64_t bytes = std::atoll(size.c_str());
    if (size.ends_with("K"))
      bytes <<= 10;
    if (size.ends_with("M"))
      bytes <<= 20;
    result.push_back({{"level", std::atoi(firstLine(cache / "level").c_str())},
                      {"kind", firstLine(cache / "type")},
                      {"bytes", bytes},
                      {"sharedBy", firstLine(cache / "shared_cpu_list")}});
  }
  return result;
}

/// What plans are made with.
json description() {
  const MachineChoice &choice = hostMachineChoice();
  return {{"name", choice.machine.name},
          {"provenance", choice.machine.provenance},
          {"reason", choice.reason},
          {"hash", contentHash(choice.machine)}};
}

std::string outputOf(const char *command) {
  std::string text;
  FILE *pipe = popen(command, "r");
  if (!pipe)
    return text;
  char chunk[256];
  while (std::fgets(chunk, sizeof chunk, pipe))
    text += chunk;
  if (pclose(pipe) != 0)
    text.clear();
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

} // namespace

std::vector<int> allowedProcessors() {
  cpu_set_t set;
  std::vector<int> result;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        result.push_back(i);
  return result;
}

void limitIsa(Isa isa) {
  ::setenv("TESSERA_ISA", std::string(name(isa)).c_str(), /*overwrite=*/1);
  if (isa != Isa::Avx2)
    return;
  // Each in the words of its project's documentation.
  static constexpr std::pair<const char *, const char *> names[] = {
      {"ATEN_CPU_CAPABILITY", "avx2"}, // PyTorch, and what TorchInductor emits
      {"BLIS_ARCH_TYPE", "haswell"},
      {"HL_TARGET", "x86-64-linux-avx-avx2-f16c-fma-sse41"},
      {"LIBXSMM_TARGET", "hsw"},
      {"MKL_ENABLE_INSTRUCTIONS", "AVX2"},
      {"ONEDNN_MAX_CPU_ISA", "AVX2"},
      {"OPENBLAS_CORETYPE", "Haswell"},
      {"XLA_FLAGS", "--xla_cpu_max_isa=AVX2"}};
  for (auto [variable, value] : names)
    ::setenv(variable, value, /*overwrite=*/1);
  // TorchInductor would find there what it has compiled for all instructions.
  const char *folder = std::getenv("TORCHINDUCTOR_CACHE_DIR");
  std::error_code error;
  std::string other = folder && *folder
                          ? std::string(folder) + "-avx2"
                          : (fs::temp_directory_path(error) /
                             fmt::format("torchinductor-avx2-{}", ::getuid()))
                                .string();
  ::setenv("TORCHINDUCTOR_CACHE_DIR", other.c_str(), /*overwrite=*/1);
}

json describeEnvironment(const std::string &machine) {
  DeviceInfo device = cpuDevice();
  std::vector<int> processors = allowedProcessors();
  utsname system{};
  uname(&system);
  fs::path clock = "/sys/devices/system/cpu/cpu0/cpufreq";
  double megahertz = 0;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("cpu MHz")) {
      megahertz = std::atof(line.c_str() + line.find(':') + 1);
      break;
    }
  std::string governor = firstLine(clock / "scaling_governor");
  return {{"machine", machine.empty()
                          ? shortName(device.name, processors.size())
                          : machine},
          {"cpu", device.name},
          {"cores", processors.size()},
          {"isa", name(defaultIsa())},
          {"governor", governor.empty() ? "not reported" : governor},
          {"frequencyMHz", megahertz},
          {"memoryBytes", device.memoryBytes},
          {"system", fmt::format("{} {}", system.sysname, system.release)},
          {"caches", caches()},
          {"description", description()},
          {"affinity", processors}};
}

Revision sourceRevision() {
  Revision revision;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  std::string bundle = firstLine(program.parent_path() / "../BUNDLE");
  // "Tessera af7ea09-dirty, x86-64 Linux".
  if (bundle.starts_with("Tessera ")) {
    revision.name = bundle.substr(8, bundle.find(',') - 8);
    size_t mark = revision.name.find("-dirty");
    revision.dirty = mark != std::string::npos;
    revision.name = revision.name.substr(0, mark);
    return revision;
  }
  fs::path folder = benchFolder();
  std::string git = fmt::format("git -C '{}' ", folder.string());
  std::string name =
      outputOf((git + "rev-parse --short HEAD 2>/dev/null").c_str());
  if (folder.empty() || name.empty())
    return revision;
  revision.name = name;
  revision.dirty =
      !outputOf((git + "status --porcelain --untracked-files=no 2>/dev/null")
                    .c_str())
           .empty();
  return revision;
}

std::string utcNow() {
  std::time_t now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

} // namespace tessera::bench
