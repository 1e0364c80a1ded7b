//===- bench/core/row_run.cpp - One row and all its arms ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/row_run.h"

#include "bench/core/order.h"
#include "bench/core/result.h"
#include "fmt/format.h"
#include "session/arrays.h"
#include "support/hash.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace tessera::bench {

using nlohmann::json;

namespace {

/// A sample is made this long by repeating the call.
constexpr double sampleNanoseconds = 50e3;
/// Calls before the samples of a turn last about this long.
constexpr double warmNanoseconds = 200e3;
/// A sample of the batch boundary.
constexpr double batchNanoseconds = 10e6;
/// Samples of the call boundary are single calls, so there are more.
constexpr int64_t callSamples = 25;
/// A peer whose call lasts this many times the fastest arm's is not timed where
/// its turns would take more than the row's time.
constexpr double slowFactor = 20;
/// Samples may last this much longer than the answer that they are in.
constexpr double clockFactor = 1.05;
constexpr double clockNanoseconds = 1e6;
/// Calls longer than this are calibrated with one call.
constexpr double longCallNanoseconds = 0.2e9;

bool isAmortized(const RowSpec &row) {
  return row.boundary == "native" || row.boundary == "prepared" ||
         row.boundary == "batch" || row.boundary == "device";
}

/// The sample times of a reply: as many whole numbers as were asked for.
/// Nothing where the reply has something else.
std::optional<std::vector<int64_t>> samplesOf(const json &reply,
                                              int64_t wanted) {
  auto found = reply.find("nanoseconds");
  if (found == reply.end() || !found->is_array() ||
      static_cast<int64_t>(found->size()) != wanted)
    return std::nullopt;
  std::vector<int64_t> samples;
  for (const json &sample : *found) {
    if (!sample.is_number_integer() || sample.get<int64_t>() < 0)
      return std::nullopt;
    samples.push_back(sample.get<int64_t>());
  }
  return samples;
}

json emptyRow(const RowSpec &row) {
  json result = row.toJson();
  result["id"] = row.id();
  result["status"] = "ok";
  result["why"] = "";
  result["work"] = {{"bytesRead", 0}, {"bytesWritten", 0}, {"flops", 0.0}};
  result["floor"] = {{"nanoseconds", 0.0}, {"by", "none"}, {"ceiling", ""}};
  for (const char *list : {"seeds", "inputs", "order", "arms"})
    result[list] = json::array();
  return result;
}

} // namespace

void RowRun::listArms() {
  auto add = [&](std::string name, std::string role, const Peer *peer) {
    Arm &arm = arms.emplace_back();
    arm.name = name;
    arm.role = role;
    arm.peer = peer;
    arm.json = {{"name", name},
                {"role", role},
                {"peer", peer ? peer->name : "tessera"},
                {"boundary", row.boundary},
                {"threads", row.threads},
                {"status", "ok"},
                {"why", ""},
                {"version", ""},
                {"mathMode", ""},
                {"identity", json::object()},
                {"detail", json::object()},
                {"inner", 1},
                {"samples", json::array()},
                {"outputHashes", json::array()},
                {"guards", json::array()},
                {"verification",
                 {{"before", json::array()}, {"after", json::array()}}}};
  };
  add("tessera", "subject", nullptr);
  add("tessera-control", "control", nullptr);
  for (const Variant &variant : row.variants) {
    add("tessera-" + variant.name, "variant", nullptr);
    arms.back().variant = &variant;
    if (variant.vendor == Vendor::None)
      arms.back().json["steps"] = variant.steps;
    else
      arms.back().json["vendor"] = name(variant.vendor);
  }
  for (const Peer &peer : options.peers)
    if (peer.status == "ok")
      add(peer.name, "peer", &peer);
}

