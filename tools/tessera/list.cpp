//===- list.cpp - tessera list --------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

using Json = nlohmann::ordered_json;

namespace tessera::cli {

namespace {

std::string constantText(const Constant &value) {
  if (const bool *flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (const int64_t *integer = std::get_if<int64_t>(&value))
    return std::to_string(*integer);
  return fmt::format("{:g}", std::get<double>(value));
}

/// "x[rows, cols]", with "?" after an optional one.
std::string arrayText(const kernels::Operator &op,
                      const ParameterInfo &parameter) {
  const kernels::ArrayInfo *array = kernels::findArray(op, parameter.name);
  std::string text = parameter.name;
  if (array)
    text += fmt::format("[{}]", fmt::join(array->axes, ","));
  if (parameter.dtype)
    text += fmt::format(" {}", name(*parameter.dtype));
  return parameter.optional ? text + " (optional)" : text;
}

void printOperator(const kernels::Operator &op) {
  Kernel kernel = op.kernel();
  std::string inputs, outputs, scalars, dims;
  auto append = [](std::string &list, const std::string &entry) {
    list += (list.empty() ? "" : ", ") + entry;
  };
  for (size_t i = 0; i < op.dims.size(); ++i)
    append(dims, fmt::format("{}={}", op.dims[i], op.defaultExtents[i]));
  for (const ParameterInfo &parameter : kernel.parameters()) {
    const kernels::ConstantRange *range =
        kernels::findRange(op, parameter.name);
    if (parameter.kind == ParameterInfo::Kind::View)
      append(parameter.writable ? outputs : inputs, arrayText(op, parameter));
    else if (range && !range->names.empty())
      append(scalars, fmt::format("{}={}", parameter.name,
                                  fmt::join(range->names, "|")));
    else
      append(scalars,
             parameter.name +
                 (parameter.defaultValue
                      ? "=" + constantText(*parameter.defaultValue)
                      : std::string(parameter.optional ? " (optional)" : "")));
  }
  std::vector<std::string_view> dtypes;
  for (DType dtype : op.dtypes)
    dtypes.push_back(name(dtype));
  fmt::print("{:<20} {}\n", op.name, op.summary);
  fmt::print("    dims    {}\n    inputs  {}\n    outputs {}\n", dims, inputs,
             outputs);
  if (!scalars.empty())
    fmt::print("    scalars {}\n", scalars);
  fmt::print("    dtypes  {}; targets cpu, interp\n", fmt::join(dtypes, ", "));
}

Json operatorJson(const kernels::Operator &op) {
  Kernel kernel = op.kernel();
  Json json{{"name", op.name}, {"summary", op.summary}};
  for (size_t i = 0; i < op.dims.size(); ++i)
    json["dims"].push_back(
        {{"name", op.dims[i]}, {"default", op.defaultExtents[i]}});
  json["inputs"] = json["outputs"] = json["scalars"] = Json::array();
  for (const ParameterInfo &parameter : kernel.parameters()) {
    Json entry{{"name", parameter.name}, {"optional", parameter.optional}};
    entry["dtype"] = parameter.dtype ? Json(name(*parameter.dtype)) : Json();
    if (parameter.kind == ParameterInfo::Kind::View) {
      if (const auto *array = kernels::findArray(op, parameter.name))
        entry["axes"] = array->axes;
      json[parameter.writable ? "outputs" : "inputs"].push_back(entry);
      continue;
    }
    entry["default"] = nullptr;
    if (parameter.defaultValue)
      std::visit([&](auto value) { entry["default"] = value; },
                 *parameter.defaultValue);
    entry["constant"] = parameter.kind == ParameterInfo::Kind::Constant;
    if (const auto *range = kernels::findRange(op, parameter.name);
        range && !range->names.empty())
      entry["names"] = range->names;
    json["scalars"].push_back(entry);
  }
  for (DType dtype : op.dtypes)
    json["dtypes"].push_back(name(dtype));
  json["targets"] = {"cpu", "interp"};
  return json;
}

} // namespace

Action addList(CLI::App &app) {
  auto json = std::make_shared<std::string>();
  CLI::App *verb = app.add_subcommand(
      "list", "operators, their dimensions, arrays, types and targets");
  verb->add_option("--json", *json,
                   "write the table as JSON; - for standard "
                   "output")
      ->type_name("FILE");
  verb->footer("Example:\n  tessera list --json - | python3 -m json.tool");
  return [json] {
    if (!json->empty())
      if (Result<void> status =
              OutputPaths().take(*json, "--json", Dash::IsStandardOutput);
          !status)
        return report(status.error());
    if (json->empty()) {
      for (const kernels::Operator &op : kernels::operators())
        printOperator(op);
      return 0;
    }
    Json all = Json::array();
    for (const kernels::Operator &op : kernels::operators())
      all.push_back(operatorJson(op));
    Result<void> status =
        writeFile(*json, Json{{"schema", 1}, {"operators", all}}.dump(2) + "\n",
                  "--json");
    return status ? 0 : report(status.error());
  };
}

} // namespace tessera::cli
