//===- command_line.cpp - What the verbs of `tessera` share ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"

#include "driver/plan_file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

namespace tessera::cli {

namespace {

Error usage(std::string code, std::string message) {
  return {ErrorFamily::Usage, "usage." + code, std::move(message), {}};
}

/// "name=value" split at the first equals sign; `value` is empty and `hasValue`
/// false without one.
struct Assignment {
  std::string name;
  std::string value;
  bool hasValue = false;
};

Assignment splitAssignment(const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos)
    return {text, "", false};
  return {text.substr(0, equals), text.substr(equals + 1), true};
}

/// The assignments of one option, with duplicates and empty names refused.
Result<std::vector<Assignment>>
assignments(std::string_view option, const std::vector<std::string> &texts,
            bool needValue) {
  std::vector<Assignment> result;
  std::set<std::string> seen;
  for (const std::string &text : texts) {
    Assignment assignment = splitAssignment(text);
    if (assignment.name.empty() || (needValue && !assignment.hasValue) ||
        (assignment.hasValue && assignment.value.empty()))
      return usage("option", fmt::format("{}: found '{}', expected NAME=VALUE",
                                         option, text));
    if (!seen.insert(assignment.name).second)
      return usage("duplicate", fmt::format("{}: '{}' is given twice", option,
                                            assignment.name));
    result.push_back(std::move(assignment));
  }
  return result;
}

template <typename Number>
std::optional<Number> parseNumber(const std::string &text) {
  Number number{};
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// ", or one of none, relu" for a constant whose values have names.
std::string describeNames(const kernels::Operator *op,
                          const std::string &constant) {
  const kernels::ConstantRange *range =
      op ? kernels::findRange(*op, constant) : nullptr;
  if (!range || range->names.empty())
    return {};
  return fmt::format(", or one of {}", fmt::join(range->names, ", "));
}

/// The operator, if there is one, may have names for values.
Result<kernels::Settings> parseSettings(const std::vector<std::string> &texts,
                                        const kernels::Operator *op) {
  Result<std::vector<Assignment>> parsed = assignments("--set", texts, true);
  if (!parsed)
    return parsed.error();
  kernels::Settings settings;
  for (const Assignment &setting : *parsed) {
    if (setting.value == "true" || setting.value == "false")
      settings.emplace(setting.name, setting.value == "true");
    else if (auto integer = parseNumber<int64_t>(setting.value))
      settings.emplace(setting.name, *integer);
    else if (auto number = parseNumber<double>(setting.value))
      settings.emplace(setting.name, *number);
    else if (auto named =
                 op ? kernels::namedValue(*op, setting.name, setting.value)
                    : std::nullopt)
      settings.emplace(setting.name, *named);
    else
      return usage("set",
                   fmt::format("--set {}={}: expected a number, true or false"
                               "{}",
                               setting.name, setting.value,
                               describeNames(op, setting.name)));
  }
  return settings;
}

Result<Tier> parseTier(const std::string &text) {
  if (text == "strict")
    return Tier::Strict;
  if (text == "default")
    return Tier::Default;
  if (text == "fast")
    return Tier::Fast;
  return usage(
      "tier", fmt::format("--tier {}: expected strict, default or fast", text));
}

Result<session::Backend> parseTarget(const std::string &text, bool interprets) {
  if (text == "cpu")
    return session::Backend::Cpu;
  if (text == "interp" && interprets)
    return session::Backend::Interpreter;
  const char *known = interprets ? "cpu or interp" : "cpu";
  if (text == "cuda" || text == "metal")
    return Error{ErrorFamily::Unsupported,
                 "unsupported.target",
                 fmt::format("--target {}: this build generates code for CPUs "
                             "only; use {}",
                             text, known),
                 {}};
  if (text == "interp")
    return usage("target", "--target interp: the interpreter runs kernels and "
                           "compiles none, expected cpu; see tessera run");
  return usage("target", fmt::format("--target {}: expected {}", text, known));
}

/// Edit distance, for "did you mean".
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min(
          {row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

Error unknownOperator(const std::string &what) {
  return usage("operator",
               fmt::format("{}; see tessera list, or give a file FILE.mlir",
                           describeUnknownOperator(what)));
}

/// A parameter's name, dtype and direction, before anything is compiled.
struct ArrayName {
  std::string name;
  DType dtype;
  bool writable;
  bool optional;
};

std::vector<ArrayName> arrayNames(const Subject &subject) {
  std::vector<ArrayName> result;
  if (subject.program) {
    for (const ProgramParameter &parameter : subject.program->parameters())
      if (parameter.isView)
        result.push_back(
            {parameter.name, parameter.dtype, parameter.writable, false});
    return result;
  }
  Kernel kernel = subject.op->kernel();
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.kind == ParameterInfo::Kind::View)
      result.push_back({parameter.name,
                        parameter.dtype.value_or(subject.request.dtype),
                        parameter.writable, parameter.optional});
  return result;
}

std::string namesOf(const std::vector<ArrayName> &arrays, bool writable) {
  std::string text;
  for (const ArrayName &array : arrays)
    if (array.writable == writable)
      text += (text.empty() ? "" : ", ") + array.name;
  return text.empty() ? "none" : text;
}

const ArrayName *findName(const std::vector<ArrayName> &arrays,
                          const std::string &name) {
  for (const ArrayName &array : arrays)
    if (array.name == name)
      return &array;
  return nullptr;
}

Result<void> readInputs(const CommonOptions &options, Subject &subject,
                        const std::vector<ArrayName> &arrays) {
  Result<std::vector<Assignment>> inputs =
      assignments("--input", options.inputs, false);
  if (!inputs)
    return inputs.error();
  for (const Assignment &input : *inputs) {
    const ArrayName *array = findName(arrays, input.name);
    if (!array || (array->writable && subject.op))
      return usage("input",
                   fmt::format("--input {}: '{}' has no input '{}', expected "
                               "one of: {}",
                               input.name, options.what, input.name,
                               namesOf(arrays, false)));
    if (!input.hasValue) {
      if (array->optional)
        subject.request.present.push_back(input.name);
      continue;
    }
    Result<Array> read = readNpy(input.value, array->dtype);
    if (!read) {
      Error error = read.error();
      error.message = fmt::format("--input {}: {}", input.name, error.message);
      return error;
    }
    subject.request.inputFiles.emplace(input.name, input.value);
    subject.arrays.push_back(std::make_unique<Array>(std::move(*read)));
    subject.request.inputs.emplace(input.name, subject.arrays.back()->view());
  }
  return {};
}

Result<void> readOutputs(const CommonOptions &options, Subject &subject,
                         const std::vector<ArrayName> &arrays, bool isWritten,
                         OutputPaths &paths) {
  Result<std::vector<Assignment>> outputs =
      assignments("--output", options.outputs, false);
  if (!outputs)
    return outputs.error();
  for (const Assignment &output : *outputs) {
    const ArrayName *array = findName(arrays, output.name);
    if (!array || !array->writable)
      return usage("output",
                   fmt::format("--output {}: '{}' has no output '{}', expected "
                               "one of: {}",
                               output.name, options.what, output.name,
                               namesOf(arrays, true)));
    if (array->optional)
      subject.request.present.push_back(output.name);
    if (!output.hasValue)
      continue;
    if (!isWritten)
      return usage("output",
                   fmt::format("--output {}={}: no array is written by this "
                               "verb, expected --output {}",
                               output.name, output.value, output.name));
    if (output.value == "-")
      return usage("output",
                   fmt::format("--output {}=-: expected a file, arrays are not "
                               "written to standard output",
                               output.name));
    if (Result<void> status = paths.take(
            output.value, "--output " + output.name, Dash::IsRefused);
        !status)
      return status.error();
    subject.outputFiles.emplace_back(output.name, output.value);
  }
  return {};
}

} // namespace

std::string describeUnknownOperator(const std::string &what) {
  std::string_view best;
  size_t bestDistance = 4;
  for (const kernels::Operator &op : kernels::operators())
    if (size_t d = distance(what, op.name); d < bestDistance) {
      bestDistance = d;
      best = op.name;
    }
  return fmt::format("unknown operator '{}'{}", what,
                     best.empty() ? ""
                                  : fmt::format(", did you mean '{}'", best));
}

Result<kernels::Dims> parseDims(const std::vector<std::string> &texts) {
  Result<std::vector<std::string>> entries = splitList("--dims", texts);
  if (!entries)
    return entries.error();
  Result<std::vector<Assignment>> parsed =
      assignments("--dims", *entries, true);
  if (!parsed)
    return parsed.error();
  kernels::Dims dims;
  for (const Assignment &dim : *parsed) {
    Result<uint64_t> extent =
        parseWhole(fmt::format("--dims {}={}", dim.name, dim.value), dim.value,
                   0, std::numeric_limits<int64_t>::max());
    if (!extent)
      return extent.error();
    dims.emplace(dim.name, static_cast<int64_t>(*extent));
  }
  return dims;
}

void addCommonOptions(CLI::App &verb, CommonOptions &options) {
  verb.add_option("what", options.what,
                  "an operator (tessera list) or a file of Tile IR, FILE.mlir")
      ->type_name("OP|FILE.mlir")
      ->required();
  verb.add_option("--dims", options.dims,
                  "extents of dimensions; what arrays imply may be left out, "
                  "without any an operator has default extents")
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
  verb.add_option("--dtype", options.dtype,
                  "storage type of an operator's floating arrays (default f32)")
      ->type_name("f32|f64|f16|bf16");
  verb.add_option("--input", options.inputs,
                  "an array from a file; without FILE, an optional input that "
                  "is generated. Repeat for several")
      ->type_name("NAME[=FILE.npy]")
      ->allow_extra_args(false);
  verb.add_option("--output", options.outputs,
                  "where an output goes; without FILE, an optional output that "
                  "is computed. Repeat for several")
      ->type_name("NAME[=FILE.npy]")
      ->allow_extra_args(false);
  verb.add_option("--set", options.settings,
                  "the value of a scalar or constant. Repeat for several")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb.add_option("--tier", options.tier,
                  "numeric tier: strict, default or fast (docs/semantics.md); "
                  "absent, default or what the file says")
      ->type_name("TIER");
  verb.add_option("--isa", options.isa,
                  "instruction set: native, x86-64, avx2, avx512, avx512-vnni, "
                  "avx512-bf16, avx512-amx or neon")
      ->type_name("ISA")
      ->capture_default_str();
  verb.add_option("--kernel", options.kernel,
                  "the kernel to take from a file that holds several")
      ->type_name("NAME");
  verb.add_option("--json", options.json,
                  "write the execution report (docs/report.md); - for standard "
                  "output")
      ->type_name("FILE");
}

void addCompileOnlyOptions(CLI::App &verb, CommonOptions &options,
                           const std::string &validateHelp) {
  addCommonOptions(verb, options);
  verb.remove_option(verb.get_option("--output"));
  verb.add_option("--output", options.outputs,
                  "an optional output that is computed. Repeat for several")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb.add_option("--target", options.target, "cpu")
      ->type_name("cpu")
      ->capture_default_str();
  verb.add_flag("--validate,!--no-validate", options.validate, validateHelp);
}

Result<uint64_t> parseWhole(std::string_view option, const std::string &text,
                            uint64_t low, uint64_t high) {
  std::optional<uint64_t> number = parseNumber<uint64_t>(text);
  if (number && *number >= low && *number <= high)
    return *number;
  std::string name(option);
  if (!name.ends_with(text))
    name += " " + text;
  return usage("number",
               fmt::format("{}: expected a whole number in decimal digits, {} "
                           "to {}",
                           name, low, high));
}

Result<double> parseDecimal(std::string_view option, const std::string &text,
                            double low, double high) {
  std::optional<double> number = parseNumber<double>(text);
  if (number && *number >= low && *number <= high)
    return *number;
  return usage("number", fmt::format("{} {}: expected a decimal number, {} to "
                                     "{}",
                                     option, text, low, high));
}

Result<std::vector<std::string>>
splitList(std::string_view option, const std::vector<std::string> &texts) {
  std::vector<std::string> entries;
  for (const std::string &text : texts)
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      std::string_view entry(text.data() + begin, end - begin);
      entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
      entry.remove_suffix(entry.size() - 1 - entry.find_last_not_of(' '));
      if (entry.empty())
        return usage("option", fmt::format("{}: found '{}' with an empty "
                                           "entry, expected entries with one "
                                           "comma between them",
                                           option, text));
      entries.emplace_back(entry);
      begin = end + 1;
    }
  return entries;
}

Result<Subject> makeSubject(const CommonOptions &options,
                            const SubjectOptions &how) {
  Subject subject;
  session::RunRequest &request = subject.request;

  Result<session::Backend> backend =
      parseTarget(options.target, how.writesArrays);
  if (!backend)
    return backend.error();
  request.backend = *backend;
  if (!options.tier.empty()) {
    Result<Tier> tier = parseTier(options.tier);
    if (!tier)
      return tier.error();
    request.tier = *tier;
  }
  Result<Isa> isa = parseIsa(options.isa, how.compileOnly);
  if (!isa) {
    Error error = isa.error();
    error.message = "--isa: " + error.message;
    return error;
  }
  request.isa = *isa;
  request.validate = options.validate;
  if (!options.threads.empty()) {
    Result<uint64_t> threads =
        parseWhole("--threads", options.threads, 1, 4096);
    if (!threads)
      return threads.error();
    request.threads = static_cast<int>(*threads);
  }
  Result<kernels::Dims> dims = parseDims(options.dims);
  if (!dims)
    return dims.error();
  request.dims = std::move(*dims);
  subject.op = kernels::findOperator(options.what);
  Result<kernels::Settings> settings =
      parseSettings(options.settings, subject.op);
  if (!settings)
    return settings.error();
  request.settings = std::move(*settings);
  OutputPaths paths;
  for (const auto &[path, option] : how.files)
    if (Result<void> status = paths.take(path, option, Dash::IsStandardOutput);
        !status)
      return status.error();
  for (const auto &[path, option] :
       {std::pair(options.json, "--json"), {options.savePlan, "--save-plan"}})
    if (!path.empty())
      if (Result<void> status =
              paths.take(path, option, Dash::IsStandardOutput);
          !status)
        return status.error();
  bool hasPlan = !options.plan.empty() || !options.savePlan.empty();
  if (hasPlan && *backend == session::Backend::Interpreter)
    return usage("plan",
                 fmt::format("{}: the interpreter has no plan, "
                             "expected --target cpu",
                             options.plan.empty() ? "--save-plan" : "--plan"));
  request.prepacked = options.prepacked;
  if (!options.prepacked.empty() && *backend == session::Backend::Interpreter)
    return usage("prepacked", "--prepacked: the interpreter packs nothing, "
                              "expected --target cpu");
  if (!options.vendor.empty()) {
    Result<Vendor> vendor = parseVendor(options.vendor);
    if (!vendor) {
      Error error = vendor.error();
      error.message = "--vendor: " + error.message;
      return error;
    }
    if (*vendor != Vendor::None && *backend == session::Backend::Interpreter)
      return usage("vendor", "--vendor: the interpreter calls no library, "
                             "expected --target cpu");
    request.vendor = *vendor;
  }
  if (!options.plan.empty()) {
    Result<PlanText> plan = readPlanText(options.plan);
    if (!plan) {
      Error error = plan.error();
      error.message = "--plan: " + error.message;
      return error;
    }
    request.savedPlan = std::move(*plan);
  }

  bool isFile = !subject.op && (options.what.ends_with(".mlir") ||
                                options.what.find('/') != std::string::npos);
  if (!subject.op && !isFile)
    return unknownOperator(options.what);
  if (subject.op && !options.kernel.empty())
    return usage("kernel", fmt::format("--kernel {}: expected a file, '{}' is "
                                       "an operator",
                                       options.kernel, options.what));
  if (isFile) {
    if (!options.dtype.empty())
      return usage("dtype", fmt::format("--dtype {}: expected an operator; the "
                                        "kernel of '{}' has its own types",
                                        options.dtype, options.what));
    Result<Program> program = Program::fromFile(options.what, options.kernel);
    if (!program)
      return program.error();
    subject.program.emplace(std::move(*program));
  } else if (!options.dtype.empty()) {
    std::optional<DType> dtype = parseDType(options.dtype);
    if (!dtype)
      return usage("dtype", fmt::format("--dtype {}: unknown type, expected "
                                        "f32, f64, f16 or bf16",
                                        options.dtype));
    request.dtype = *dtype;
  }

  std::vector<ArrayName> arrays = arrayNames(subject);
  if (Result<void> status = readInputs(options, subject, arrays); !status)
    return status.error();
  if (Result<void> status =
          readOutputs(options, subject, arrays, how.writesArrays, paths);
      !status)
    return status.error();
  return subject;
}

Result<session::CompiledOperator> Subject::prepare() {
  if (op)
    return session::CompiledOperator::create(*op, request);
  return session::CompiledOperator::create(std::move(*program), request);
}

Result<session::Compilation> Subject::compile(session::Assume assume) {
  if (op)
    return session::compileOperator(*op, request, assume);
  return session::compileProgram(std::move(*program), request, assume);
}

Result<void> writeReport(const CommonOptions &options,
                         const std::string &text) {
  if (options.json.empty())
    return {};
  return writeFile(options.json, text + "\n", "--json");
}

Result<void> writePlanFile(const CommonOptions &options,
                           const CompiledKernel &kernel) {
  if (options.savePlan.empty())
    return {};
  return writeFile(options.savePlan, writePlan(*kernel.plan, *kernel.subject),
                   "--save-plan");
}

int report(const Error &error, const std::string &file) {
  // Positions of library sources say nothing to a user of the command line,
  // those of the file do.
  Error shown = error;
  bool isCall =
      shown.family == ErrorFamily::Launch || shown.family == ErrorFamily::Usage;
  if (isCall && (file.empty() || shown.where.file != file))
    shown.where = {};
  printError("tessera: {}\n", shown.str());
  return exitCode(error.family);
}

std::string shapeText(const std::vector<int64_t> &extents) {
  return extents.empty() ? "scalar"
                         : fmt::format("{}", fmt::join(extents, "x"));
}

} // namespace tessera::cli
