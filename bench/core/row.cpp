//===- bench/core/row.cpp - One row of a benchmark ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/row.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tessera::bench {

using nlohmann::json;

namespace {

Error usage(std::string message) {
  return {ErrorFamily::Usage, "bench.suite", std::move(message), {}};
}

/// The fields of a group in a suite.
constexpr std::string_view groupKeys[] = {"operators",  "dtypes",   "shapes",
                                          "boundaries", "settings", "present",
                                          "variants"};

json settingsJson(const kernels::Settings &settings) {
  json result = json::object();
  for (const auto &[name, value] : settings)
    std::visit([&, &key = name](auto number) { result[key] = number; }, value);
  return result;
}

Result<kernels::Settings> settingsFrom(const json &values) {
  kernels::Settings settings;
  for (const auto &[name, value] : values.items()) {
    if (value.is_boolean())
      settings.emplace(name, Constant(int64_t(value.get<bool>())));
    else if (value.is_number_integer())
      settings.emplace(name, Constant(value.get<int64_t>()));
    else if (value.is_number())
      settings.emplace(name, Constant(value.get<double>()));
    else
      return usage(fmt::format("setting '{}': found {}, expected a number",
                               name, value.dump()));
  }
  return settings;
}

} // namespace

std::string RowSpec::id() const {
  // Dimensions in the operator's own order, where it is known.
  std::vector<std::string> parts;
  const kernels::Operator *op = kernels::findOperator(operatorName);
  if (op) {
    for (std::string_view dim : op->dims)
      if (auto found = dims.find(dim); found != dims.end())
        parts.push_back(fmt::format("{}={}", dim, found->second));
  } else {
    for (const auto &[dim, extent] : dims)
      parts.push_back(fmt::format("{}={}", dim, extent));
  }
  for (const auto &[name, value] : settings)
    std::visit(
        [&, &key = name](auto number) {
          parts.push_back(fmt::format("{}={}", key, number));
        },
        value);
  for (const std::string &name : present)
    parts.push_back("+" + name);
  return fmt::format("{}/{}/{}/{}/{}", operatorName, name(dtype),
                     fmt::join(parts, ","), boundary, threads);
}

json RowSpec::toJson() const {
  json extents = json::object();
  for (const auto &[name, extent] : dims)
    extents[name] = extent;
  return {{"operator", operatorName}, {"dtype", name(dtype)},
          {"dims", extents},          {"settings", settingsJson(settings)},
          {"present", present},       {"boundary", boundary},
          {"threads", threads}};
}

Result<RowSpec> RowSpec::fromJson(const json &source) {
  RowSpec row;
  try {
    row.operatorName = source.at("operator").get<std::string>();
    std::string type = source.value("dtype", "f32");
    std::optional<DType> dtype = parseDType(type);
    if (!dtype)
      return usage(fmt::format("operator '{}': unknown dtype '{}'",
                               row.operatorName, type));
    row.dtype = *dtype;
    for (const auto &[name, extent] : source.at("dims").items()) {
      if (!extent.is_number_integer() || extent < 0)
        return usage(
            fmt::format("operator '{}': dimension '{}' is {}, expected "
                        "a whole number of at least 0",
                        row.operatorName, name, extent.dump()));
      row.dims.emplace(name, extent.get<int64_t>());
    }
    if (source.contains("settings")) {
      Result<kernels::Settings> settings = settingsFrom(source["settings"]);
      if (!settings)
        return settings.error();
      row.settings = std::move(*settings);
    }
    row.present = source.value("present", std::vector<std::string>());
    row.boundary = source.value("boundary", "native");
    if (std::find(std::begin(boundaries), std::end(boundaries), row.boundary) ==
        std::end(boundaries))
      return usage(fmt::format("operator '{}': unknown boundary '{}', expected "
                               "one of {}",
                               row.operatorName, row.boundary,
                               fmt::join(boundaries, ", ")));
    row.threads = source.value("threads", 1);
    for (const json &variant : source.value("variants", json::array()))
      row.variants.push_back(
          {variant.at("name").get<std::string>(), variant.at("steps")});
  } catch (const json::exception &error) {
    return usage(
        fmt::format("row {}: {}", source.dump().substr(0, 200), error.what()));
  }
  return row;
}

