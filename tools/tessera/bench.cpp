//===- bench.cpp - `tessera bench` ----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a suite, or one operator, with its peers and writes one result file
// (docs/benchmarking.md). `bench-worker` is the process that one arm runs in.
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/bench_options.h"
#include "tools/tessera/command_line.h"
#include "tools/tessera/files.h"
#include "tools/tessera/progress_line.h"
#include "tools/tessera/render.h"

#include "bench/core/environment.h"
#include "bench/core/result.h"
#include "bench/core/row_run.h"
#include "bench/core/runner.h"
#include "bench/core/subject.h"
#include "driver/plan_file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "support/timing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <unistd.h>

namespace tessera::cli {

using nlohmann::json;

namespace {

Error usage(std::string message) {
  return {ErrorFamily::Usage, "usage.bench", std::move(message), {}};
}

json toJson(const std::vector<bench::Ceiling> &ceilings) {
  json rows = json::array();
  for (const bench::Ceiling &ceiling : ceilings) {
    json row = {{"name", ceiling.name},
                {"threads", ceiling.threads},
                {"workingSetBytes", ceiling.workingSetBytes},
                {"readBytes", ceiling.readBytes},
                {"writtenBytes", ceiling.writtenBytes},
                {"flops", ceiling.flops},
                {"inner", ceiling.inner},
                {"samples", ceiling.nanoseconds},
                {"nanoseconds", ceiling.callNanoseconds()}};
    if (ceiling.readBytes + ceiling.writtenBytes > 0)
      row["bytesPerSecond"] = ceiling.bytesPerSecond();
    if (ceiling.flops > 0)
      row["flopsPerSecond"] = ceiling.flopsPerSecond();
    rows.push_back(std::move(row));
  }
  return {{"rows", rows}};
}

std::vector<bench::Ceiling> ceilingsFrom(const json &source) {
  std::vector<bench::Ceiling> ceilings;
  for (const json &row : source.at("rows")) {
    bench::Ceiling &ceiling = ceilings.emplace_back();
    ceiling.name = row.at("name");
    ceiling.threads = row.at("threads");
    ceiling.workingSetBytes = row.at("workingSetBytes");
    ceiling.readBytes = row.at("readBytes");
    ceiling.writtenBytes = row.at("writtenBytes");
    ceiling.flops = row.at("flops");
    ceiling.inner = row.at("inner");
    ceiling.nanoseconds = row.at("samples").get<std::vector<int64_t>>();
  }
  return ceilings;
}

/// Whether a library computes the arm of that name.
bool isLibrary(const json &row, const json &name) {
  return std::any_of(row.at("arms").begin(), row.at("arms").end(),
                     [&](const json &arm) {
                       return arm.at("name") == name && arm.contains("vendor");
                     });
}

/// One line per finished row.
void printRow(const json &row) {
  std::string line = fmt::format("{:<52}", row.at("id").get<std::string>());
  if (row.at("status") != "ok") {
    fmt::print("{} {}: {}\n", line, row.at("status").get<std::string>(),
               row.at("why").get<std::string>());
    return;
  }
  const json &verdict = row.at("verdict");
  for (const json &arm : row.at("arms"))
    if (arm.at("role") == "subject" && arm.contains("statistics"))
      line += fmt::format(
          " {:>10}",
          timeText(arm["statistics"]["median"].get<double>() * 1e-9));
  if (verdict.at("overFloor") > 0)
    line +=
        fmt::format("  {:.2f} of floor", verdict["overFloor"].get<double>());
  if (verdict.at("bestPeer") != "")
    line += fmt::format("  {:.3f} of {}", verdict["ratio"].get<double>(),
                        verdict["bestPeer"].get<std::string>());
  for (const json &comparison : row.at("comparisons"))
    if (isLibrary(row, comparison.at("arm")))
      line += fmt::format("  {:.3f} of {}", comparison["median"].get<double>(),
                          comparison["arm"].get<std::string>());
  line += fmt::format("  {} (noise {:.1f} %)",
                      verdict.at("result").get<std::string>(),
                      row.at("noise").at("p90").get<double>() * 100);
  fmt::print("{}\n", line);
  // Who asks for a library wants to know why there is none.
  for (const json &arm : row.at("arms"))
    if (arm.at("status") == "wrong" || arm.at("status") == "failed" ||
        arm.at("status") == "slow" ||
        (arm.at("status") != "ok" && arm.contains("vendor")))
      fmt::print("  {}: {}: {}\n", arm["name"].get<std::string>(),
                 arm["status"].get<std::string>(),
                 arm["why"].get<std::string>());
}

/// Whether anything in the row is wrong or failed.
bool isBad(const json &row) {
  if (row.at("status") == "failed")
    return true;
  for (const json &arm : row.at("arms"))
    if (arm.at("status") == "wrong" || arm.at("status") == "failed")
      return true;
  return false;
}

bool wasMeasured(const json &row) {
  return std::any_of(row.at("arms").begin(), row.at("arms").end(),
                     [](const json &arm) { return arm.at("status") == "ok"; });
}

/// A word of a shell command.
std::string shellWord(const std::string &text) {
  std::string result = "'";
  for (char letter : text)
    result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return result + "'";
}

class Bench {
public:
  explicit Bench(BenchOptions &options) : options(options) {}