Result<void> RowRun::makeMemory() {
  std::vector<SharedArray> inputs, outputs;
  for (const session::ArrayParameter &array : reference->arrays())
    (array.isOutput ? outputs : inputs)
        .push_back({array.name, array.dtype, array.extents, array.isOutput, 0});
  Result<SharedMemory> made = SharedMemory::create(
      std::move(inputs), std::move(outputs), static_cast<int>(arms.size()));
  if (!made)
    return made.error();
  memory.emplace(std::move(*made));
  return {};
}

Result<void> RowRun::fillInputs(uint64_t seed) {
  session::RunValues values;
  values.seed = seed;
  if (Result<void> status = reference->fill(values); !status)
    return status.error();
  for (const SharedArray &array : memory->inputs())
    session::copyElements(*reference->array(array.name), memory->view(array));
  return {};
}

void RowRun::fail(Arm &arm, const std::string &status, const std::string &why) {
  arm.isActive = false;
  arm.json["status"] = status;
  arm.json["why"] = why;
}

std::optional<json> RowRun::ask(Arm &arm, const json &request) {
  Result<json> reply = arm.worker->ask(request, options.answerSeconds);
  if (!reply) {
    fail(arm, "failed", reply.error().message);
    return std::nullopt;
  }
  if ((*reply)["status"] != "ok") {
    std::string status = (*reply)["status"], why = reply->value("why", "");
    fail(arm, status == "unsupported" ? status : "failed",
         why.empty() ? "gave no reason" : why);
    return std::nullopt;
  }
  return std::move(*reply);
}

std::optional<std::vector<int64_t>>
RowRun::time(Arm &arm, int64_t warm, int64_t samples, int64_t inner) {
  auto start = std::chrono::steady_clock::now();
  std::optional<json> reply = ask(
      arm,
      {{"do", "time"}, {"warm", warm}, {"samples", samples}, {"inner", inner}});
  if (!reply)
    return std::nullopt;
  std::optional<std::vector<int64_t>> times = samplesOf(*reply, samples);
  if (!times)
    fail(arm, "failed",
         fmt::format("printed garbage: expected {} times in nanoseconds, "
                     "found {:.80}",
                     samples, reply->dump()));
  double passed = std::chrono::duration<double, std::nano>(
                      std::chrono::steady_clock::now() - start)
                      .count();
  double told =
      times ? std::accumulate(times->begin(), times->end(), 0.0) : 0.0;
  // A clock of its own may go faster by a little.
  if (told > clockFactor * passed + clockNanoseconds) {
    fail(arm, "failed",
         fmt::format("printed garbage: samples of {:.3g} s in all, within an "
                     "answer that took {:.3g} s",
                     told * 1e-9, passed * 1e-9));
    return std::nullopt;
  }
  return times;
}

void RowRun::prepare(int index) {
  Arm &arm = arms[index];
  progress(fmt::format("preparing {}", arm.name));
  std::string why;
  StartedWorker started = start(arm.name, arm.peer, row.threads, why);
  if (!started.worker)
    return fail(arm, "failed", why);
  arm.worker = started.worker;
  arm.isActive = true;
  arm.json["version"] = started.description.value("version", "");
  arm.json["mathMode"] = arm.isLibrary()
                             ? "the library's"
                             : started.description.value("mathMode", "");
  // A boundary that the peer does not name would be another measurement.
  json boundaries = started.description.value("boundaries", json::array());
  if (std::find(boundaries.begin(), boundaries.end(), row.boundary) ==
      boundaries.end()) {
    fail(arm, "unsupported",
         fmt::format("is not measured at the boundary '{}'", row.boundary));
    arm.worker->stop();
    return;
  }
  json request = row.toJson();
  request["do"] = "prepare";
  request["memory"] = memory->path();
  request["bytes"] = memory->size();
  if (arm.isLibrary()) {
    request["vendor"] = name(arm.variant->vendor);
    // It has no loops to plan.
    request.erase("plan");
  } else if (arm.variant) {
    request["steps"] = arm.variant->steps;
  }
  request["arrays"] = json::array();
  for (const auto *list : {&memory->inputs(), &memory->outputs(index)})
    for (const SharedArray &array : *list)
      request["arrays"].push_back({{"name", array.name},
                                   {"dtype", name(array.dtype)},
                                   {"extents", array.extents},
                                   {"offset", array.offset},
                                   {"output", array.isOutput}});
  if (std::optional<json> reply = ask(arm, request)) {
    for (const char *field : {"identity", "detail", "cold", "report"})
      if (reply->contains(field))
        arm.json[field] = (*reply)[field];
    if (arm.role == "subject" && reply->contains("work"))
      result["work"] = (*reply)["work"];
    memory->poison(index);
    auto start = std::chrono::steady_clock::now();
    if (ask(arm, {{"do", "run"}})) {
      arm.isLong = std::chrono::duration<double, std::nano>(
                       std::chrono::steady_clock::now() - start)
                       .count() > longCallNanoseconds;
      judge(index, "before");
    }
    if (arm.isActive)
      calibrate(arm);
    checkMemory(arm);
  }
  if (arm.worker->isAlive())
    arm.worker->stop();
}

