//===- plan_file.cpp - Saved plans ----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_file.h"

#include "driver/text.h"
#include "support/json_scan.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

using Json = nlohmann::ordered_json;

namespace tessera {

namespace {

constexpr const char *schemaName = "tessera-plan";
/// Raised when a field changes its meaning or goes away.
constexpr int64_t schemaVersion = 1;

constexpr std::pair<Keeping, const char *> keepings[] = {
    {Keeping::All, "all"},
    {Keeping::Expensive, "expensive"},
    {Keeping::Required, "required"}};
constexpr std::pair<Passes, const char *> passesNames[] = {
    {Passes::Separate, "separate"}, {Passes::Joined, "joined"}};
constexpr std::pair<AliasMode, const char *> aliases[] = {
    {AliasMode::Disjoint, "disjoint"},
    {AliasMode::InPlace, "in-place"},
    {AliasMode::Overlap, "overlap"}};
constexpr std::pair<TailForm, const char *> tails[] = {
    {TailForm::Mask, "mask"},
    {TailForm::Scalar, "scalar"},
    {TailForm::Overlap, "overlap"}};
constexpr std::pair<Prefetch, const char *> prefetches[] = {
    {Prefetch::None, "none"},
    {Prefetch::Inputs, "inputs"},
    {Prefetch::InputsAndOutputs, "inputs and outputs"}};
constexpr std::pair<Vendor, const char *> vendors[] = {
    {Vendor::None, "none"},
    {Vendor::Cblas, "cblas"},
    {Vendor::OneDnn, "onednn"}};
constexpr std::pair<Edges, const char *> edgesNames[] = {
    {Edges::Checked, "checked"}, {Edges::Apart, "apart"}};

Error usage(const std::string &file, const std::string &message) {
  return {ErrorFamily::Usage,
          "usage.plan",
          fmt::format("plan '{}': {}", file, message),
          {}};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Json nestJson(const NestPlan &nest) {
  Json entry{{"id", nest.id},
             {"computes", nest.roots},
             {"space", nest.space},
             {"vector_dimension", nullptr},
             {"vectors_per_iteration", nest.unroll},
             {"rows_per_iteration", nest.tileRows},
             {"packs_operand", nest.packedOperand >= 0},
             {"atom", nullptr},
             {"reduced_block", nest.reducedBlock},
             {"epilogue", nest.epilogue},
             {"transposes", nest.transposes},
             {"stores_around_caches", nest.storesAround},
             {"aligns_stores", nest.alignsStores},
             {"tail", name(nest.tail)}};
  if (!nest.vectorDim.empty())
    entry["vector_dimension"] = nest.vectorDim;
  if (!nest.atom.empty())
    entry["atom"] = nest.atom;
  return entry;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/false,
                                Json::error_handler_t::replace);
  return support::excerpt(text);
}

/// Reads the fields of one object. The first problem is kept and ends reading.
class Fields {
public:
  Fields(const Json &value, std::string where,
         std::vector<std::string_view> known, std::string &problem)
      : value(value), where(std::move(where)), problem(problem) {
    if (!value.is_object()) {
      refuse("", fmt::format("found {}, expected an object", shown(value)));
      return;
    }
    for (const auto &[field, content] : value.items())
      if (std::find(known.begin(), known.end(), field) == known.end())
        refuse(field, fmt::format("found an unknown field, expected one of {}",
                                  fmt::join(known, ", ")));
  }

  /// Null if it is absent.
  const Json *find(std::string_view field, bool isNeeded = false) {
    if (!value.is_object())
      return nullptr;
    auto found = value.find(field);
    if (found != value.end())
      return &*found;
    if (isNeeded)
      refuse(field, "found no such field, expected one");
    return nullptr;
  }

