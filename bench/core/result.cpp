//===- bench/core/result.cpp - Result files -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/result.h"

#include "bench/core/fields.h"
#include "bench/core/statistics.h"
#include "fmt/format.h"
#include "support/atomic_file.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

namespace tessera::bench {

using nlohmann::json;

namespace {

Error usage(std::string message) {
  return {ErrorFamily::Usage, "bench.result", std::move(message), {}};
}

/// The text of an object with its digest as the last member.
std::string sealed(const json &object) {
  std::string text = object.dump();
  return text.substr(0, text.size() - 1) + ",\"digest\":\"" + digestOf(text) +
         "\"}\n";
}

/// A row of a partial file; nothing where the line was cut off or is another
/// than was written.
std::optional<json> rowOf(const std::string &line) {
  json row = parseJson(line);
  if (!row.is_object() || !row.contains("digest") || !row.contains("id"))
    return std::nullopt;
  json digest = std::move(row["digest"]);
  row.erase("digest");
  if (digest != digestOf(row.dump()) || !row["id"].is_string())
    return std::nullopt;
  return row;
}

std::vector<double> roundMedians(const json &arm) {
  std::vector<double> medians;
  auto inner = arm.at("inner").get<double>();
  for (const json &round : arm.at("samples"))
    medians.push_back(median(round.get<std::vector<double>>()) / inner);
  return medians;
}

std::vector<double> ratiosOf(const std::vector<double> &over,
                             const std::vector<double> &under) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(over.size(), under.size()); ++i)
    ratios.push_back(over[i] / under[i]);
  return ratios;
}

} // namespace

std::string digestOf(const std::string &text) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(text));
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
}

void summarizeRow(json &row) {
  std::string id = row.at("id");
  const json *subject = nullptr;
  std::vector<double> subjectMedians;
  double floor = row.at("floor").at("nanoseconds");
  for (json &arm : row["arms"]) {
    if (arm.at("status") != "ok" && arm.at("status") != "wrong")
      continue;
    std::vector<double> medians = roundMedians(arm);
    arm["statistics"] = {{"roundMedians", medians},
                         {"median", median(medians)},
                         {"low", quantile(medians, 0.1)},
                         {"high", quantile(medians, 0.9)}};
    if (arm.at("role") == "subject" && arm.at("status") == "ok") {
      subject = &arm;
      subjectMedians = std::move(medians);
    }
  }
  row["comparisons"] = json::array();
  row["noise"] = {{"ratios", json::array()}, {"median", 0.0}, {"p90", 0.0}};
  json verdict = {{"bestPeer", ""},
                  {"ratio", 0.0},
                  {"overFloor", 0.0},
                  {"result", subject ? "alone"
                             : row.at("status") == "not implemented"
                                 ? "not implemented"
                                 : "failed"}};
  double bestTime = 0;
  for (const json &arm : row["arms"]) {
    if (!subject || arm.at("status") != "ok" || arm.at("role") == "subject")
      continue;
    std::vector<double> ratios = ratiosOf(
        subjectMedians,
        arm.at("statistics").at("roundMedians").get<std::vector<double>>());
    if (arm.at("role") == "control") {
      row["noise"] = {{"ratios", ratios},
                      {"median", median(ratios)},
                      {"p90", noiseOf(ratios)}};
      continue;
    }
    std::string name = arm.at("name");
    Interval interval = bootstrapMedian(ratios, id + "/" + name);
    row["comparisons"].push_back({{"arm", name},
                                  {"ratios", ratios},
                                  {"median", median(ratios)},
                                  {"low", interval.low},
                                  {"high", interval.high},
                                  {"min", quantile(ratios, 0)},
                                  {"max", quantile(ratios, 1)}});
    // Another way through our own kernels is no peer.
    if (arm.at("role") != "peer")
      continue;
    double time = arm.at("statistics").at("median");
    if (bestTime == 0 || time < bestTime) {
      bestTime = time;
      verdict["bestPeer"] = name;
      verdict["ratio"] = median(ratios);
    }
  }
  if (subject && floor > 0)
    verdict["overFloor"] =
        subject->at("statistics").at("median").get<double>() / floor;
  if (bestTime > 0) {
    double ratio = verdict["ratio"];
    bool isNoise = std::abs(ratio - 1) <= row["noise"]["p90"].get<double>();
    verdict["result"] = isNoise ? "level" : ratio < 1 ? "ahead" : "behind";
  }
  row["verdict"] = verdict;
}

