//===- bench/peers/native/openblas.cpp - OpenBLAS -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// packages: libopenblas0-pthread libopenblas-pthread-dev
// libraries: -I/usr/include/x86_64-linux-gnu/openblas-pthread -L/usr/lib/x86_64-linux-gnu/openblas-pthread -Wl,-rpath,/usr/lib/x86_64-linux-gnu/openblas-pthread -lopenblas
// clang-format on
//
//===----------------------------------------------------------------------===//

#include <cblas.h>

#include "bench/peers/native/cblas_gemm.h"

using namespace tessera::peers;

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text =
      nlohmann::json(
          {{"name", "openblas"},
           {"version", openblas_get_config()},
           {"mathMode", "IEEE, fused multiply-add, free order of sums"},
           {"boundaries", {"native", "call"}},
           {"details", {{"core", openblas_get_corename()}}}})
          .dump();
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return prepare(request, memory, why, whyBytes, [](const Request &request) {
    openblas_set_num_threads(request.threads());
    return makeCblasGemm(request);
  });
}
