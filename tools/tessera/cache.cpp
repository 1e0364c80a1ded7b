//===- tools/tessera/cache.cpp - tessera cache ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shows, explains, checks and removes the executables on disk (docs/cli.md).
//
//===----------------------------------------------------------------------===//

#include "driver/cache_store.h"
#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include "nlohmann/json.hpp"

using Json = nlohmann::ordered_json;

namespace tessera::cli {

namespace {

/// Of `list`, `verify` and `clear`.
struct FolderOptions {
  std::string json;
};

Result<std::string> folderInUse() {
  if (std::optional<std::string> folder = cacheFolder())
    return *folder;
  return Error{ErrorFamily::Usage,
               "usage.cache",
               "there is no folder of executables: TESSERA_CACHE_DIR is off, "
               "or there is no home",
               {}};
}

Result<void> checkJsonPath(const std::string &path) {
  if (path.empty())
    return {};
  return OutputPaths().take(path, "--json", Dash::IsStandardOutput);
}

Result<void> writeJson(const std::string &path, const Json &json) {
  return writeFile(path,
                   json.dump(2, ' ', /*ensure_ascii=*/false,
                             Json::error_handler_t::replace) +
                       "\n",
                   "--json");
}

/// Whether this build could take it.
bool isOfThisBuild(const CachedExecutable &entry) {
  return entry.key.value("tessera") == cacheCompiler() &&
         entry.key.value("llvm") == cacheLlvm();
}

std::string extentsText(const CachedExecutable &entry) {
  std::string text;
  for (const auto &[dim, extent] : entry.extents)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", dim, extent);
  return text;
}

std::string levelOf(const CachedExecutable &entry) {
  const std::string target = entry.key.value("target");
  return target.substr(0, target.find(':'));
}

std::string ageText(double seconds) {
  const double passed = std::max(seconds, 0.0);
  if (passed < 120)
    return fmt::format("{:.0f} s", passed);
  if (passed < 2 * 3600)
    return fmt::format("{:.0f} min", passed / 60);
  if (passed < 2 * 86400)
    return fmt::format("{:.0f} h", passed / 3600);
  return fmt::format("{:.0f} days", passed / 86400);
}

Json fileJson(const CacheFile &file) {
  Json json{{"path", file.path},
            {"bytes", file.bytes},
            {"seconds_since_use", file.age},
            {"problem", nullptr}};
  if (!file.entry) {
    json["problem"] = file.entry.error().message;
    return json;
  }
  const CachedExecutable &entry = *file.entry;
  json["kernel"] = entry.key.value("kernel");
  json["extents"] = Json::object();
  for (const auto &[dim, extent] : entry.extents)
    json["extents"][dim] = extent;
  json["target"] = levelOf(entry);
  json["object_bytes"] = entry.object.size();
  json["plan"] = entry.planSummary;
  json["plan_source"] = entry.planSource;
  json["this_build"] = isOfThisBuild(entry);
  json["key"] = Json::object();
  for (const CacheKey::Part &part : entry.key.parts)
    json["key"][part.name] = part.value;
  return json;
}

int64_t totalBytes(const std::vector<CacheFile> &files) {
  int64_t bytes = 0;
  for (const CacheFile &file : files)
    bytes += file.bytes;
  return bytes;
}

Json folderJson(const std::string &folder,
                const std::vector<CacheFile> &files) {
  const std::string problem = cacheProblem();
  Json json{{"schema", 1},
            {"folder", folder},
            {"problem", nullptr},
            {"bytes", totalBytes(files)},
            {"limit_bytes", cacheLimit()},
            {"executables", Json::array()}};
  if (!problem.empty())
    json["problem"] = problem;
  for (const CacheFile &file : files)
    json["executables"].push_back(fileJson(file));
  return json;
}

void printFiles(const std::vector<CacheFile> &files, bool onlyDamaged) {
  for (const CacheFile &file : files) {
    if (!file.entry) {
      fmt::print("{}: damaged: {}\n", file.path, file.entry.error().message);
    } else if (!onlyDamaged) {
      const CachedExecutable &entry = *file.entry;
      fmt::print("{} {} {}: {}, used {} ago{}\n", entry.key.value("kernel"),
                 extentsText(entry), levelOf(entry), sizeText(file.bytes),
                 ageText(file.age),
                 isOfThisBuild(entry) ? "" : "; of another build, not used");
    }
  }
}

Result<int> list(const FolderOptions &options, bool isVerifying) {
  if (Result<void> status = checkJsonPath(options.json); !status)
    return status.error();
  Result<std::string> folder = folderInUse();
  if (!folder)
    return folder.error();
  const std::vector<CacheFile> files = listExecutables();
  if (!options.json.empty())
    if (Result<void> status =
            writeJson(options.json, folderJson(*folder, files));
        !status)
      return status.error();
  const auto damaged =
      std::count_if(files.begin(), files.end(),
                    [](const CacheFile &file) { return !file.entry.ok(); });
  if (options.json != "-") {
    printFiles(files, isVerifying);
    if (const std::string problem = cacheProblem(); !problem.empty())
      fmt::print("{}\n", problem);
    if (isVerifying)
      fmt::print("{} executables in {}, {} damaged\n", files.size(), *folder,
                 damaged);
    else
      fmt::print("{} executables in {}, {} of at most {}\n", files.size(),
                 *folder, sizeText(totalBytes(files)), sizeText(cacheLimit()));
  }
  return isVerifying && damaged > 0 ? 1 : 0;
}

Result<int> clear() {
  Result<std::string> folder = folderInUse();
  if (!folder)
    return folder.error();
  Result<int64_t> count = clearExecutables();
  if (!count)
    return count.error();
  fmt::print("{} executables removed from {}\n", *count, *folder);
  return 0;
}

Json stateJson(const CacheState &state) {
  Json json{{"schema", 1},        {"hit", state.isHit},
            {"key", nullptr},     {"reason", nullptr},
            {"nearest", nullptr}, {"differences", Json::array()}};
  if (!state.key.empty())
    json["key"] = state.key;
  if (!state.reason.empty())
    json["reason"] = state.reason;
  if (!state.path.empty())
    json["nearest"] = state.path;
  for (const CacheState::Difference &one : state.differences)
    json["differences"].push_back(
        {{"part", one.part}, {"found", one.found}, {"wanted", one.wanted}});
  return json;
}

void printState(const CacheState &state) {
  if (state.isHit) {
    fmt::print("no miss: '{}' is what would run\n", state.path);
    return;
  }
  fmt::print("miss: {}\n", state.reason);
  if (state.key.empty())
    return;
  if (state.path.empty()) {
    fmt::print("there is no executable of this kernel at all\n");
    return;
  }
  if (state.differences.empty())
    return;
  fmt::print("nearest: '{}', which has otherwise\n", state.path);
  for (const CacheState::Difference &one : state.differences)
    fmt::print("  {}\n    found  {}\n    wanted {}\n", one.part, one.found,
               one.wanted);
}

Result<int> whyMiss(const CommonOptions &options) {
  Result<Subject> subject = makeSubject(options, {.writesArrays = false});
  if (!subject)
    return subject.error();
  if (Result<std::string> folder = folderInUse(); !folder)
    return folder.error();
  subject->request.useDiskCache = true;
  Result<CacheState> state =
      subject->op
          ? session::cacheStateOfOperator(*subject->op, subject->request)
          : session::cacheStateOfProgram(std::move(*subject->program),
                                         subject->request);
  if (!state)
    return state.error();
  if (!options.json.empty())
    if (Result<void> status = writeJson(options.json, stateJson(*state));
        !status)
      return status.error();
  if (options.json != "-")
    printState(*state);
  return 0;
}

int finish(const Result<int> &status, const std::string &file = "") {
  return status ? *status : report(status.error(), file);
}

} // namespace

Action addCache(CLI::App &app) {
  CLI::App *verb = app.add_subcommand(
      "cache",
      "the executables on disk: shows, explains, checks, removes them");
  verb->require_subcommand(0, 1);
  auto folder = std::make_shared<FolderOptions>();
  auto common = std::make_shared<CommonOptions>();
  const auto addJson = [&](CLI::App *action) {
    action
        ->add_option("--json", folder->json,
                     "write it as JSON; - for standard output")
        ->type_name("FILE");
  };
  CLI::App *listing = verb->add_subcommand(
      "list", "what there is, the most recently used first");
  addJson(listing);
  CLI::App *missing = verb->add_subcommand(
      "why-miss", "whether a run would compile, and what differs from the "
                  "nearest executable of its kernel");
  addCompileOnlyOptions(*missing, *common,
                        "check indices that depend on data, as tessera run "
                        "does (on)");
  common->validate = true;
  addThreadsOption(*missing, *common, "threads that may take part");
  addPlanOption(*missing, *common);
  addPrepackedOption(*missing, *common);
  missing->get_option("--json")->description(
      "write it as JSON; - for standard output");
  CLI::App *verifying =
      verb->add_subcommand("verify", "reads all and checks their hashes");
  addJson(verifying);
  CLI::App *clearing = verb->add_subcommand("clear", "removes all");
  verb->footer("Examples:\n"
               "  tessera cache list\n"
               "  tessera cache why-miss softmax --dims rows=17,cols=65");
  return [=] {
    if (listing->parsed())
      return finish(list(*folder, /*isVerifying=*/false));
    if (verifying->parsed())
      return finish(list(*folder, /*isVerifying=*/true));
    if (clearing->parsed())
      return finish(clear());
    if (missing->parsed())
      return finish(whyMiss(*common), common->what);
    return report({ErrorFamily::Usage,
                   "usage.cache",
                   "tessera cache: expected list, why-miss, verify or clear",
                   {}});
  };
}

} // namespace tessera::cli
