//===- bench/core/row.cpp - One row of a benchmark ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/row.h"

#include "bench/core/fields.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace tessera::bench {

using nlohmann::json;

namespace {

constexpr const char *errorCode = "bench.suite";

Error usage(std::string message) {
  return {ErrorFamily::Usage, errorCode, std::move(message), {}};
}

constexpr Field suiteFields[] = {{"summary", FieldKind::Text},
                                 {"ceilings", FieldKind::Flag},
                                 {"groups", FieldKind::Objects, true}};

/// Every group is a product: operators x dtypes x shapes x boundaries.
constexpr Field groupFields[] = {{"operators", FieldKind::Texts, true},
                                 {"dtypes", FieldKind::Texts, true},
                                 {"shapes", FieldKind::Objects, true},
                                 {"boundaries", FieldKind::List, true},
                                 {"settings", FieldKind::Object},
                                 {"present", FieldKind::Texts},
                                 {"variants", FieldKind::Objects}};

constexpr Field variantFields[] = {{"name", FieldKind::Text, true},
                                   {"steps", FieldKind::Objects, true}};

constexpr Field stepFields[] = {{"operator", FieldKind::Text, true},
                                {"dims", FieldKind::ObjectOfTexts, true},
                                {"arrays", FieldKind::ObjectOfTexts, true}};

constexpr Field rowFields[] = {
    {"operator", FieldKind::Text, true}, {"dtype", FieldKind::Text},
    {"dims", FieldKind::Object, true},   {"settings", FieldKind::Object},
    {"present", FieldKind::Texts},       {"boundary", FieldKind::Text},
    {"threads", FieldKind::Whole},       {"variants", FieldKind::Objects},
    {"plan", FieldKind::ObjectOfTexts},  {"vendor", FieldKind::Text}};

constexpr int maxThreads = 4096;

/// A whole number that an int64_t holds.
bool isInteger(const json &value) {
  // Comparing would make a large unsigned number a negative one.
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= uint64_t(INT64_MAX));
}

json settingsJson(const kernels::Settings &settings) {
  json result = json::object();
  for (const auto &[name, value] : settings)
    std::visit([&, &key = name](auto number) { result[key] = number; }, value);
  return result;
}

/// The operator may not exist; it may have names for values.
Result<kernels::Settings> settingsFrom(const json &values,
                                       const kernels::Operator *op) {
  kernels::Settings settings;
  auto named = [&](const std::string &name, const json &value) {
    return op && value.is_string()
               ? kernels::namedValue(*op, name, value.get<std::string>())
               : std::nullopt;
  };
  for (const auto &[name, value] : values.items()) {
    if (value.is_boolean())
      settings.emplace(name, Constant(int64_t(value.get<bool>())));
    else if (isInteger(value))
      settings.emplace(name, Constant(value.get<int64_t>()));
    else if (value.is_number_float())
      settings.emplace(name, Constant(value.get<double>()));
    else if (auto number = named(name, value))
      settings.emplace(name, Constant(*number));
    else
      return usage(fmt::format("setting '{}' is {}, expected a number", name,
                               shownValue(value)));
  }
  return settings;
}

Result<void> checkVariant(const json &variant) {
  if (Result<void> status =
          checkFields(variant, variantFields, OtherFields::AreRefused,
                      errorCode, "a variant");
      !status)
    return status;
  for (size_t i = 0; i < variant["steps"].size(); ++i)
    if (Result<void> status = checkFields(
            variant["steps"][i], stepFields, OtherFields::AreRefused, errorCode,
            fmt::format("variant '{}', steps[{}]",
                        variant["name"].get<std::string>(), i));
        !status)
      return status;
  return {};
}

bool isBoundary(const std::string &name) {
  return std::find(std::begin(boundaries), std::end(boundaries), name) !=
         std::end(boundaries);
}

/// A boundary of a group: its name and a number of threads.
bool isPlacedBoundary(const json &value) {
  return value.is_array() && value.size() == 2 && value[0].is_string() &&
         isBoundary(value[0].get<std::string>()) &&
         value[1].is_number_integer() && value[1] >= 0 &&
         value[1] <= maxThreads;
}

