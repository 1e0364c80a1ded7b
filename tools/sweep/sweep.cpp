//===- tessera-sweep/sweep.cpp - Sweep of the vector math ----------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tessera-sweep runs every function of the vector math library, in every tier
// and for every ISA of the host, over its arguments and compares with an
// independent reference.
//
//   tessera-sweep                 everything; minutes. Writes the JSON record
//                                 and math_accuracy.inc
//   tessera-sweep --sample 64     one argument in 64, 10^6 for f64; checks the
//                                 tier bounds and that math_accuracy.inc holds
//                                 and belongs to these sources
//   tessera-sweep --speed         elements per ns on data in the L1 cache
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/math_accuracy.h"
#include "sweep/accuracy.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <unistd.h>

using namespace tessera;
using namespace tessera::sweep;
using nlohmann::ordered_json;
using vmath::Accuracy;
using vmath::Function;

namespace {

constexpr const char *tierNames[tierCount] = {"strict", "default"};
constexpr const char *tierIdentifiers[tierCount] = {"Strict", "Default"};
constexpr const char *isaIdentifiers[isaCount] = {"Avx512", "Avx2", "Baseline"};
constexpr const char *functionIdentifiers[vmath::functionCount] = {
    "Exp", "Exp2", "Expm1", "Sigmoid", "Silu",  "GeluTanh", "Tanh",
    "Erf", "Log",  "Log2",  "Log1p",   "Rsqrt", "Sin",      "Cos"};

struct Options {
  unsigned sample = 1;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  uint64_t f64Points = 0;
  std::vector<std::string> functions;
  std::string sourceDir = TESSERA_SOURCE_DIR;
  std::string output, table;
  bool speed = false, resume = false, check = false;
};

/// Runs work(begin, end, results) over [0, total) on all threads.
template <class Work>
Results runParallel(const Options &options, const std::string &title,
                    uint64_t total, Work work) {
  // Chunks are whole lane-comparison periods (see accuracy.cpp).
  constexpr uint64_t chunk = blockSize * 128;
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  Results all;
  bool showProgress = isatty(2);
  auto worker = [&] {
    Results mine;
    for (;;) {
      uint64_t begin = next.fetch_add(chunk);
      if (begin >= total)
        break;
      work(begin, std::min(begin + chunk, total), mine);
      if (showProgress)
        std::fprintf(stderr, "\r%-20s %3d %%", title.c_str(),
                     int(100 * begin / total));
    }
    std::lock_guard lock(mutex);
    all.merge(mine);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.threads; ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread &thread : threads)
    thread.join();
  if (showProgress)
    std::fprintf(stderr, "\r%30s\r", "");
  return all;
}

/// What to state for a measurement, rounded up. The f64 sample leaves a little
/// room for what it did not meet.
vmath::StatedBound roundUp(Function function, Accuracy tier, bool isF64,
                           const Measured &m) {
  auto up = [&](double value) {
    double room = isF64 ? value * 1.02 : value;
    return std::ceil(room * 100 + 1e-6) / 100;
  };
  Bound form = tierBound(function, tier);
  if (form.constant == 0)
    form = tierBound(function, Accuracy::Default);
  vmath::StatedBound bound;
  if (form.perX != 0 && m.ulp.value > form.constant) {
    bound.constant = up(m.beyondX.value);
    bound.perX = 1;
  } else {
    bound.constant = up(m.ulp.value);
  }
  if (form.absolute != 0)
    bound.absolute = std::ceil(m.absolute.value * 1e9) / 1e9;
  return bound;
}

/// Says what is wrong with a measurement; true if nothing is.
bool checkOne(Function function, bool isF64, unsigned tier, unsigned isa,
              const Measured &m, bool checkTable) {
  std::string what = std::string(name(function)) + (isF64 ? " f64 " : " f32 ") +
                     tierNames[tier] + " " + name(Isa(isa));
  bool ok = true;
  auto fail = [&](const char *bound, const char *unit, const Extreme &found,
                  double limit) {
    std::fprintf(stderr,
                 "%s: found an error of %.4g %s at %.17g, expected at "
                 "most %.4g (%s)\n",
                 what.c_str(), found.value, unit, found.at, limit, bound);
    ok = false;
  };
  auto checkBound = [&](const char *title, double constant, double perX,
                        double absolute) {
    const Extreme &e = perX != 0 ? m.beyondX : m.ulp;
    if (e.value > constant)
      fail(title, perX != 0 ? "ULP beyond |x|" : "ULP", e, constant);
    if (absolute != 0 && m.absolute.value > absolute)
      fail(title, "absolute", m.absolute, absolute);
  };
  Bound bound = tierBound(function, Accuracy(tier));
  if (bound.constant != 0)
    checkBound("the tier's bound", bound.constant, bound.perX, bound.absolute);
  if (checkTable) {
    vmath::StatedBound stated = vmath::statedBound(
        function, isF64, Accuracy(tier), vmath::MathIsa(isa));
    checkBound("math_accuracy.inc", stated.constant, stated.perX,
               stated.absolute);
  }
  if (m.ulp.value >= wrongResult)
    fail("NaN and the signs of zeros", "(wrong)", m.ulp, 0);
  if (m.laneDifferences) {
    std::fprintf(stderr,
                 "%s: found other bits in a vector's element than in a "
                 "scalar at %.17g (%llu in all), expected the same\n",
                 what.c_str(), m.laneDifferenceAt,
                 (unsigned long long)m.laneDifferences);
    ok = false;
  }
  return ok;
}

ordered_json toJson(Function function, bool isF64, unsigned tier, unsigned isa,
                    const Measured &m) {
  auto extreme = [](const Extreme &e) {
    return ordered_json{{"value", e.value}, {"at", e.at}};
  };
  vmath::StatedBound stated = roundUp(function, Accuracy(tier), isF64, m);
  ordered_json row = {{"function", name(function)},
                      {"type", isF64 ? "f64" : "f32"},
                      {"tier", tierNames[tier]},
                      {"isa", name(Isa(isa))},
                      {"points", m.points},
                      {"max_ulp", extreme(m.ulp)},
                      {"max_ulp_beyond_x", extreme(m.beyondX)}};
  if (stated.absolute != 0)
    row["max_absolute"] = extreme(m.absolute);
  row["stated"] = {{"constant", stated.constant},
                   {"per_x", stated.perX},
                   {"absolute", stated.absolute}};
  return row;
}

/// Writes `text` through a temporary name.
bool writeFile(const std::string &path, const std::string &text) {
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::string temporary = path + ".tmp";
  std::ofstream(temporary) << text;
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error)
    std::fprintf(stderr, "%s: cannot write: %s\n", path.c_str(),
                 error.message().c_str());
  return !error;
}