  std::optional<std::string> text(std::string_view field,
                                  bool isNeeded = false) {
    const Json *found = find(field, isNeeded);
    if (!found)
      return std::nullopt;
    if (found->is_string())
      return found->get<std::string>();
    refuse(field, fmt::format("found {}, expected a string", shown(*found)));
    return std::nullopt;
  }

  std::optional<int64_t> whole(std::string_view field, int64_t low,
                               bool isNeeded = false) {
    const Json *found = find(field, isNeeded);
    if (!found)
      return std::nullopt;
    bool fits = found->is_number_integer();
    if (found->is_number_unsigned())
      fits = found->get<uint64_t>() <=
             uint64_t(std::numeric_limits<int64_t>::max());
    if (fits && found->get<int64_t>() >= low)
      return found->get<int64_t>();
    refuse(field, fmt::format("found {}, expected a whole number from {}",
                              shown(*found), low));
    return std::nullopt;
  }

  double number(std::string_view field) {
    const Json *found = find(field, /*isNeeded=*/true);
    if (!found)
      return 0;
    if (found->is_number())
      return found->get<double>();
    refuse(field, fmt::format("found {}, expected a number", shown(*found)));
    return 0;
  }

  std::optional<bool> flag(std::string_view field) {
    const Json *found = find(field);
    if (!found)
      return std::nullopt;
    if (found->is_boolean())
      return found->get<bool>();
    refuse(field,
           fmt::format("found {}, expected true or false", shown(*found)));
    return std::nullopt;
  }

  template <typename Value, size_t n>
  std::optional<Value> choice(std::string_view field,
                              const std::pair<Value, const char *> (&names)[n],
                              bool isNeeded = false) {
    const Json *found = find(field, isNeeded);
    if (!found)
      return std::nullopt;
    std::vector<std::string_view> known;
    for (const auto &[value, name] : names) {
      if (found->is_string() && found->get_ref<const std::string &>() == name)
        return value;
      known.push_back(name);
    }
    refuse(field,
           fmt::format("found {}, expected {}", shown(*found), oneOf(known)));
    return std::nullopt;
  }

  /// Calls `visit` with each element of a list and its place.
  void list(std::string_view field,
            const std::function<void(const Json &, std::string)> &visit) {
    const Json *found = find(field);
    if (!found)
      return;
    if (!found->is_array())
      return refuse(field,
                    fmt::format("found {}, expected a list", shown(*found)));
    for (size_t i = 0; i < found->size() && problem.empty(); ++i)
      visit((*found)[i], fmt::format("{}[{}]", path(field), i));
  }

  void refuse(std::string_view field, const std::string &why) {
    std::string place = path(field);
    if (problem.empty())
      problem = place.empty() ? why : place + ": " + why;
  }

private:
  std::string path(std::string_view field) const {
    const std::string name = support::excerpt(field);
    return where.empty()  ? name
           : name.empty() ? where
                          : fmt::format("{}.{}", where, name);
  }

  const Json &value;
  std::string where;
  std::string &problem;
};

class Reader {
public:
  explicit Reader(std::string name) { plan.name = std::move(name); }