  int run() {
    Result<int> status = measure();
    return status ? *status : report(status.error());
  }

private:
  Result<int> measure() {
    // Workers are other processes. Rows are about the plans that everybody
    // gets.
    if (!options.tuned)
      ::setenv("TESSERA_PLAN_DIR", "off", /*overwrite=*/1);
    if (Result<void> status = readNumbers(options); !status)
      return status.error();
    if (options.isa != "native") {
      Result<Isa> isa = parseIsa(options.isa, /*forOtherHost=*/false);
      if (!isa)
        return isa.error();
      bench::limitIsa(*isa);
    }
    if (!isUtf8(options.machine))
      return usage("--machine: found bytes that are no UTF-8, expected a name");
    Result<bench::Suite> suite = chooseSuite(options);
    if (!suite)
      return suite.error();
    Result<std::vector<bench::RowSpec>> rows = chooseRows(*suite, options);
    if (!rows)
      return rows.error();
    // The plan of another machine's run is for that machine.
    if (!options.finish)
      if (Result<void> status = checkPlan(*rows); !status)
        return status.error();
    Result<std::vector<bench::Peer>> installed = bench::installedPeers();
    if (!installed)
      return installed.error();
    Result<std::vector<bench::Peer>> peers =
        bench::selectPeers(*installed, options.peers);
    if (!peers)
      return peers.error();
    std::string file =
        options.json.empty() ? suite->name + "-bench.json" : options.json;
    OutputPaths paths;
    if (Result<void> status = paths.take(file, "--json", Dash::IsRefused);
        !status)
      return status.error();
    if (!options.html.empty())
      if (Result<void> status =
              paths.take(options.html, "--html", Dash::IsRefused);
          !status)
        return status.error();

    json document = settings(*suite, *rows, *peers);
    Result<bench::PartialResult> partial =
        bench::PartialResult::open(file, document,
                                   options.restart  ? bench::Resume::Restart
                                   : options.finish ? bench::Resume::Finish
                                                    : bench::Resume::Continue);
    if (!partial)
      return partial.error();
    document = partial->settings();
    auto finished = std::count_if(rows->begin(), rows->end(),
                                  [&](const bench::RowSpec &row) {
                                    return partial->find(row.id()) != nullptr;
                                  });
    if (finished > 0)
      fmt::print("going on after {} finished rows\n", finished);

    Result<json> ceilings = measureCeilings(*partial, *rows);
    if (!ceilings)
      return ceilings.error();
    document["ceilings"] = *ceilings;
    bench::RunnerOptions how;
    how.peers = *peers;
    how.rounds = options.rounds;
    how.samples = options.samples;
    how.rowSeconds = options.rowSeconds;
    how.answerSeconds = options.answerSeconds;
    how.seed = options.seed;
    how.logFolder = makeLogFolder();
    bench::Runner runner(how, ceilingsFrom(*ceilings));
    Result<json> described = describePeers(*partial, runner);
    if (!described)
      return described.error();
    document["peers"] = *described;
    bool bad = false;
    for (const json &peer : document["peers"])
      if (peer["status"] != "ok")
        fmt::print("peer {} is {}: {}\n", peer["name"].get<std::string>(),
                   peer["status"].get<std::string>(),
                   peer["why"].get<std::string>());
    if (options.peers == "all" && peers->empty())
      fmt::print("no peers are installed; ./dev peers installs them\n");
    document["rows"] = json::array();
    support::Stopwatch watch;
    size_t measured = 0;
    for (size_t i = 0; i < rows->size(); ++i) {
      const bench::RowSpec &spec = (*rows)[i];
      json row;
      if (const json *finished = partial->find(spec.id())) {
        row = *finished;
      } else if (options.finish) {
        row = bench::unmeasuredRow(spec, "the run ended before this row");
      } else {
        row = runner.run(spec, [&](const std::string &what) {
          std::string left;
          if (measured > 0)
            left = leftText(watch.milliseconds() * 1e-3 /
                            static_cast<double>(measured) *
                            static_cast<double>(rows->size() - i));
          progress.show(fmt::format("[{}/{}] {}: {} {}", i + 1, rows->size(),
                                    spec.id(), what, left));
        });
        ++measured;
        if (Result<void> status = partial->add(row); !status)
          return status.error();
      }
      progress.clear();
      printRow(row);
      std::fflush(stdout);
      bad |= isBad(row);
      document["rows"].push_back(std::move(row));
    }
    // A run in which nothing was measured is no success.
    bad |= !suite->rows.empty() &&
           std::none_of(document["rows"].begin(), document["rows"].end(),
                        wasMeasured);
    document["run"]["started"] = document["started"];
    document["run"]["finished"] = bench::utcNow();
    document["run"]["command"] = options.command();
    document["run"]["passed"] = !bad;
    document.erase("started");
    if (Result<void> status = bench::writeResult(file, document); !status)
      return status.error();
    partial->discard();
    fmt::print("{} rows in {}\n", document["rows"].size(), file);
    std::error_code error;
    if (!bad && !how.logFolder.empty())
      std::filesystem::remove_all(how.logFolder, error);
    if (bad)
      fmt::print("something is wrong or failed; the rows say what\n");
    if (!options.html.empty() && !writeHtml(file))
      return 2;
    return bad ? 1 : 0;
  }

