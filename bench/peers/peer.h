//===- bench/peers/peer.h - What a native peer plug-in provides -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A native peer is a shared object with these four functions. It is loaded by a
// worker process of its own, so it may crash or hang without harm to the run.
// docs/benchmarking.md describes requests and replies.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_PEERS_PEER_H
#define TESSERA_BENCH_PEERS_PEER_H

#include <stddef.h>

extern "C" {

/// The reply to "describe" as JSON text: name, version, mathMode, boundaries.
const char *tessera_peer_describe(void);

/// Makes a problem ready to run: `request` is the JSON text of a "prepare"
/// request, `memory` the start of the shared arrays. All work that a user would
/// do once (creating primitives, choosing threads) belongs here. Null when it
/// cannot: `why` then says so in at most `whyBytes` bytes, beginning with
/// "unsupported: " where the library has no such operation.
void *tessera_peer_prepare(const char *request, void *memory, char *why,
                           size_t whyBytes);

/// Computes the outputs once. 0 on success.
int tessera_peer_run(void *problem);

void tessera_peer_release(void *problem);
}

#endif // TESSERA_BENCH_PEERS_PEER_H
