//===- calibration.cpp - The file of what was measured here ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/calibration.h"

#include "support/atomic_file.h"
#include "support/env.h"
#include "support/hash.h"
#include "support/json_scan.h"
#include "target/machine_figures.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

namespace {

// Keys are sorted, so that equal content is equal text.
using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view schema = "tessera-calibration";
/// No file of ours comes near; what is larger is something else.
constexpr int64_t largestFile = 1 << 20;

Error unusable(const std::string &path, const std::string &what) {
  return {ErrorFamily::Usage,
          "calibration.file",
          fmt::format("the calibration file '{}' is ignored: {}; run `tessera "
                      "calibrate` again, or delete the file",
                      path, what),
          {}};
}

std::string dump(const Json &json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

/// Of everything but the hash itself.
std::string hashOf(Json document) {
  document.erase("hash");
  return support::hashBytes(dump(document, -1)).hex();
}

template <typename Owner>
Json toJson(const Owner &owner, std::span<const Figure<Owner>> figures) {
  Json json = Json::object();
  for (const Figure<Owner> &figure : figures)
    json[std::string(figure.name)] = owner.*figure.value;
  return json;
}

template <typename Owner>
void addUnits(Json &units, std::span<const Figure<Owner>> figures) {
  for (const Figure<Owner> &figure : figures)
    units[std::string(figure.name)] = figure.unit;
}

Json toJson(const Machine &machine) {
  Json json = toJson(machine, machineFigures());
  json["name"] = machine.name;
  json["provenance"] = machine.provenance;
  for (size_t i = 0; i < machine.memory.size(); ++i) {
    Json level = toJson(machine.memory[i], levelFigures());
    level["bytes"] = machine.memory[i].bytes;
    json["memory"][std::string(levelNames[i])] = level;
  }
  for (size_t i = 0; i < machine.core.size(); ++i)
    json["core"][std::string(widthNames[i])] =
        toJson(machine.core[i], coreFigures());
  return json;
}

/// Reads a document field by field; the first that is missing or of another
/// kind is kept as `problem`.
class Reader {
public:
  std::string problem;

  const Json &field(const Json &owner, std::string_view name) {
    static const Json nothing;
    auto found =
        owner.is_object() ? owner.find(std::string(name)) : owner.end();
    if (owner.is_object() && found != owner.end())
      return *found;
    fail(name, "missing");
    return nothing;
  }

  std::string text(const Json &owner, std::string_view name) {
    const Json &json = field(owner, name);
    if (json.is_string())
      return json.get<std::string>();
    fail(name, "no text");
    return {};
  }

  int64_t whole(const Json &owner, std::string_view name) {
    const Json &json = field(owner, name);
    if (json.is_number_integer())
      return json.get<int64_t>();
    fail(name, "no whole number");
    return 0;
  }

  template <typename Owner>
  void figures(const Json &json, std::span<const Figure<Owner>> figures,
               Owner &owner) {
    for (const Figure<Owner> &figure : figures) {
      const Json &number = field(json, figure.name);
      if (number.is_number())
        owner.*figure.value = number.get<double>();
      else
        fail(figure.name, "no number");
    }
  }

private:
  void fail(std::string_view name, std::string_view what) {
    if (problem.empty())
      problem = fmt::format("its field '{}' is {}", name, what);
  }
};

Machine readMachine(const Json &json, Reader &reader) {
  Machine machine;
  machine.name = reader.text(json, "name");
  machine.provenance = reader.text(json, "provenance");
  reader.figures(json, machineFigures(), machine);
  const Json &memory = reader.field(json, "memory");
  for (size_t i = 0; i < machine.memory.size(); ++i) {
    const Json &level = reader.field(memory, levelNames[i]);
    machine.memory[i].bytes = reader.whole(level, "bytes");
    reader.figures(level, levelFigures(), machine.memory[i]);
  }
  const Json &core = reader.field(json, "core");
  for (size_t i = 0; i < machine.core.size(); ++i)
    reader.figures(reader.field(core, widthNames[i]), coreFigures(),
                   machine.core[i]);
  return machine;
}

/// The content of a regular file of reasonable size. Nothing when there is
/// none; waits for no pipe.
Result<std::optional<std::string>> readWhole(const std::string &path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return std::optional<std::string>();
    return unusable(
        path, fmt::format("it cannot be read ({})", std::strerror(errno)));
  }
  struct stat status = {};
  std::string text;
  std::string problem;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    problem = "it is no regular file";
  else if (status.st_size > largestFile)
    problem = fmt::format("it has {} bytes, expected at most {}",
                          status.st_size, largestFile);
  char chunk[4096];
  while (problem.empty()) {
    ssize_t size = ::read(file, chunk, sizeof chunk);
    if (size < 0)
      problem = fmt::format("it cannot be read ({})", std::strerror(errno));
    if (size <= 0)
      break;
    text.append(chunk, static_cast<size_t>(size));
  }
  ::close(file);
  if (!problem.empty())
    return unusable(path, problem);
  return std::optional<std::string>(std::move(text));
}

} // namespace