  /// Everything that has to be equal for a run to be continued.
  json settings(const bench::Suite &suite,
                const std::vector<bench::RowSpec> &rows,
                const std::vector<bench::Peer> &peers) const {
    json ids = json::array(), names = json::array();
    for (const bench::RowSpec &row : rows)
      ids.push_back(row.id());
    for (const bench::Peer &peer : peers)
      names.push_back(peer.name);
    bench::Revision revision = bench::sourceRevision();
    json environment = bench::describeEnvironment(options.machine);
    // A clock that moves does not make another machine.
    json fixed = environment;
    fixed.erase("frequencyMHz");
    json run = {{"suite", suite.name},
                {"seed", options.seed},
                {"rounds", options.rounds},
                {"samplesPerTurn", options.samples},
                {"rowSeconds", options.rowSeconds},
                {"threads", options.threads},
                {"filter", options.filter},
                {"revision", revision.name},
                {"dirty", revision.dirty},
                {"version", TESSERA_VERSION},
                {"rowIds", ids},
                {"peers", names}};
    if (options.tuned)
      run["tuned"] = true;
    if (!options.vendor.empty() && options.vendor != "none")
      run["vendor"] = options.vendor;
    for (const bench::RowSpec &row : rows)
      if (row.plan)
        run["plan"] = bench::digestOf(row.plan->text);
    run["id"] = bench::digestOf(run.dump() + fixed.dump());
    return {{"schema", "tessera-bench"},
            {"schemaVersion", bench::schemaVersion},
            {"started", bench::utcNow()},
            {"run", run},
            {"environment", fixed}};
  }

  Result<json> measureCeilings(bench::PartialResult &partial,
                               const std::vector<bench::RowSpec> &rows) {
    if (const json *finished = partial.find("ceilings"))
      return finished->at("ceilings");
    if (options.finish)
      return usage("--finish: the interrupted run measured nothing; run it "
                   "again without --finish");
    std::set<int> threads = {1, bench::allThreads()};
    for (const bench::RowSpec &row : rows)
      threads.insert(row.threads);
    json ceilings = toJson(bench::measureCeilings(
        defaultIsa(), {threads.begin(), threads.end()},
        [&](const std::string &what) { progress.show("ceilings: " + what); }));
    progress.clear();
    if (Result<void> status =
            partial.add({{"id", "ceilings"}, {"ceilings", ceilings}});
        !status)
      return status.error();
    return ceilings;
  }

  /// The peers of the run, kept for the case that another machine finishes it.
  Result<json> describePeers(bench::PartialResult &partial,
                             bench::Runner &runner) {
    if (options.finish) {
      if (const json *described = partial.find("peers"))
        return described->at("peers");
      return usage("--finish: the interrupted run began no row; run it again "
                   "without --finish");
    }
    json peers = runner.describePeers();
    // Rows of two versions of a peer are no one run.
    if (const json *described = partial.find("peers"))
      for (const json &before : described->at("peers"))
        for (const json &now : peers)
          if (before["name"] == now["name"] && before["status"] == "ok" &&
              now["status"] == "ok" && before["version"] != now["version"])
            return usage(fmt::format(
                "peer '{}' has version '{}', the interrupted run had '{}'; "
                "begin anew with --restart, or write what there is with "
                "--finish",
                now["name"].get<std::string>(),
                now["version"].get<std::string>(),
                before["version"].get<std::string>()));
    if (Result<void> status = partial.add({{"id", "peers"}, {"peers", peers}});
        !status)
      return status.error();
    return peers;
  }

