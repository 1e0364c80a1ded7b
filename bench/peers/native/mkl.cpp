//===- bench/peers/native/mkl.cpp - MKL of the Python registry -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// wheels: mkl mkl-include
// libraries: -I{wheels}/include -L{wheels}/lib -Wl,-rpath,{wheels}/lib -l:libmkl_rt.so.3 -Wl,--no-as-needed -l:libiomp5.so -ldl -lm
// clang-format on
//
//===----------------------------------------------------------------------===//

#include <mkl.h>

#include "bench/peers/native/cblas_gemm.h"

using namespace tessera::peers;

namespace {

/// A kernel that MKL generates for the extents of one small product.
class Generated : public Problem {
public:
  explicit Generated(const Request &request)
      : a(request.array<float>("a")), b(request.array<float>("b")),
        c(request.array<float>("c")) {
    bool transA = request.flag("trans_a"), transB = request.flag("trans_b");
    int64_t m = request.dim("m"), n = request.dim("n"), k = request.dim("k");
    if (mkl_jit_create_sgemm(
            &jitter, MKL_ROW_MAJOR, transA ? MKL_TRANS : MKL_NOTRANS,
            transB ? MKL_TRANS : MKL_NOTRANS, m, n, k, 1, transA ? m : k,
            transB ? k : n, 0, n) == MKL_JIT_SUCCESS)
      kernel = mkl_jit_get_sgemm_ptr(jitter);
  }
  ~Generated() override {
    if (jitter)
      mkl_jit_destroy(jitter);
  }

  /// MKL generates none for large extents.
  bool exists() const { return kernel != nullptr; }
  // It takes its inputs without const, and does not write them.
  void run() override {
    kernel(jitter, const_cast<float *>(a), const_cast<float *>(b), c);
  }

private:
  const float *a, *b;
  float *c;
  void *jitter = nullptr;
  sgemm_jit_kernel_t kernel = nullptr;
};

/// The first call decides for the process. One thread needs no runtime of
/// threads.
void useThreads(int threads) {
  static const int layer =
      threads == 1 ? MKL_THREADING_SEQUENTIAL : MKL_THREADING_INTEL;
  static const int used = mkl_set_threading_layer(layer);
  if (used != layer)
    throw std::runtime_error("MKL has threading layer " + std::to_string(used) +
                             ", expected " + std::to_string(layer));
  if (layer == MKL_THREADING_SEQUENTIAL && threads != 1)
    throw std::runtime_error("this process has MKL without threads");
  mkl_set_num_threads(threads);
}

} // namespace

extern "C" const char *tessera_peer_describe(void) {
  // From the header: asking the library would choose its threads.
  static const std::string text =
      nlohmann::json(
          {{"name", "mkl"},
           {"version", std::to_string(__INTEL_MKL__) + "." +
                           std::to_string(__INTEL_MKL_MINOR__) + "." +
                           std::to_string(__INTEL_MKL_UPDATE__)},
           {"mathMode", "IEEE, fused multiply-add, free order of sums"},
           {"boundaries", {"native", "call"}},
           {"details",
            {{"build", __INTEL_MKL_BUILD_DATE},
             {"note", "small products on one thread are the kernels that MKL "
                      "generates (mkl_jit_create_sgemm)"}}}})
          .dump();
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return prepare(request, memory, why, whyBytes,
                 [](const Request &request) -> std::unique_ptr<Problem> {
                   useThreads(request.threads());
                   if (request.op() == "gemm" && request.dtype() == "f32" &&
                       !request.has("c0") && request.threads() == 1) {
                     auto generated = std::make_unique<Generated>(request);
                     if (generated->exists())
                       return generated;
                   }
                   return makeCblasGemm(request);
                 });
}