  Result<SavedPlan> run(const Json &json) {
    // Another version may have other fields.
    if (const Json *version =
            json.is_object() && json.contains("schema_version")
                ? &json["schema_version"]
                : nullptr;
        version && *version != schemaVersion)
      return usage(plan.name,
                   fmt::format("schema_version: found {}, expected {}",
                               shown(*version), schemaVersion));
    Fields fields(json, "",
                  {"schema", "schema_version", "kernel", "kernel_hash",
                   "target", "alias", "tunables", "extents", "tuned", "keeping",
                   "passes", "vendor", "prepacked", "stages"},
                  problem);
    if (std::optional<std::string> schema = fields.text("schema", true);
        schema && *schema != schemaName)
      fields.refuse("schema",
                    fmt::format("found \"{}\", expected \"{}\"",
                                support::excerpt(*schema), schemaName));
    fields.whole("schema_version", schemaVersion, true);
    readSubject(fields);
    if (std::optional<Keeping> keeping = fields.choice("keeping", keepings))
      plan.choices.keeping = *keeping;
    if (std::optional<Passes> passes = fields.choice("passes", passesNames))
      plan.choices.passes = *passes;
    if (std::optional<Vendor> vendor = fields.choice("vendor", vendors))
      plan.choices.vendor = *vendor;
    fields.list("prepacked", [&](const Json &name, const std::string &where) {
      if (name.is_string())
        plan.choices.prepacked.insert(name.get<std::string>());
      else if (problem.empty())
        problem =
            fmt::format("{}: found {}, expected a string", where, shown(name));
    });
    fields.list("stages", [&](const Json &stage, std::string where) {
      readStage(stage, where);
    });
    if (!problem.empty())
      return usage(plan.name, problem);
    return std::move(plan);
  }

private:
  void readSubject(Fields &fields) {
    PlanSubject &subject = plan.subject;
    subject.kernel = fields.text("kernel", true).value_or("");
    subject.hash = fields.text("kernel_hash", true).value_or("");
    subject.target = fields.text("target", true).value_or("");
    subject.alias =
        fields.choice("alias", aliases, true).value_or(AliasMode::Disjoint);
    auto readNumbers = [&](const Json &numbers, const char *where, auto &into) {
      std::vector<std::string_view> names;
      if (numbers.is_object())
        for (const auto &[name, number] : numbers.items())
          names.push_back(name);
      Fields each(numbers, where, names, problem);
      for (std::string_view name : names)
        into.emplace_back(name, each.whole(name, 0).value_or(0));
    };
    if (const Json *tunables = fields.find("tunables"))
      readNumbers(*tunables, "tunables", subject.tunables);
    if (const Json *extents = fields.find("extents", true))
      readNumbers(*extents, "extents", subject.extents);
    if (const Json *tuned = fields.find("tuned")) {
      Fields each(
          *tuned, "tuned",
          {"key", "cpu", "compiler", "chosen_seconds", "seconds", "noise"},
          problem);
      plan.tuned = TuneRecord{each.text("key", true).value_or(""),
                              each.text("cpu", true).value_or(""),
                              each.text("compiler", true).value_or(""),
                              each.number("chosen_seconds"),
                              each.number("seconds"),
                              each.number("noise")};
    }
  }

  void readStage(const Json &json, const std::string &where) {
    Fields fields(
        json, where,
        {"grid", "programs_together", "prefetch", "edges", "splits", "nests"},
        problem);
    SavedStage stage;
    stage.grid = fields.text("grid");
    stage.together = fields.whole("programs_together", 1);
    if (stage.together)
      plan.choices.together[plan.stages.size()] = *stage.together;
    stage.prefetch = fields.choice("prefetch", prefetches);
    if (stage.prefetch)
      plan.choices.prefetch[plan.stages.size()] = *stage.prefetch;
    stage.edges = fields.choice("edges", edgesNames);
    if (stage.edges)
      plan.choices.edges[plan.stages.size()] = *stage.edges;
    stage.splits = fields.whole("splits", 1);
    if (stage.splits)
      plan.choices.splits[plan.stages.size()] = *stage.splits;
    fields.list("nests", [&](const Json &nest, std::string place) {
      stage.nests.push_back(readNest(nest, place));
    });
    plan.stages.push_back(std::move(stage));
  }

