//===- bench/core/serve.cpp - The worker's side of the protocol -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/serve.h"

#include "bench/peers/peer.h"
#include "bench/timer/timer.h"
#include "fmt/format.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>
#include <optional>
#include <unistd.h>

namespace tessera::bench {

using nlohmann::json;

namespace {

Error usage(std::string message) {
  return {ErrorFamily::Usage, "bench.worker", std::move(message), {}};
}

json failure(const Error &error) {
  bool isUnsupported = error.family == ErrorFamily::Unsupported;
  return {{"status", isUnsupported ? "unsupported" : "failed"},
          {"why", error.message}};
}

int64_t number(const json &request, const char *name, int64_t otherwise) {
  auto found = request.find(name);
  return found != request.end() && found->is_number_integer()
             ? found->get<int64_t>()
             : otherwise;
}

std::string text(const json &request, const char *name) {
  auto found = request.find(name);
  return found != request.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

/// The state between requests.
class Server {
public:
  explicit Server(Arm &arm) : arm(arm) {}

  json answer(const json &request) {
    std::string what = text(request, "do");
    if (what == "describe")
      return describe();
    if (what == "prepare")
      return prepare(request);
    if (what == "run")
      return time(0, 1, 1);
    if (what == "time")
      return time(number(request, "warm", 0), number(request, "samples", 1),
                  number(request, "inner", 1));
    if (what == "release" || what == "quit") {
      problem.reset();
      memory.reset();
      return {{"status", "ok"}};
    }
    return failure(usage(fmt::format("unknown request '{}'", what)));
  }

private:
  json describe() {
    json reply = arm.describe();
    reply["status"] = "ok";
    return reply;
  }

  json prepare(const json &request) {
    problem.reset();
    memory.reset();
    Result<SharedMemory> opened = SharedMemory::open(
        text(request, "memory"), number(request, "bytes", 0));
    if (!opened)
      return failure(opened.error());
    memory.emplace(std::move(*opened));
    Result<std::unique_ptr<Problem>> made = arm.prepare(request, *memory);
    if (!made)
      return failure(made.error());
    problem = std::move(*made);
    json reply = {{"status", "ok"}};
    problem->describe(reply);
    return reply;
  }

  json time(int64_t warm, int64_t samples, int64_t inner) {
    if (!problem)
      return failure(usage("nothing is prepared"));
    std::vector<int64_t> nanoseconds(std::clamp<int64_t>(samples, 1, 1 << 20));
    auto call = [](void *problem) {
      return static_cast<Problem *>(problem)->timed();
    };
    int status = tessera_bench_time(
        call, problem.get(), warm, static_cast<int64_t>(nanoseconds.size()),
        std::max<int64_t>(inner, 1), nanoseconds.data());
    if (status == 0)
      status = problem->complete();
    if (status != 0)
      return {{"status", "failed"},
              {"why", fmt::format("a call returned {}", status)}};
    return {{"status", "ok"}, {"nanoseconds", nanoseconds}};
  }

  Arm &arm;
  std::optional<SharedMemory> memory;
  std::unique_ptr<Problem> problem;
};

// --- Plug-ins ---------------------------------------------------------------

struct PluginFunctions {
  decltype(&tessera_peer_describe) describe = nullptr;
  decltype(&tessera_peer_prepare) prepare = nullptr;
  decltype(&tessera_peer_run) run = nullptr;
  decltype(&tessera_peer_release) release = nullptr;
};

class PluginProblem : public Problem {
public:
  PluginProblem(const PluginFunctions &functions, void *problem)
      : functions(functions), problem(problem) {}
  ~PluginProblem() override { functions.release(problem); }

  int run() override { return functions.run(problem); }
  void describe(json &) const override {}

private:
  PluginFunctions functions;
  void *problem;
};

class Plugin : public Arm {
public:
  explicit Plugin(const PluginFunctions &functions) : functions(functions) {}

  json describe() override {
    json description =
        json::parse(functions.describe(), nullptr, /*allow_exceptions=*/false);
    return description.is_object() ? description : json::object();
  }

  Result<std::unique_ptr<Problem>>
  prepare(const json &request, const SharedMemory &memory) override {
    char why[512] = "";
    void *problem = functions.prepare(request.dump().c_str(), memory.data(),
                                      why, sizeof why);
    if (problem)
      return std::unique_ptr<Problem>(new PluginProblem(functions, problem));
    std::string reason(why);
    constexpr std::string_view unsupported = "unsupported: ";
    bool isUnsupported = reason.starts_with(unsupported);
    if (isUnsupported)
      reason.erase(0, unsupported.size());
    return Error{isUnsupported ? ErrorFamily::Unsupported : ErrorFamily::Usage,
                 "bench.peer",
                 reason.empty() ? "gave no reason" : reason,
                 {}};
  }

private:
  PluginFunctions functions;
};

} // namespace

Result<std::unique_ptr<Arm>> loadPlugin(const std::string &file) {
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return usage(fmt::format("cannot load the plug-in: {}", dlerror()));
  PluginFunctions functions;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, name));
    return function != nullptr;
  };
  if (!find(functions.describe, "tessera_peer_describe") ||
      !find(functions.prepare, "tessera_peer_prepare") ||
      !find(functions.run, "tessera_peer_run") ||
      !find(functions.release, "tessera_peer_release"))
    return usage(fmt::format("plug-in '{}' lacks a function of peer.h", file));
  return std::unique_ptr<Arm>(new Plugin(functions));
}

Result<std::vector<SharedArray>> requestArrays(const json &request,
                                               const SharedMemory &memory) {
  std::vector<SharedArray> arrays;
  auto list = request.find("arrays");
  if (list == request.end() || !list->is_array())
    return usage("the request has no list 'arrays'");
  for (const json &entry : *list) {
    SharedArray array;
    array.name = text(entry, "name");
    std::optional<DType> dtype = parseDType(text(entry, "dtype"));
    auto extents = entry.find("extents");
    array.offset = number(entry, "offset", -1);
    array.isOutput = entry.value("output", false);
    if (!dtype || extents == entry.end() || !extents->is_array())
      return usage(
          fmt::format("array '{}' has no type or extents", array.name));
    array.dtype = *dtype;
    for (const json &extent : *extents)
      array.extents.push_back(extent.get<int64_t>());
    if (array.offset < 0 || array.offset + array.bytes() > memory.size())
      return usage(
          fmt::format("array '{}' does not lie within the memory", array.name));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

int serve(Arm &arm) {
  const char *variable = std::getenv("TESSERA_BENCH_REPLY");
  int descriptor = variable ? std::atoi(variable) : STDOUT_FILENO;
  Server server(arm);
  std::string line;
  while (std::getline(std::cin, line)) {
    json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
    json reply = request.is_object()
                     ? server.answer(request)
                     : failure(usage("the request is no JSON object"));
    std::string written = reply.dump() + "\n";
    for (size_t sent = 0; sent < written.size();) {
      ssize_t count =
          write(descriptor, written.data() + sent, written.size() - sent);
      if (count <= 0)
        return 2;
      sent += static_cast<size_t>(count);
    }
    if (request.is_object() && text(request, "do") == "quit")
      return 0;
  }
  return 0;
}

} // namespace tessera::bench