session::RunRequest RowSpec::runRequest() const {
  session::RunRequest request;
  request.dims = dims;
  request.dtype = dtype;
  request.settings = settings;
  request.present = present;
  // What a user gets who asks for nothing: indices are checked by launches, and
  // a native entry has no runtime checks.
  request.validate = boundary == "call" || boundary == "batch";
  return request;
}

Result<Suite> readSuite(const std::string &file) {
  std::ifstream stream(file);
  if (!stream)
    return usage(fmt::format("cannot read suite '{}'", file));
  json source = json::parse(stream, nullptr, /*allow_exceptions=*/false,
                            /*ignore_comments=*/true);
  if (!source.is_object())
    return usage(fmt::format("suite '{}' is no JSON object", file));
  Suite suite;
  suite.name = std::filesystem::path(file).stem();
  try {
    suite.summary = source.value("summary", "");
    suite.ceilings = source.value("ceilings", false);
    // Every group is a product: operators x dtypes x shapes x boundaries.
    for (const json &group : source.value("groups", json::array())) {
      for (const auto &[key, value] : group.items())
        if (std::find(std::begin(groupKeys), std::end(groupKeys), key) ==
            std::end(groupKeys))
          return usage(fmt::format("suite '{}': unknown field '{}', expected "
                                   "some of {}",
                                   file, key, fmt::join(groupKeys, ", ")));
      for (const json &boundary : group.at("boundaries"))
        for (const json &dtype : group.at("dtypes"))
          for (const json &op : group.at("operators"))
            for (const json &dims : group.at("shapes")) {
              json entry = {{"operator", op},
                            {"dtype", dtype},
                            {"dims", dims},
                            {"boundary", boundary.at(0)},
                            {"threads", boundary.at(1)}};
              for (const char *optional : {"settings", "present", "variants"})
                if (group.contains(optional))
                  entry[optional] = group[optional];
              Result<RowSpec> row = RowSpec::fromJson(entry);
              if (!row)
                return usage(
                    fmt::format("suite '{}': {}", file, row.error().message));
              const kernels::Operator *known =
                  kernels::findOperator(row->operatorName);
              if (known)
                if (Result<void> status = kernels::checkDims(*known, row->dims);
                    !status)
                  return usage(fmt::format("suite '{}': {}", file,
                                           status.error().message));
              suite.rows.push_back(std::move(*row));
            }
    }
  } catch (const json::exception &error) {
    return usage(fmt::format("suite '{}': {}", file, error.what()));
  }
  return suite;
}

std::string benchFolder() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> places;
  if (const char *set = std::getenv("TESSERA_BENCH_DIR"); set && *set)
    places.emplace_back(set);
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  places.push_back(program.parent_path() / "../share/tessera/bench");
#ifdef TESSERA_BENCH_SOURCE_DIR
  places.emplace_back(TESSERA_BENCH_SOURCE_DIR);
#endif
  for (const fs::path &place : places)
    if (fs::is_directory(place / "suites", error))
      return place.lexically_normal().string();
  return {};
}

std::vector<std::string> suiteNames() {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::path folder = benchFolder();
  for (const auto &entry :
       std::filesystem::directory_iterator(folder / "suites", error))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Result<Suite> findSuite(const std::string &name) {
  std::vector<std::string> names = suiteNames();
  if (std::find(names.begin(), names.end(), name) == names.end())
    return usage(fmt::format(
        "unknown suite '{}', expected {}", name,
        names.empty() ? "a folder of suites (set TESSERA_BENCH_DIR)"
                      : fmt::format("one of {}", fmt::join(names, ", "))));
  return readSuite(benchFolder() + "/suites/" + name + ".json");
}

} // namespace tessera::bench
