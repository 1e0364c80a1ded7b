//===- bench/peers/native/blis.cpp - BLIS -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// packages: libblis4-pthread libblis-pthread-dev
// libraries: -I/usr/include/x86_64-linux-gnu/blis-pthread -L/usr/lib/x86_64-linux-gnu/blis-pthread -Wl,-rpath,/usr/lib/x86_64-linux-gnu/blis-pthread -lblis
// clang-format on
//
//===----------------------------------------------------------------------===//

#include <blis.h>
#include <cblas.h>

#include "bench/peers/native/cblas_gemm.h"

using namespace tessera::peers;

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text =
      nlohmann::json(
          {{"name", "blis"},
           {"version", bli_info_get_version_str()},
           {"mathMode", "IEEE, fused multiply-add, free order of sums"},
           {"boundaries", {"native", "call"}},
           {"details", {{"core", bli_arch_string(bli_arch_query_id())}}}})
          .dump();
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return prepare(request, memory, why, whyBytes, [](const Request &request) {
    bli_thread_set_num_threads(request.threads());
    return makeCblasGemm(request);
  });
}
