//===- bench/peers/native/onednn3.cpp - oneDNN 3 of the Python registry -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Later wheels have the SYCL runtime only, where each primitive goes through a
// queue: their small primitives would be measured by that.
//
// clang-format off
// wheels: onednn-cpu-gomp onednn-devel-cpu-gomp
// libraries: -I{wheels}/include -L{wheels}/lib -Wl,-rpath,{wheels}/lib -l:libdnnl.so.3
// clang-format on
//
//===----------------------------------------------------------------------===//

#include "bench/peers/native/onednn_primitives.h"

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text = tessera::peers::describeOnednn("onednn3");
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return tessera::peers::prepareOnednn(request, memory, why, whyBytes);
}
