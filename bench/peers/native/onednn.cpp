//===- bench/peers/native/onednn.cpp - oneDNN -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clang-format off
// packages: libdnnl2 libdnnl-dev
// libraries: -ldnnl -fopenmp=libgomp
// clang-format on
//
//===----------------------------------------------------------------------===//

#include "bench/peers/native/request.h"

#include <dnnl.hpp>

#include <dlfcn.h>

#include <unordered_map>
#include <vector>

using namespace tessera::peers;

namespace {

using dnnl::memory;
using dnnl::prop_kind;

memory::data_type typeOf(const std::string &dtype) {
  if (dtype == "f32")
    return memory::data_type::f32;
  if (dtype == "bf16")
    return memory::data_type::bf16;
  throw Unsupported("no arrays of " + dtype);
}

memory::desc dense(const std::vector<int64_t> &extents, memory::data_type type,
                   bool swapped = false) {
  std::vector<int64_t> strides(extents.size(), 1);
  size_t last = extents.size() - 1;
  for (size_t i = last; i > 0; --i)
    strides[i - 1] = strides[i] * extents[i];
  // The last two axes stand in memory the other way round.
  if (swapped) {
    strides[last] = extents[last - 1];
    strides[last - 1] = 1;
  }
  return {extents, type, strides};
}

/// Primitives that run one after another.
class Chain : public Problem {
public:
  Chain() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {}

  memory bind(const memory::desc &desc, void *data) {
    return memory(desc, engine, data);
  }
  void add(const dnnl::primitive &primitive,
           std::unordered_map<int, memory> arguments) {
    steps.push_back({primitive, std::move(arguments)});
  }
  void run() override {
    for (Step &step : steps)
      step.primitive.execute(stream, step.arguments);
    stream.wait();
  }

  dnnl::engine engine;

private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, memory> arguments;
  };
  dnnl::stream stream;
  std::vector<Step> steps;
};

/// One elementwise operation on a matrix, then a binary one with another.
std::unique_ptr<Problem> eltwiseThen(const Request &request,
                                     dnnl::algorithm first, float alpha,
                                     const char *input, dnnl::algorithm second,
                                     const char *other) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = dense({request.dim("rows"), request.dim("cols")},
                              typeOf(request.dtype()));
  memory x = chain->bind(matrix, request.array<void>(input));
  memory r = chain->bind(matrix, request.array<void>(other));
  memory y = chain->bind(matrix, request.array<void>("y"));
  dnnl::eltwise_forward::desc eltwise(prop_kind::forward_inference, first,
                                      matrix, alpha, 0);
  chain->add(dnnl::eltwise_forward({eltwise, chain->engine}),
             {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  dnnl::binary::desc binary(second, matrix, matrix, matrix);
  chain->add(dnnl::binary({binary, chain->engine}),
             {{DNNL_ARG_SRC_0, y}, {DNNL_ARG_SRC_1, r}, {DNNL_ARG_DST, y}});
  return chain;
}

std::unique_ptr<Problem> softmax(const Request &request) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = dense({request.dim("rows"), request.dim("cols")},
                              typeOf(request.dtype()));
  dnnl::softmax_v2_forward::desc desc(prop_kind::forward_inference,
                                      dnnl::algorithm::softmax_accurate, matrix,
                                      matrix, 1);
  chain->add(dnnl::softmax_v2_forward({desc, chain->engine}),
             {{DNNL_ARG_SRC, chain->bind(matrix, request.array<void>("x"))},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))}});
  return chain;
}

std::unique_ptr<Problem> layerNorm(const Request &request) {
  // Scale and shift are f32 whatever the storage.
  if (request.dtype() != "f32")
    throw Unsupported("scale and shift of a layer_norm are f32 only");
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = dense({request.dim("rows"), request.dim("cols")},
                              typeOf(request.dtype()));
  memory::desc vector = dense({request.dim("cols")}, memory::data_type::f32);
  dnnl::layer_normalization_forward::desc desc(
      prop_kind::forward_inference, matrix,
      static_cast<float>(request.setting("eps", 1e-5)),
      dnnl::normalization_flags::use_scale |
          dnnl::normalization_flags::use_shift);
  chain->add(dnnl::layer_normalization_forward({desc, chain->engine}),
             {{DNNL_ARG_SRC, chain->bind(matrix, request.array<void>("x"))},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))},
              {DNNL_ARG_SCALE, chain->bind(vector, request.array<void>("w"))},
              {DNNL_ARG_SHIFT, chain->bind(vector, request.array<void>("b"))}});
  return chain;
}