  SavedNest readNest(const Json &json, const std::string &where) {
    Fields fields(json, where,
                  {"id", "computes", "space", "vector_dimension",
                   "vectors_per_iteration", "rows_per_iteration",
                   "packs_operand", "atom", "transposes",
                   "stores_around_caches", "aligns_stores", "reduced_block",
                   "epilogue", "tail"},
                  problem);
    SavedNest nest;
    nest.where = where;
    nest.id = fields.whole("id", -1, true).value_or(0);
    nest.computes = fields.text("computes");
    nest.space = fields.text("space");
    if (const Json *dim = fields.find("vector_dimension"))
      nest.choice.vectorDim =
          dim->is_null() ? "" : fields.text("vector_dimension").value_or("");
    if (const Json *atom = fields.find("atom"))
      nest.choice.atom =
          atom->is_null() ? "" : fields.text("atom").value_or("");
    nest.choice.unroll = fields.whole("vectors_per_iteration", 1);
    nest.choice.tileRows = fields.whole("rows_per_iteration", 1);
    nest.choice.packs = fields.flag("packs_operand");
    nest.choice.reducedBlock = fields.whole("reduced_block", 0);
    nest.choice.epilogue = fields.flag("epilogue");
    nest.choice.transposes = fields.flag("transposes");
    nest.choice.storesAround = fields.flag("stores_around_caches");
    nest.choice.alignsStores = fields.flag("aligns_stores");
    nest.choice.tail = fields.choice("tail", tails);
    if (!plan.choices.nests.emplace(nest.id, nest.choice).second)
      fields.refuse(
          "id", fmt::format("found nest {} twice, expected it once", nest.id));
    return nest;
  }

  SavedPlan plan;
  std::string problem;
};

} // namespace

std::string_view name(AliasMode alias) {
  for (const auto &[value, text] : aliases)
    if (value == alias)
      return text;
  return "";
}

std::string oneOf(const std::vector<std::string_view> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}'{}'",
                        i == 0                 ? ""
                        : i + 1 < names.size() ? ", "
                                               : " or ",
                        names[i]);
  return text;
}

std::string writePlan(const Plan &plan, const PlanSubject &subject,
                      const TuneRecord *tuned) {
  Json json{{"schema", schemaName},     {"schema_version", schemaVersion},
            {"kernel", subject.kernel}, {"kernel_hash", subject.hash},
            {"target", subject.target}, {"alias", name(subject.alias)},
            {"extents", Json::object()}};
  for (const auto &[tunable, value] : subject.tunables)
    json["tunables"][tunable] = value;
  for (const auto &[dim, extent] : subject.extents)
    json["extents"][dim] = extent;
  if (tuned)
    json["tuned"] = {
        {"key", tuned->key},           {"cpu", tuned->cpu},
        {"compiler", tuned->compiler}, {"chosen_seconds", tuned->chosenSeconds},
        {"seconds", tuned->seconds},   {"noise", tuned->noise}};
  json["keeping"] = name(plan.keeping);
  json["passes"] = name(plan.passes);
  if (plan.vendor)
    json["vendor"] = name(plan.vendor->library);
  for (const PrepackedPlan &packed : plan.prepacked)
    json["prepacked"].push_back(packed.name);
  json["stages"] = Json::array();
  std::set<int64_t> seen;
  for (const StagePlan &stage : plan.stages) {
    Json entry{{"grid", stage.grid},
               {"programs_together", stage.order.together},
               {"prefetch", name(stage.order.prefetch)},
               {"edges", name(stage.order.edges)},
               {"splits", stage.order.splits},
               {"nests", Json::array()}};
    for (const NestPlan &nest : stage.nests)
      if (seen.insert(nest.id).second)
        entry["nests"].push_back(nestJson(nest));
    json["stages"].push_back(std::move(entry));
  }
  // Names of a text may hold any bytes; those that are no UTF-8 are replaced.
  return json.dump(2, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

Result<PlanText> readPlanText(const std::string &path) {
  Result<std::string> text = readTextFile(path);
  if (!text)
    return text.error();
  return PlanText{path, std::move(*text)};
}

Result<SavedPlan> readPlan(const PlanText &text) {
  if (std::string problem = support::jsonProblem(text.text, "a saved plan");
      !problem.empty())
    return usage(text.name, problem);
  return Reader(text.name).run(
      Json::parse(text.text, nullptr, /*allow_exceptions=*/false));
}

} // namespace tessera