std::string tableText(const ordered_json &record) {
  auto index = [](auto &names, const std::string &wanted) {
    unsigned i = 0;
    while (names[i] != wanted)
      ++i;
    return i;
  };
  const char *const isas[isaCount] = {name(Isa::Avx512), name(Isa::Avx2),
                                      name(Isa::Baseline)};
  std::string text =
      "// Written by tessera-sweep; do not edit. See math_accuracy.h.\n"
      "#ifdef MATH_ACCURACY_HASH\nMATH_ACCURACY_HASH(\"" +
      record["hash"].get<std::string>() + "\")\n#endif\n#ifdef MATH_ACCURACY\n";
  for (const auto &row : record["results"]) {
    std::string functionName = row["function"];
    unsigned function = 0;
    while (functionName != name(Function(function)))
      ++function;
    std::string type = row["type"];
    char line[160];
    std::snprintf(line, sizeof(line),
                  "MATH_ACCURACY(%s, %s, %s, %s, %.4g, %g, %.4g)\n",
                  functionIdentifiers[function], type.c_str() + 1,
                  tierIdentifiers[index(tierNames, row["tier"])],
                  isaIdentifiers[index(isas, row["isa"])],
                  row["stated"]["constant"].get<double>(),
                  row["stated"]["per_x"].get<double>(),
                  row["stated"]["absolute"].get<double>());
    text += line;
  }
  return text + "#endif\n";
}

template <class E>
double elementsPerNanosecond(const Kernel<E> &kernel, double low, double high) {
  constexpr size_t count = 1024;
  alignas(64) static E in[count], out[count];
  for (size_t i = 0; i < count; ++i)
    in[i] = E(low + (high - low) * double(i) / count);
  double best = 0;
  for (int round = 0; round < 30; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i)
      kernel.vector(in, out, count);
    std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - start;
    best = std::max(best, 100 * count / time.count());
  }
  return best;
}

void printSpeed(const std::vector<Function> &functions) {
  std::printf("elements/ns, best of 30, 1024 elements in L1\n");
  for (Function function : functions)
    for (unsigned isa = 0; isa < isaCount; ++isa) {
      if (!hostSupports(Isa(isa)))
        continue;
      bool positive = function == Function::Log || function == Function::Log2 ||
                      function == Function::Rsqrt;
      double low = positive ? 0.01 : -5;
      std::printf("%-9s %-8s", name(function), name(Isa(isa)));
      for (unsigned tier = 0; tier < tierCount; ++tier) {
        const KernelTable &t = kernels(Isa(isa));
        std::printf(
            "  %s f32 %5.2f f64 %5.2f", tierNames[tier],
            elementsPerNanosecond(t.f32[unsigned(function)][tier], low, 5),
            elementsPerNanosecond(t.f64[unsigned(function)][tier], low, 5));
      }
      std::printf("\n");
    }
}

