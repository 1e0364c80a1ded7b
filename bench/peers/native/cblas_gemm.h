//===- bench/peers/native/cblas_gemm.h - Products through CBLAS -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// gemm and bmm for every library with the CBLAS interface. Include after that
// library's own cblas.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_PEERS_NATIVE_CBLAS_GEMM_H
#define TESSERA_BENCH_PEERS_NATIVE_CBLAS_GEMM_H

#include "bench/peers/native/request.h"

namespace tessera::peers {

template <typename T> class CblasGemm : public Problem {
public:
  explicit CblasGemm(const Request &request)
      : a(request.array<T>("a")), b(request.array<T>("b")),
        c(request.array<T>("c")), m(request.dim("m")), n(request.dim("n")),
        k(request.dim("k")),
        batch(request.op() == "bmm" ? request.dim("batch") : 1),
        transA(request.flag("trans_a")), transB(request.flag("trans_b")) {
    // BLAS adds to what stands in its result.
    if (request.has("c0")) {
      c0 = request.array<T>("c0");
      beta = static_cast<T>(request.setting("beta", 1));
    }
  }

  void run() override {
    if (c0)
      std::memcpy(c, c0, batch * m * n * sizeof(T));
    for (int64_t i = 0; i < batch; ++i)
      product(a + i * m * k, b + i * k * n, c + i * m * n);
  }

private:
  void product(const T *a, const T *b, T *c) const {
    auto ta = transA ? CblasTrans : CblasNoTrans;
    auto tb = transB ? CblasTrans : CblasNoTrans;
    int64_t lda = transA ? m : k, ldb = transB ? k : n;
    if constexpr (std::is_same_v<T, float>)
      cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c,
                  n);
    else
      cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c,
                  n);
  }

  const T *a, *b;
  T *c;
  const T *c0 = nullptr;
  T beta = 0;
  int64_t m, n, k, batch;
  bool transA, transB;
};

inline std::unique_ptr<Problem> makeCblasGemm(const Request &request) {
  if (request.op() != "gemm" && request.op() != "bmm")
    throw Unsupported("a BLAS has products only");
  if (request.dtype() == "f32")
    return std::make_unique<CblasGemm<float>>(request);
  if (request.dtype() == "f64")
    return std::make_unique<CblasGemm<double>>(request);
  throw Unsupported("no product of " + request.dtype());
}

} // namespace tessera::peers

#endif // TESSERA_BENCH_PEERS_NATIVE_CBLAS_GEMM_H