void RowRun::checkMemory(Arm &arm) {
  if (!memory->guardsIntact()) {
    memory->mendGuards();
    fail(arm, "wrong", "bytes outside its outputs were overwritten");
  }
  if (hashes(memory->inputs()) != inputHashes) {
    fail(arm, "wrong", "its inputs were overwritten");
    if (Result<void> status = fillInputs(seedOf(0)); !status)
      arm.json["why"] = status.error().message;
  }
}

void RowRun::judge(int index, const char *when) {
  Arm &arm = arms[index];
  session::Arrays outputs;
  for (const SharedArray &array : memory->outputs(index))
    outputs.emplace(array.name, memory->view(array));
  // A library promises none.
  double factor = arm.peer || arm.isLibrary() ? peerBoundFactor : 1;
  Result<std::vector<session::OutputResult>> judged =
      reference->judge(outputs, factor);
  if (!judged)
    return fail(arm, "failed", judged.error().message);
  json list = json::array(), contents = hashes(memory->outputs(index));
  for (const session::OutputResult &output : *judged) {
    list.push_back({{"output", output.name},
                    {"hash", contents[output.name]},
                    {"elements", output.elements},
                    {"compared", output.elements},
                    {"wrong", output.wrong},
                    {"maxError", output.maxError},
                    {"bound", output.bound},
                    {"boundUsed", output.boundUsed},
                    {"factor", factor}});
    if (!output.passed())
      fail(arm, "wrong",
           fmt::format("{} of {} elements of '{}' are wrong {} timing, first "
                       "{}",
                       output.wrong, output.elements, output.name, when,
                       output.firstWrong->str()));
  }
  arm.json["verification"][when] = list;
}

void RowRun::calibrate(Arm &arm) {
  // The first figure contains the clock's own time; the second is of a sample
  // long enough for that not to matter.
  int64_t inner = 1;
  for (int pass = 0; pass < 2; ++pass) {
    std::optional<std::vector<int64_t>> samples =
        time(arm, /*warm=*/arm.isLong ? 0 : inner,
             /*samples=*/arm.isLong ? 1 : 3, inner);
    if (!samples)
      return;
    int64_t least = *std::min_element(samples->begin(), samples->end());
    arm.callNanoseconds = static_cast<double>(std::max<int64_t>(least, 1)) /
                          static_cast<double>(inner);
    if (arm.callNanoseconds * static_cast<double>(inner) > sampleNanoseconds)
      break;
    inner = static_cast<int64_t>(
        std::ceil(sampleNanoseconds / arm.callNanoseconds));
  }
  double target =
      row.boundary == "batch" ? batchNanoseconds : sampleNanoseconds;
  arm.inner = 1;
  if (isAmortized(row))
    arm.inner = std::max<int64_t>(
        1, static_cast<int64_t>(std::ceil(target / arm.callNanoseconds)));
  arm.warm = std::clamp<int64_t>(
      static_cast<int64_t>(warmNanoseconds / arm.callNanoseconds), 1, 1 << 20);
  arm.json["inner"] = arm.inner;
}

