//===- bench/core/peers.cpp - The peers of this machine -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/peers.h"

#include "bench/core/fields.h"
#include "bench/core/row.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tessera::bench {

using nlohmann::json;

namespace {

constexpr const char *errorCode = "bench.peers";

constexpr Field listFields[] = {{"peers", FieldKind::Objects, true}};

constexpr Field peerFields[] = {{"name", FieldKind::Text, true},
                                {"status", FieldKind::Text, true},
                                {"why", FieldKind::Text},
                                {"command", FieldKind::Texts},
                                {"environment", FieldKind::ObjectOfTexts}};

Error usage(std::string message) {
  return {ErrorFamily::Usage, errorCode, std::move(message), {}};
}

std::string substituted(std::string text) {
  std::error_code error;
  const std::pair<const char *, std::string> places[] = {
      {"{tessera}", std::filesystem::read_symlink("/proc/self/exe", error)},
      {"{bench}", benchFolder()},
      {"{peers}", peersFolder()},
  };
  for (const auto &[name, value] : places)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, std::string_view(name).size(), value);
  return text;
}

} // namespace

std::string peersFolder() {
  if (const char *set = std::getenv("TESSERA_PEERS_DIR"); set && *set)
    return set;
  const char *home = std::getenv("HOME");
  return fmt::format("{}/.local/share/tessera/peers", home ? home : "");
}

Result<std::vector<Peer>> installedPeers() {
  std::vector<Peer> peers;
  std::string file = peersFolder() + "/peers.json";
  std::error_code code;
  if (!std::filesystem::exists(file, code))
    return peers;
  auto malformed = [](const Error &error) {
    return usage(error.message + "; run ./dev peers again");
  };
  Result<json> list = readJsonFile(file, errorCode, "list of peers");
  if (!list)
    return malformed(list.error());
  const std::string where = fmt::format("'{}'", file);
  if (Result<void> status = checkFields(
          *list, listFields, OtherFields::AreIgnored, errorCode, where);
      !status)
    return malformed(status.error());
  const json &entries = (*list)["peers"];
  for (size_t i = 0; i < entries.size(); ++i) {
    const json &entry = entries[i];
    const std::string place = fmt::format("{}: peers[{}]", where, i);
    if (Result<void> status = checkFields(
            entry, peerFields, OtherFields::AreIgnored, errorCode, place);
        !status)
      return malformed(status.error());
    Peer &peer = peers.emplace_back();
    peer.name = entry["name"].get<std::string>();
    // The name of its log, too.
    if (peer.name.empty() || peer.name.find('/') != std::string::npos)
      return malformed(usage(
          fmt::format("{}: field 'name' is {}, expected a name without '/'",
                      place, shownValue(entry["name"]))));
    for (size_t k = 0; k < i; ++k)
      if (peers[k].name == peer.name)
        return malformed(usage(
            fmt::format("{}: peer '{}' stands there twice", place, peer.name)));
    peer.status = entry["status"].get<std::string>();
    peer.why = entry.value("why", "");
    for (const json &word : entry.value("command", json::array()))
      peer.command.push_back(substituted(word.get<std::string>()));
    // items() refers to the object, which has to live as long.
    const json environment = entry.value("environment", json::object());
    for (const auto &[name, value] : environment.items())
      peer.environment[name] = substituted(value.get<std::string>());
    if (peer.status == "ok" && peer.command.empty())
      return malformed(usage(fmt::format(
          "{}: peer '{}' is ok, but has no command", place, peer.name)));
  }
  return peers;
}

Result<std::vector<Peer>> selectPeers(const std::vector<Peer> &installed,
                                      const std::string &list) {
  if (list == "all")
    return installed;
  std::vector<Peer> chosen;
  if (list.empty() || list == "none")
    return chosen;
  std::stringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    auto found =
        std::find_if(installed.begin(), installed.end(),
                     [&](const Peer &peer) { return peer.name == name; });
    if (found == installed.end()) {
      std::vector<std::string> known;
      for (const Peer &peer : installed)
        known.push_back(peer.name);
      return usage(fmt::format(
          "unknown peer '{}', expected {}", name,
          known.empty()
              ? "peers that ./dev peers has installed (there are none)"
              : fmt::format("all, none, or some of {}",
                            fmt::join(known, ", "))));
    }
    bool isDouble =
        std::any_of(chosen.begin(), chosen.end(),
                    [&](const Peer &peer) { return peer.name == name; });
    if (isDouble)
      return usage(fmt::format("peer '{}' is named twice", name));
    chosen.push_back(*found);
  }
  return chosen;
}

} // namespace tessera::bench