Result<void> writeResult(const std::string &file, const json &document) {
  std::string whole = sealed(document);
  Result<support::AtomicFile> out = support::AtomicFile::create(file);
  if (!out)
    return out.error();
  if (Result<void> status = out->write(whole.data(), whole.size()); !status)
    return status.error();
  return out->commit();
}

Result<PartialResult> PartialResult::open(const std::string &file,
                                          const json &settings, Resume how) {
  PartialResult partial;
  partial.file = file + ".partial";
  partial.first = settings;
  int create = how == Resume::Finish ? 0 : O_CREAT;
  int descriptor =
      ::open(partial.file.c_str(), O_RDWR | create | O_CLOEXEC, 0644);
  if (descriptor < 0 && how == Resume::Finish)
    return usage(fmt::format("cannot read '{}': {}; expected what an "
                             "interrupted run left",
                             partial.file, std::strerror(errno)));
  if (descriptor < 0)
    return usage(fmt::format("cannot write '{}': {}", partial.file,
                             std::strerror(errno)));
  // A deleter is given the pointer, here the descriptor plus one.
  partial.lock.reset(
      reinterpret_cast<void *>(intptr_t{descriptor} + 1), [](void *held) {
        close(static_cast<int>(reinterpret_cast<intptr_t>(held) - 1));
      });
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    return usage(fmt::format("another run writes '{}'; wait for it, or choose "
                             "another --json",
                             partial.file));
  std::ifstream stream(partial.file);
  std::string line;
  bool isNew = true, endsWhole = true;
  if (how != Resume::Restart && stream && std::getline(stream, line)) {
    isNew = false;
    endsWhole = !stream.eof();
    json first = parseJson(line);
    if (!first.is_object())
      return usage(fmt::format(
          "'{}' does not begin with the settings of a run, expected what an "
          "interrupted run left; remove it, or begin anew with --restart",
          partial.file));
    json expected = settings, found = first;
    // When it began and what it is called may differ.
    for (json *either : {&expected, &found})
      either->erase("started");
    if (how == Resume::Finish)
      for (json *either : {&expected, &found})
        *either = either->value("/run/rowIds"_json_pointer, json());
    if (found != expected)
      return usage(fmt::format(
          "'{}' belongs to a run with other settings; finish that run, or "
          "begin anew with --restart",
          partial.file));
    partial.first = first;
    while (std::getline(stream, line)) {
      endsWhole = !stream.eof();
      if (std::optional<json> row = rowOf(line)) {
        std::string id = (*row)["id"];
        partial.rows[id] = std::move(*row);
      }
    }
  }
  stream.close();
  // What is there stays as it is: writing it anew would lose it where that
  // fails or is interrupted.
  std::ofstream out(partial.file, isNew ? std::ios::trunc : std::ios::app);
  if (isNew)
    out << partial.first.dump() << "\n";
  else if (!endsWhole)
    out << "\n";
  out.flush();
  if (!out)
    return usage(fmt::format("cannot write '{}': {}", partial.file,
                             std::strerror(errno)));
  return partial;
}

const json *PartialResult::find(const std::string &id) const {
  auto found = rows.find(id);
  return found == rows.end() ? nullptr : &found->second;
}

Result<void> PartialResult::add(const json &row) {
  std::ofstream out(file, std::ios::app);
  out << sealed(row);
  out.flush();
  if (!out)
    return usage(
        fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
  rows[row.at("id").get<std::string>()] = row;
  return {};
}

void PartialResult::discard() { unlink(file.c_str()); }

} // namespace tessera::bench