std::string calibrationPath() {
  if (std::optional<std::string> set =
          support::envText(support::EnvVariable::Calibration))
    return *set == "off" ? std::string() : *set;
  const char *folder = std::getenv("XDG_CONFIG_HOME");
  const char *home = std::getenv("HOME");
  // A relative folder counts as none (XDG base directory specification).
  if (folder && folder[0] == '/')
    return fmt::format("{}/tessera/calibration.json", folder);
  if (home && *home)
    return fmt::format("{}/.config/tessera/calibration.json", home);
  return {};
}

std::string calibrationText(const Calibration &calibration) {
  const Processor &processor = calibration.processor;
  Json document = {{"schema", schema},
                   {"schemaVersion", calibrationVersion},
                   {"measured", calibration.measured},
                   {"processor",
                    {{"vendor", processor.vendor},
                     {"family", processor.family},
                     {"model", processor.model},
                     {"stepping", processor.stepping},
                     {"name", processor.name}}},
                   {"machine", toJson(calibration.machine)}};
  Json units = {{"bytes", "bytes"}};
  addUnits(units, levelFigures());
  addUnits(units, coreFigures());
  addUnits(units, machineFigures());
  document["units"] = units;
  document["hash"] = hashOf(document);
  return dump(document, 2) + "\n";
}

Result<void> writeCalibration(const std::string &path,
                              const Calibration &calibration) {
  if (std::string wrong = implausibleFigure(calibration.machine);
      !wrong.empty())
    return Error{ErrorFamily::Internal,
                 "calibration.figure",
                 "what was measured cannot be: " + wrong,
                 {}};
  std::error_code code;
  if (fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, code);
  Result<support::AtomicFile> file = support::AtomicFile::create(path);
  if (!file)
    return file.error();
  const std::string text = calibrationText(calibration);
  if (Result<void> status = file->write(text.data(), text.size()); !status)
    return status;
  return file->commit();
}

Result<std::optional<Calibration>> readCalibration(const std::string &path,
                                                   const Processor &processor) {
  Result<std::optional<std::string>> text = readWhole(path);
  if (!text)
    return text.error();
  if (!text->has_value())
    return std::optional<Calibration>();

  if (std::string problem = support::jsonProblem(**text, "a calibration");
      !problem.empty())
    return unusable(path, "it is damaged or cut off: " + problem);
  const Json document = Json::parse(**text);
  Reader reader;
  if (reader.text(document, "schema") != schema)
    return unusable(path, fmt::format("it is no calibration (expected the "
                                      "field 'schema' to be '{}')",
                                      schema));
  if (int64_t version = reader.whole(document, "schemaVersion");
      !reader.problem.empty() || version != calibrationVersion)
    return unusable(path, fmt::format("it has version {}, this build of "
                                      "Tessera reads version {}",
                                      version, calibrationVersion));
  if (reader.text(document, "hash") != hashOf(document))
    return unusable(path, "its hash does not match its content, so it was "
                          "edited or damaged");

  Calibration calibration;
  const Json &who = reader.field(document, "processor");
  calibration.processor = {
      .vendor = reader.text(who, "vendor"),
      .family = static_cast<int>(reader.whole(who, "family")),
      .model = static_cast<int>(reader.whole(who, "model")),
      .stepping = static_cast<int>(reader.whole(who, "stepping")),
      .name = reader.text(who, "name")};
  calibration.measured = reader.text(document, "measured");
  calibration.machine = readMachine(reader.field(document, "machine"), reader);
  if (!reader.problem.empty())
    return unusable(path, reader.problem);
  if (calibration.processor != processor)
    return unusable(
        path, fmt::format("it was measured on {}, and this is {}",
                          support::excerpt(calibration.processor.str(), 200),
                          processor.str()));
  if (std::string wrong = implausibleFigure(calibration.machine);
      !wrong.empty())
    return unusable(path, wrong);
  return std::optional<Calibration>(std::move(calibration));
}

} // namespace tessera
