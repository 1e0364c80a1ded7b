//===- bench/peers/native/libxsmm.cpp - LIBXSMM -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// packages: libxsmm-dev
// libraries: -lxsmm -lxsmmnoblas -ldl
// clang-format on
//
//===----------------------------------------------------------------------===//

#include "bench/peers/native/request.h"

#include <libxsmm.h>

using namespace tessera::peers;

namespace {

/// One generated kernel for the whole product: LIBXSMM's way for small ones.
class Product : public Problem {
public:
  explicit Product(const Request &request)
      : a(request.array<float>("a")), b(request.array<float>("b")),
        c(request.array<float>("c")) {
    auto m = static_cast<int>(request.dim("m"));
    auto n = static_cast<int>(request.dim("n"));
    auto k = static_cast<int>(request.dim("k"));
    // Column-major: the transposed problem.
    float alpha = 1, beta = 0;
    int flags = LIBXSMM_GEMM_FLAG_NONE;
    kernel = libxsmm_smmdispatch(n, m, k, &n, &k, &n, &alpha, &beta, &flags,
                                 nullptr);
    if (!kernel)
      throw Unsupported("no kernel is generated for this shape");
  }
  void run() override { kernel(b, a, c); }

private:
  const float *a, *b;
  float *c;
  libxsmm_smmfunction kernel;
};

} // namespace

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text =
      nlohmann::json({{"name", "libxsmm"},
                      {"version", LIBXSMM_VERSION},
                      {"mathMode", "IEEE, fused multiply-add"},
                      {"boundaries", {"native", "call"}},
                      {"details", {{"isa", libxsmm_get_target_arch()}}}})
          .dump();
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return prepare(request, memory, why, whyBytes,
                 [](const Request &request) -> std::unique_ptr<Problem> {
                   if (request.op() != "gemm" || request.dtype() != "f32" ||
                       request.flag("trans_a") || request.flag("trans_b") ||
                       request.has("c0"))
                     throw Unsupported("plain f32 products only");
                   if (request.threads() != 1)
                     throw Unsupported("one thread only");
                   libxsmm_init();
                   return std::make_unique<Product>(request);
                 });
}