int sweepAll(const Options &options, const std::vector<Function> &functions) {
  std::string hash = sourceHash(options.sourceDir);
  if (hash.empty()) {
    std::fprintf(stderr,
                 "%s: found no sources of the vector math library, "
                 "expected a checkout; use --source-dir\n",
                 options.sourceDir.c_str());
    return 2;
  }
  bool ok = true;
  bool checkTable = options.check;
  if (checkTable && hash != vmath::statedSourceHash()) {
    std::fprintf(stderr,
                 "math_accuracy.inc: found hash %s, expected %s of the "
                 "present sources; run the full sweep (./dev sweep)\n",
                 vmath::statedSourceHash(), hash.c_str());
    ok = false;
  }
  ordered_json record = {{"hash", hash},
                         {"sample", options.sample},
                         {"results", ordered_json::array()}};
  std::vector<std::string> done;
  if (options.resume && std::filesystem::exists(options.output)) {
    std::ifstream stream(options.output);
    ordered_json old = ordered_json::parse(stream, nullptr, false);
    if (!old.is_discarded() && old["hash"] == hash &&
        old["sample"] == options.sample) {
      record = old;
      for (const auto &row : old["results"])
        done.push_back(row["function"]);
    }
  }
  for (Function function : functions) {
    if (std::find(done.begin(), done.end(), name(function)) != done.end())
      continue;
    auto start = std::chrono::steady_clock::now();
    for (bool isF64 : {false, true}) {
      uint64_t total = isF64 ? options.f64Points : f32Inputs(options.sample);
      Results results = runParallel(
          options, std::string(name(function)) + (isF64 ? " f64" : " f32"),
          total, [&](uint64_t begin, uint64_t end, Results &mine) {
            if (isF64)
              sweepF64(function, begin, end, mine);
            else
              sweepF32(function, options.sample, begin, end, mine);
          });
      for (unsigned tier = 0; tier < tierCount; ++tier)
        for (unsigned isa = 0; isa < isaCount; ++isa) {
          if (!hostSupports(Isa(isa)))
            continue;
          const Measured &m = results.of[isa][tier];
          ok &= checkOne(function, isF64, tier, isa, m, checkTable);
          record["results"].push_back(toJson(function, isF64, tier, isa, m));
          std::printf("%-9s %s %-7s %-8s max %.4g ULP, %.4g beyond |x|\n",
                      name(function), isF64 ? "f64" : "f32", tierNames[tier],
                      name(Isa(isa)), m.ulp.value, m.beyondX.value);
        }
    }
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    std::printf("%-9s %.1f s\n", name(function), time.count());
    std::fflush(stdout);
    if (!options.output.empty())
      ok &= writeFile(options.output, record.dump(1) + "\n");
  }
  bool complete = true;
  for (unsigned isa = 0; isa < isaCount; ++isa)
    complete &= hostSupports(Isa(isa));
  if (!options.table.empty()) {
    if (complete)
      ok &= writeFile(options.table, tableText(record));
    else
      std::fprintf(stderr,
                   "%s: not written: this host lacks an ISA that the "
                   "table states\n",
                   options.table.c_str());
  }
  std::printf("%s\n", ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Measures the vector math library against a reference");
  app.add_option("--sample", options.sample,
                 "take one f32 argument in N (a power of two); with N > 1 the "
                 "stated bounds are checked, not written")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--f64-points", options.f64Points,
                 "f64 arguments (default 10^8, with --sample 10^6)");
  app.add_option("--threads", options.threads)->check(CLI::Range(1u, 1024u));
  app.add_option("--function", options.functions, "only these functions");
  app.add_option("--source-dir", options.sourceDir, "the checkout");
  app.add_option("--output", options.output,
                 "JSON record (default for the full sweep: "
                 "bench/results/math/sweep.json)");
  app.add_flag("--resume", options.resume,
               "keep the functions that the record has for these sources");
  app.add_flag("--speed", options.speed, "measure throughput instead");
  CLI11_PARSE(app, argc, argv);
  if (options.sample & (options.sample - 1)) {
    std::fprintf(stderr, "--sample: found %u, expected a power of two\n",
                 options.sample);
    return 2;
  }
  std::vector<Function> functions;
  for (unsigned i = 0; i < vmath::functionCount; ++i)
    if (options.functions.empty() ||
        std::find(options.functions.begin(), options.functions.end(),
                  name(Function(i))) != options.functions.end())
      functions.push_back(Function(i));
  if (functions.empty()) {
    std::fprintf(stderr, "--function: found no known name, expected some of:");
    for (unsigned i = 0; i < vmath::functionCount; ++i)
      std::fprintf(stderr, " %s", name(Function(i)));
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (options.speed) {
    printSpeed(functions);
    return 0;
  }
  bool full = options.sample == 1;
  if (options.f64Points == 0)
    options.f64Points = full ? 100'000'000 : 1'000'000;
  options.check = !full;
  if (full && options.functions.empty()) {
    if (options.output.empty())
      options.output = options.sourceDir + "/bench/results/math/sweep.json";
    options.table = options.sourceDir + "/src/codegen/cpu/math_accuracy.inc";
  }
  return sweepAll(options, functions);
}
