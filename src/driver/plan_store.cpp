//===- plan_store.cpp - Tuned plans ---------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_store.h"

#include "support/atomic_file.h"
#include "support/env.h"
#include "support/hash.h"
#include "support/json_scan.h"
#include "tessera/device.h"

#include "fmt/format.h"
#include "llvm/Config/llvm-config.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view suffix = ".json";

/// The paths in the folder that have the name of an entry.
std::vector<fs::path> entryPaths() {
  std::vector<fs::path> paths;
  std::optional<std::string> folder = planStoreFolder();
  if (!folder)
    return paths;
  std::error_code code;
  for (fs::directory_iterator it(*folder, code), end; !code && it != end;
       it.increment(code)) {
    std::string file = it->path().filename().string();
    if (file.size() == 32 + suffix.size() && file.ends_with(suffix) &&
        file.find_first_not_of("0123456789abcdef") == 32)
      paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Error cannotUse(const std::string &path, const std::string &why) {
  return {ErrorFamily::Usage,
          "usage.plan-store",
          "the folder of tuned plans: '" + path + "': " + why +
              "; TESSERA_PLAN_DIR names another one",
          {}};
}

Result<SavedPlan> readEntry(const std::string &path) {
  Result<PlanText> text = readPlanText(path);
  if (!text)
    return text.error();
  return readPlan(*text);
}

} // namespace

std::optional<std::string> planStoreFolder() {
  if (std::optional<std::string> given =
          support::envText(support::EnvVariable::PlanDir)) {
    if (*given == "off")
      return std::nullopt;
    return given;
  }
  // A relative path is to be ignored, says the standard of the variable.
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/')
    return std::string(cache) + "/tessera/plans";
  const char *home = std::getenv("HOME");
  if (home && *home == '/')
    return std::string(home) + "/.cache/tessera/plans";
  return std::nullopt;
}

std::string tuningCpu() {
  static const std::string name = cpuDevice().name;
  return name;
}

std::string tuningCompiler() {
  return "tessera " TESSERA_VERSION ", LLVM " LLVM_VERSION_STRING;
}

std::string planKey(const PlanSubject &subject,
                    const std::vector<std::vector<int64_t>> &extents,
                    const std::vector<std::vector<bool>> &unitStride) {
  support::Hasher hasher;
  hasher.text("tuned plan 1")
      .text(subject.hash)
      .text(subject.target)
      .text(name(subject.alias))
      .text(tuningCpu())
      .text(tuningCompiler());
  for (const std::vector<int64_t> &own : extents) {
    hasher.integer(int64_t(own.size()));
    for (int64_t extent : own)
      hasher.integer(extent);
  }
  for (const std::vector<bool> &own : unitStride) {
    hasher.integer(int64_t(own.size()));
    for (bool isUnit : own)
      hasher.integer(isUnit);
  }
  return hasher.finish().hex();
}

std::string tunedPlanHash(const std::string &key) {
  std::optional<std::string> folder = planStoreFolder();
  if (!folder || key.empty())
    return {};
  std::ifstream file(fs::path(*folder) / (key + std::string(suffix)),
                     std::ios::binary);
  if (!file)
    return {};
  std::ostringstream text;
  text << file.rdbuf();
  return support::hashBytes(text.str()).hex();
}

void warnAboutTunedPlan(const std::string &why) {
  static std::atomic<bool> told = false;
  if (!told.exchange(true))
    support::logLine("tessera: warning: a tuned plan is ignored: " + why +
                     "; tessera tune makes it again, tessera tune --clear "
                     "removes all");
}

std::string whyNotUsedHere(const SavedPlan &saved, const std::string &path) {
  if (!saved.tuned)
    return "found no record of its tuning";
  const TuneRecord &record = *saved.tuned;
  if (record.key != fs::path(path).stem().string())
    return "found an entry for another key";
  if (record.cpu != tuningCpu() || record.compiler != tuningCompiler())
    return fmt::format("for {}, {}", support::excerpt(record.cpu),
                       support::excerpt(record.compiler));
  // Both change what the caller of the code must do, or link; tuning looks for
  // neither.
  if (saved.choices.vendor != Vendor::None)
    return fmt::format("vendor: found {}, expected none",
                       name(saved.choices.vendor));
  if (!saved.choices.prepacked.empty())
    return fmt::format("prepacked: found '{}', expected none",
                       support::excerpt(*saved.choices.prepacked.begin()));
  return {};
}

std::optional<SavedPlan> findTunedPlan(const PlanSubject &subject) {
  std::optional<std::string> folder = planStoreFolder();
  if (!folder)
    return std::nullopt;
  fs::path path = fs::path(*folder) / (subject.key + std::string(suffix));
  std::error_code code;
  if (!fs::exists(path, code))
    return std::nullopt;
  Result<SavedPlan> saved = readEntry(path.string());
  Result<void> fits =
      saved ? checkSubject(*saved, subject) : Result<void>(saved.error());
  if (fits)
    if (std::string why = whyNotUsedHere(*saved, path.string()); !why.empty())
      fits = cannotUse(path.string(), why);
  if (fits)
    return std::move(*saved);
  warnAboutTunedPlan(fits.error().message);
  return std::nullopt;
}

Result<std::string> storeTunedPlan(const Plan &plan, const PlanSubject &subject,
                                   const TuneRecord &record) {
  std::optional<std::string> folder = planStoreFolder();
  if (!folder)
    return Error{ErrorFamily::Usage,
                 "usage.plan-store",
                 "there is no folder of tuned plans: TESSERA_PLAN_DIR is off, "
                 "or there is no home; expected one, or --dry-run",
                 {}};
  std::error_code code;
  if (fs::create_directories(*folder, code); code)
    return cannotUse(*folder, code.message());
  std::string path =
      (fs::path(*folder) / (subject.key + std::string(suffix))).string();
  std::string text = writePlan(plan, subject, &record);
  Result<support::AtomicFile> file = support::AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Result<void> status = file->write(text.data(), text.size()); !status)
    return status.error();
  if (Result<void> status = file->commit(); !status)
    return status.error();
  return path;
}

std::vector<StoredPlan> listTunedPlans() {
  std::vector<StoredPlan> plans;
  for (const fs::path &path : entryPaths())
    plans.push_back({path.string(), readEntry(path.string())});
  return plans;
}

Result<int64_t> clearTunedPlans() {
  int64_t count = 0;
  for (const fs::path &path : entryPaths()) {
    std::error_code code;
    count += fs::remove(path, code);
    if (code)
      return cannotUse(path.string(), code.message());
  }
  return count;
}

} // namespace tessera
