//===- bench/peers/native/onednn.cpp - oneDNN of the distribution -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// packages: libdnnl2 libdnnl-dev
// libraries: -ldnnl
// clang-format on
//
//===----------------------------------------------------------------------===//

#include "bench/peers/native/onednn_primitives.h"

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text = tessera::peers::describeOnednn("onednn");
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return tessera::peers::prepareOnednn(request, memory, why, whyBytes);
}