void RowRun::dropSlowPeers() {
  double fastest = 0;
  for (const Arm &arm : arms)
    if (arm.isActive && (fastest == 0 || arm.callNanoseconds < fastest))
      fastest = arm.callNanoseconds;
  for (Arm &arm : arms) {
    double turns = arm.callNanoseconds * static_cast<double>(arm.inner) * 1e-9 *
                   // A warming call and a sample.
                   2 * options.rounds;
    if (!arm.isActive || arm.role != "peer" || turns <= options.rowSeconds ||
        arm.callNanoseconds <= slowFactor * fastest)
      continue;
    fail(arm, "slow",
         fmt::format("a call takes {:.3g} s, {:.0f} times the fastest arm's; "
                     "{} rounds of that take more than {:g} s "
                     "(--row-seconds)",
                     arm.callNanoseconds * 1e-9, arm.callNanoseconds / fastest,
                     options.rounds, options.rowSeconds));
    arm.json["callNanoseconds"] = arm.callNanoseconds;
  }
}

void RowRun::planTurns() {
  int active = 0;
  double calls = 0;
  for (Arm &arm : arms) {
    active += arm.isActive;
    if (arm.isActive)
      calls += arm.callNanoseconds * static_cast<double>(arm.inner) * 1e-9;
  }
  if (active == 0)
    return;
  std::vector<std::vector<int>> design = balancedOrders(active);
  size_t wholeDesigns =
      (static_cast<size_t>(options.rounds) + design.size() - 1) / design.size();
  auto rounds = static_cast<double>(wholeDesigns * design.size());
  int64_t samples =
      row.boundary == "call" ? callSamples : int64_t{options.samples};
  // A warming call comes with every turn.
  double wanted = calls * rounds * static_cast<double>(samples + 1);
  if (wanted > options.rowSeconds)
    samples = std::max<int64_t>(
        1, static_cast<int64_t>(options.rowSeconds / (calls * rounds)) - 1);
  int least = options.rounds;
  if (calls * rounds * 2 > options.rowSeconds)
    least = static_cast<int>(design.size());
  for (Arm &arm : arms)
    arm.samples = samples;
  // A slow row has fewer of both.
  result["rounds"] = least;
  result["samplesPerTurn"] = samples;

  std::vector<int> positions;
  for (size_t i = 0; i < arms.size(); ++i)
    if (arms[i].isActive)
      positions.push_back(static_cast<int>(i));
  for (std::vector<int> &order : roundOrders(active, least)) {
    for (int &position : order)
      position = positions[position];
    orders.push_back(std::move(order));
  }
}

json RowRun::hashes(const std::vector<SharedArray> &arrays) const {
  json result = json::object();
  for (const SharedArray &array : arrays) {
    support::Hasher hasher;
    hasher.bytes(memory->data() + array.offset,
                 static_cast<size_t>(array.bytes()));
    result[array.name] = hasher.finish().hex();
  }
  return result;
}

void RowRun::turn(int index) {
  Arm &arm = arms[index];
  if (!arm.isActive)
    return;
  memory->poison(index);
  arm.worker->resume();
  std::optional<std::vector<int64_t>> times =
      time(arm, arm.warm, arm.samples, arm.inner);
  if (arm.worker->isAlive())
    arm.worker->stop();
  if (!times)
    return;
  if (*std::min_element(times->begin(), times->end()) == 0)
    return fail(arm, "failed", "printed garbage: a sample of 0 nanoseconds");
  arm.json["samples"].push_back(*times);
  arm.json["outputHashes"].push_back(hashes(memory->outputs(index)));
  bool intact = memory->guardsIntact();
  arm.json["guards"].push_back(intact);
  if (!intact) {
    memory->mendGuards();
    fail(arm, "wrong", "bytes outside its outputs were overwritten");
  }
}