  /// What workers print, for when one fails.
  static std::string makeLogFolder() {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::temp_directory_path(error) /
                                   fmt::format("tessera-bench-{}", getpid());
    std::filesystem::create_directories(folder, error);
    return error ? std::string() : folder.string();
  }

  bool writeHtml(const std::string &file) const {
    std::string command =
        fmt::format("python3 {} --html={} -- {}",
                    shellWord(bench::benchFolder() + "/report"),
                    shellWord(options.html), shellWord(file));
    if (std::system(command.c_str()) == 0)
      return true;
    printError("tessera bench: error: the report could not be made; the "
               "result is in '{}'\n",
               file);
    return false;
  }

  BenchOptions &options;
  ProgressLine progress;
};

} // namespace

Action addBench(CLI::App &app) {
  CLI::App *verb = app.add_subcommand(
      "bench", "measure operators beside their peers, with evidence");
  auto options = std::make_shared<BenchOptions>();
  verb->add_option("OPERATOR", options->op, "an operator of `tessera list`");
  verb->add_option(
      "--suite", options->suite,
      fmt::format("a suite: {}", fmt::join(bench::suiteNames(), ", ")));
  verb->add_option("--dims", options->dims, "extents, as rows=17,cols=65");
  verb->add_option("--dtype", options->dtype, "type of floating arrays");
  verb->add_option("--boundary", options->boundary,
                   fmt::format("{}", fmt::join(bench::boundaries, ", ")))
      ->check(CLI::IsMember(std::vector<std::string>(
          std::begin(bench::boundaries), std::end(bench::boundaries))));
  verb->add_option("--plan", options->plan,
                   "a saved plan for an operator instead of the default one");
  verb->add_option("--vendor", options->vendor,
                   "an arm beside the default plan that hands the kernel to "
                   "cblas, onednn, or both (cblas,onednn); unsupported where "
                   "it is not proved to be their product");
  verb->add_option("--peers", options->peers,
                   "all, none, or names that ./dev peers has installed");
  verb->add_option("--threads", options->threadsText,
                   "0 for all processors, at most 4096");
  verb->add_option("--filter", options->filter,
                   "only rows whose name contains this");
  verb->add_option("--isa", options->isa,
                   "instruction set: native or a lower one, as avx2, which "
                   "peers are held to as well where they can be told");
  verb->add_option("--rounds", options->roundsText,
                   "rounds, raised to a multiple of the balanced design, at "
                   "most 10000");
  verb->add_option("--samples", options->samplesText,
                   "samples per turn, at most 10000");
  verb->add_option("--row-seconds", options->rowSecondsText,
                   "time for the timed calls of a row, 0.01 to 1e6");
  verb->add_option("--seed", options->seedText, "seed of the inputs");
  verb->add_option("--answer-seconds", options->answerSecondsText,
                   "the longest an arm may take for one answer, 0.1 to 1e6");
  verb->add_option("--machine", options->machine,
                   "short name of this machine in the result");
  verb->add_option("--json", options->json, "result file");
  verb->add_option("--html", options->html, "report to write");
  verb->add_flag("--tuned", options->tuned,
                 "with the plans that tessera tune has stored for this machine "
                 "(otherwise the default plans)");
  CLI::Option *restart = verb->add_flag("--restart", options->restart,
                                        "drop the rows of an interrupted run");
  verb->add_flag("--finish", options->finish,
                 "write the result of an interrupted run, on any machine; rows "
                 "that are not there count as failed")
      ->excludes(restart);
  verb->footer("Example:\n  tessera bench --suite rows --peers all "
               "--json rows.json\nAn interrupted run goes on when the same "
               "command is given again.");
  return [options] { return Bench(*options).run(); };
}

Action addBenchWorker(CLI::App &app) {
  CLI::App *verb = app.add_subcommand("bench-worker", "");
  // For `tessera bench` alone.
  verb->group("");
  auto plugin = std::make_shared<std::string>();
  verb->add_option("--plugin", *plugin, "a peer's shared object");
  return [plugin] {
    if (plugin->empty())
      return bench::serve(*bench::makeSubject());
    Result<std::unique_ptr<bench::Arm>> arm = bench::loadPlugin(*plugin);
    return arm ? bench::serve(**arm) : report(arm.error());
  };
}

} // namespace tessera::cli