/// Adds the rows of a group to the suite.
Result<void> addGroup(const json &group, Suite &suite) {
  for (const json &boundary : group["boundaries"]) {
    if (!isPlacedBoundary(boundary))
      return usage(fmt::format("field 'boundaries' has {}, expected pairs of "
                               "one of {} and a number of threads, 0 to {}",
                               shownValue(boundary),
                               fmt::join(boundaries, ", "), maxThreads));
    for (const json &dtype : group["dtypes"])
      for (const json &op : group["operators"])
        for (const json &dims : group["shapes"]) {
          json entry = {{"operator", op},
                        {"dtype", dtype},
                        {"dims", dims},
                        {"boundary", boundary[0]},
                        {"threads", boundary[1]}};
          for (const char *optional : {"settings", "present", "variants"})
            if (group.contains(optional))
              entry[optional] = group[optional];
          Result<RowSpec> row = RowSpec::fromJson(entry);
          if (!row)
            return row.error();
          if (const kernels::Operator *known =
                  kernels::findOperator(row->operatorName))
            if (Result<void> status = kernels::checkDims(*known, row->dims);
                !status)
              return status;
          suite.rows.push_back(std::move(*row));
        }
  }
  return {};
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
  json row = {{"operator", operatorName}, {"dtype", name(dtype)},
              {"dims", extents},          {"settings", settingsJson(settings)},
              {"present", present},       {"boundary", boundary},
              {"threads", threads}};
  if (plan)
    row["plan"] = {{"file", plan->name}, {"text", plan->text}};
  return row;
}

Result<RowSpec> RowSpec::fromJson(const json &source) {
  if (Result<void> status = checkFields(
          source, rowFields, OtherFields::AreIgnored, errorCode, "row");
      !status)
    return status.error();
  RowSpec row;
  row.operatorName = source["operator"].get<std::string>();
  std::string type = source.value("dtype", "f32");
  std::optional<DType> dtype = parseDType(type);
  if (!dtype)
    return usage(fmt::format("operator '{}': unknown dtype '{}'",
                             row.operatorName, type));
  row.dtype = *dtype;
  for (const auto &[name, extent] : source["dims"].items()) {
    if (!isInteger(extent) || extent < 0)
      return usage(fmt::format("operator '{}': dimension '{}' is {}, expected "
                               "a whole number of at least 0",
                               row.operatorName, name, shownValue(extent)));
    row.dims.emplace(name, extent.get<int64_t>());
  }
  if (source.contains("settings")) {
    Result<kernels::Settings> settings = settingsFrom(
        source["settings"], kernels::findOperator(row.operatorName));
    if (!settings)
      return usage(fmt::format("operator '{}': {}", row.operatorName,
                               settings.error().message));
    row.settings = std::move(*settings);
  }
  row.present = source.value("present", std::vector<std::string>());
  row.boundary = source.value("boundary", "native");
  if (!isBoundary(row.boundary))
    return usage(fmt::format("operator '{}': unknown boundary '{}', expected "
                             "one of {}",
                             row.operatorName, row.boundary,
                             fmt::join(boundaries, ", ")));
  row.threads = source.value("threads", 1);
  if (source.contains("plan"))
    row.plan = PlanText{source["plan"].value("file", ""),
                        source["plan"].value("text", "")};
  if (source.contains("vendor")) {
    Result<Vendor> vendor = parseVendor(source["vendor"].get<std::string>());
    if (!vendor)
      return vendor.error();
    row.vendor = *vendor;
  }
  for (const json &variant : source.value("variants", json::array())) {
    if (Result<void> status = checkVariant(variant); !status)
      return status.error();
    // Its arm is called tessera-NAME.
    auto isTaken = [&](const std::string &name) {
      return name == "control" ||
             std::any_of(row.variants.begin(), row.variants.end(),
                         [&](const Variant &one) { return one.name == name; });
    };
    if (isTaken(variant["name"].get<std::string>()))
      return usage(fmt::format("operator '{}': variant {} is named as another "
                               "arm, expected another name",
                               row.operatorName, shownValue(variant["name"])));
    row.variants.push_back(
        {variant["name"].get<std::string>(), variant["steps"]});
  }
  return row;
}

session::RunRequest RowSpec::runRequest() const {
  session::RunRequest request;
  request.dims = dims;
  request.dtype = dtype;
  request.settings = settings;
  request.present = present;
  request.savedPlan = plan;
  request.vendor = vendor;
  request.threads = threads;
  // What a user gets who asks for nothing: indices are checked by launches, and
  // a native entry has no runtime checks.
  request.validate = boundary == "call" || boundary == "batch";
  return request;
}

Result<Suite> readSuite(const std::string &file) {
  Result<json> source = readJsonFile(file, errorCode, "suite");
  if (!source)
    return source.error();
  const std::string where = fmt::format("suite '{}'", file);
  if (Result<void> status = checkFields(
          *source, suiteFields, OtherFields::AreRefused, errorCode, where);
      !status)
    return status.error();
  Suite suite;
  suite.name = std::filesystem::path(file).stem();
  suite.summary = source->value("summary", "");
  suite.ceilings = source->value("ceilings", false);
  const json &groups = (*source)["groups"];
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string place = fmt::format("{}: groups[{}]", where, i);
    if (Result<void> status = checkFields(
            groups[i], groupFields, OtherFields::AreRefused, errorCode, place);
        !status)
      return status.error();
    if (Result<void> status = addGroup(groups[i], suite); !status)
      return usage(fmt::format("{}: {}", place, status.error().message));
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