std::unique_ptr<Problem> rowSum(const Request &request) {
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  int64_t rows = request.dim("rows");
  memory::desc matrix = dense({rows, request.dim("cols")}, type);
  memory::desc sums = dense({rows, 1}, type);
  dnnl::reduction::desc desc(dnnl::algorithm::reduction_sum, matrix, sums, 0,
                             0);
  chain->add(dnnl::reduction({desc, chain->engine}),
             {{DNNL_ARG_SRC, chain->bind(matrix, request.array<void>("x"))},
              {DNNL_ARG_DST, chain->bind(sums, request.array<void>("y"))}});
  return chain;
}

std::unique_ptr<Problem> add(const Request &request) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = dense({request.dim("rows"), request.dim("cols")},
                              typeOf(request.dtype()));
  dnnl::binary::desc desc(dnnl::algorithm::binary_add, matrix, matrix, matrix);
  chain->add(dnnl::binary({desc, chain->engine}),
             {{DNNL_ARG_SRC_0, chain->bind(matrix, request.array<void>("a"))},
              {DNNL_ARG_SRC_1, chain->bind(matrix, request.array<void>("b"))},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))}});
  return chain;
}

std::unique_ptr<Problem> product(const Request &request) {
  if (request.has("c0"))
    throw Unsupported("beta needs the sum in another array than c");
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  int64_t m = request.dim("m"), n = request.dim("n"), k = request.dim("k");
  std::vector<int64_t> batch;
  if (request.op() == "bmm")
    batch.push_back(request.dim("batch"));
  auto with = [&](int64_t rows, int64_t cols) {
    std::vector<int64_t> extents = batch;
    extents.insert(extents.end(), {rows, cols});
    return extents;
  };
  memory::desc a = dense(with(m, k), type, request.flag("trans_a"));
  memory::desc b = dense(with(k, n), type, request.flag("trans_b"));
  memory::desc c = dense(with(m, n), type);
  dnnl::matmul::desc desc(a, b, c);
  chain->add(dnnl::matmul({desc, chain->engine}),
             {{DNNL_ARG_SRC, chain->bind(a, request.array<void>("a"))},
              {DNNL_ARG_WEIGHTS, chain->bind(b, request.array<void>("b"))},
              {DNNL_ARG_DST, chain->bind(c, request.array<void>("c"))}});
  return chain;
}

std::unique_ptr<Problem> make(const Request &request) {
  std::string op = request.op();
  if (op == "softmax")
    return softmax(request);
  if (op == "layer_norm")
    return layerNorm(request);
  if (op == "row_sum")
    return rowSum(request);
  if (op == "add")
    return add(request);
  if (op == "gelu_residual")
    return eltwiseThen(request, dnnl::algorithm::eltwise_gelu_tanh, 0, "x",
                       dnnl::algorithm::binary_add, "r");
  if (op == "swiglu")
    return eltwiseThen(request, dnnl::algorithm::eltwise_swish, 1, "gate",
                       dnnl::algorithm::binary_mul, "up");
  if (op == "gemm" || op == "bmm")
    return product(request);
  throw Unsupported("no primitive, or pair of them, computes " + op);
}

} // namespace

extern "C" const char *tessera_peer_describe(void) {
  static const std::string text = [] {
    const dnnl_version_t *version = dnnl_version();
    return nlohmann::json(
               {{"name", "onednn"},
                {"version", std::to_string(version->major) + "." +
                                std::to_string(version->minor) + "." +
                                std::to_string(version->patch)},
                {"mathMode", "strict, IEEE f32 accumulation"},
                {"boundaries", {"native", "call"}},
                {"details",
                 {{"hash", version->hash},
                  {"isa", static_cast<int>(dnnl::get_effective_cpu_isa())},
                  {"note", "gelu_residual and swiglu are two primitives"}}}})
        .dump();
  }();
  return text.c_str();
}

extern "C" void *tessera_peer_prepare(const char *request, void *memory,
                                      char *why, size_t whyBytes) {
  return prepare(request, memory, why, whyBytes, [](const Request &request) {
    try {
      return make(request);
    } catch (const dnnl::error &error) {
      if (error.status == dnnl_unimplemented)
        throw Unsupported(error.what());
      throw;
    }
  });
}
