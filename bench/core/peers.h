//===- bench/core/peers.h - The peers of this machine -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_PEERS_H
#define TESSERA_BENCH_CORE_PEERS_H

#include "tessera/error.h"

#include <map>
#include <string>
#include <vector>

namespace tessera::bench {

/// A peer as `./dev peers` left it in peers.json.
struct Peer {
  std::string name;
  /// "ok" or "missing".
  std::string status;
  /// Why it is missing.
  std::string why;
  /// The worker; "{tessera}" stands for this program and "{bench}" for the
  /// folder of suites and peers.
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
};

/// The folder where `./dev peers` installs: TESSERA_PEERS_DIR, or
/// ~/.local/share/tessera/peers.
std::string peersFolder();

/// All that peers.json lists; nothing where there is none. Fails with Usage
/// where the file is malformed.
Result<std::vector<Peer>> installedPeers();

/// The peers of a list such as "openblas,torch"; "all" for every one and
/// "none". Unknown names are Usage errors.
Result<std::vector<Peer>> selectPeers(const std::vector<Peer> &installed,
                                      const std::string &list);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_PEERS_H