void RowRun::runRounds() {
  std::map<std::string, json> before, after;
  for (const SharedArray &array : memory->inputs())
    before[array.name] = after[array.name] = json::array();
  for (size_t round = 0; round < orders.size(); ++round) {
    progress(fmt::format("round {} of {}", round + 1, orders.size()));
    uint64_t seed = seedOf(round);
    if (Result<void> status = fillInputs(seed); !status) {
      result["status"] = "failed";
      result["why"] = status.error().message;
      return;
    }
    result["seeds"].push_back(seed);
    json start = hashes(memory->inputs());
    for (int index : orders[round])
      turn(index);
    json end = hashes(memory->inputs());
    for (const SharedArray &array : memory->inputs()) {
      before[array.name].push_back(start[array.name]);
      after[array.name].push_back(end[array.name]);
    }
    if (start != end) {
      result["status"] = "failed";
      result["why"] =
          fmt::format("an arm changed its inputs in round {}", round + 1);
      break;
    }
  }
  for (const SharedArray &array : memory->inputs())
    result["inputs"].push_back({{"name", array.name},
                                {"bytes", array.bytes()},
                                {"before", before[array.name]},
                                {"after", after[array.name]}});
  progress("verifying");
  for (size_t i = 0; i < arms.size(); ++i)
    if (arms[i].isActive)
      judge(static_cast<int>(i), "after");
}

json RowRun::finish() {
  json work = result["work"];
  Floor floor = floorOf(ceilings, row.threads, work["bytesRead"],
                        work["bytesWritten"], work["flops"]);
  // The ceilings are those of processors.
  if (row.boundary != "cold" && row.boundary != "disk" &&
      row.boundary != "device")
    result["floor"] = {{"nanoseconds", floor.nanoseconds},
                       {"by", floor.by},
                       {"ceiling", floor.ceiling}};
  result["order"] = orders;
  for (Arm &arm : arms) {
    if (arm.worker && arm.worker->isAlive()) {
      arm.worker->resume();
      (void)arm.worker->ask({{"do", "release"}}, options.answerSeconds);
      if (arm.worker->isAlive())
        arm.worker->stop();
    }
    if (arm.role == "subject" && arm.json["status"] != "ok" &&
        result["status"] == "ok") {
      // What Tessera does not serve yet; the peers are measured all the same.
      result["status"] =
          arm.json["status"] == "unsupported" ? "not implemented" : "failed";
      result["why"] = arm.json["why"];
    }
    result["arms"].push_back(std::move(arm.json));
  }
  summarizeRow(result);
  return std::move(result);
}

json unmeasuredRow(const RowSpec &row, const std::string &why) {
  json result = emptyRow(row);
  result["status"] = "failed";
  result["why"] = why;
  summarizeRow(result);
  return result;
}

json RowRun::run() {
  result = emptyRow(row);
  auto without = [&](const char *status, const std::string &why) {
    result["status"] = status;
    result["why"] = why;
    arms.clear();
    return finish();
  };
  const kernels::Operator *op = kernels::findOperator(row.operatorName);
  if (!op)
    return without("not implemented",
                   fmt::format("there is no operator '{}'", row.operatorName));
  Result<session::CompiledOperator> made =
      session::CompiledOperator::create(*op, row.runRequest());
  if (!made)
    return without("failed", made.error().message);
  reference.emplace(std::move(*made));
  listArms();
  if (Result<void> status = makeMemory(); !status)
    return without("failed", status.error().message);
  // The data of the first round, which the first verification is about.
  if (Result<void> status = fillInputs(seedOf(0)); !status)
    return without("failed", status.error().message);
  inputHashes = hashes(memory->inputs());
  for (size_t i = 0; i < arms.size(); ++i)
    prepare(static_cast<int>(i));
  dropSlowPeers();
  planTurns();
  runRounds();
  return finish();
}

} // namespace tessera::bench
