//===- bench/peers/native/request.h - A request, understood -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What native plug-ins share: the fields of a "prepare" request, and the four
// functions of peer.h around a class.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_PEERS_NATIVE_REQUEST_H
#define TESSERA_BENCH_PEERS_NATIVE_REQUEST_H

#include "bench/peers/peer.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

namespace tessera::peers {

/// The library has no such operation.
struct Unsupported : std::runtime_error {
  using runtime_error::runtime_error;
};

class Request {
public:
  Request(const char *text, void *memory)
      : json(nlohmann::json::parse(text)),
        memory(static_cast<unsigned char *>(memory)) {}

  std::string op() const { return json.at("operator"); }
  std::string dtype() const { return json.at("dtype"); }
  int threads() const { return json.at("threads"); }
  int64_t dim(const char *name) const { return json.at("dims").at(name); }
  double setting(const char *name, double otherwise) const {
    return json.at("settings").value(name, otherwise);
  }
  bool flag(const char *name) const { return setting(name, 0) != 0; }
  /// The number of a setting's value in `names`; the first when it is not set.
  /// The setting is a name or that number.
  size_t choice(const char *name,
                std::initializer_list<const char *> names) const {
    const nlohmann::json &settings = json.at("settings");
    auto found = settings.find(name);
    if (found == settings.end())
      return 0;
    if (found->is_number())
      return found->get<size_t>();
    size_t number = 0;
    for (const char *one : names) {
      if (*found == one)
        return number;
      ++number;
    }
    throw Unsupported(std::string(name) + " = " + found->dump());
  }
  bool has(const std::string &array) const { return find(array) != nullptr; }
  /// The first element of an array.
  template <typename T> T *array(const std::string &name) const {
    const nlohmann::json *found = find(name);
    if (!found)
      throw std::runtime_error("the request lacks array '" + name + "'");
    return reinterpret_cast<T *>(memory + found->at("offset").get<int64_t>());
  }

private:
  const nlohmann::json *find(const std::string &name) const {
    for (const nlohmann::json &array : json.at("arrays"))
      if (array.at("name") == name)
        return &array;
    return nullptr;
  }

  nlohmann::json json;
  unsigned char *memory;
};

/// A problem that is ready to run.
class Problem {
public:
  virtual ~Problem() = default;
  virtual void run() = 0;
};

/// Calls `make(Request)`, which returns a std::unique_ptr<Problem>, and tells
/// what it throws.
template <typename Make>
void *prepare(const char *request, void *memory, char *why, size_t whyBytes,
              Make make) {
  std::string reason;
  try {
    return make(Request(request, memory)).release();
  } catch (const Unsupported &error) {
    reason = std::string("unsupported: ") + error.what();
  } catch (const std::exception &error) {
    reason = error.what();
  }
  std::strncpy(why, reason.c_str(), whyBytes - 1);
  why[whyBytes - 1] = 0;
  return nullptr;
}

} // namespace tessera::peers

/// Defines run and release of peer.h for tessera::peers::Problem.
extern "C" int tessera_peer_run(void *problem) {
  try {
    static_cast<tessera::peers::Problem *>(problem)->run();
    return 0;
  } catch (const std::exception &) {
    return 1;
  }
}
extern "C" void tessera_peer_release(void *problem) {
  delete static_cast<tessera::peers::Problem *>(problem);
}

#endif // TESSERA_BENCH_PEERS_NATIVE_REQUEST_H
