//===- onednn_primitives.h - The operators in oneDNN ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What oneDNN computes of the operators, for versions 2 and 3 of its interface,
// and the functions of peer.h. A plug-in includes this after the head that
// names its library.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_PEERS_NATIVE_ONEDNN_PRIMITIVES_H
#define TESSERA_BENCH_PEERS_NATIVE_ONEDNN_PRIMITIVES_H

#include "bench/peers/native/request.h"

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::peers {

using dnnl::memory;
using dnnl::prop_kind;

// --- The two interfaces -----------------------------------------------------

// Version 3 makes a primitive_desc of what version 2 puts into a desc first.
#if DNNL_VERSION_MAJOR >= 3

template <typename Primitive, typename... Args>
typename Primitive::primitive_desc
describe(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
         const Args &...args) {
  return {engine, args..., attributes};
}

using Softmax = dnnl::softmax_forward;

inline void append(dnnl::post_ops &ops, dnnl::algorithm kind, float alpha,
                   float beta) {
  ops.append_eltwise(kind, alpha, beta);
}

#else

template <typename Primitive, typename... Args>
typename Primitive::primitive_desc
describe(const dnnl::engine &engine, const dnnl::primitive_attr &attributes,
         const Args &...args) {
  return {typename Primitive::desc(args...), attributes, engine};
}

using Softmax = dnnl::softmax_v2_forward;

inline void append(dnnl::post_ops &ops, dnnl::algorithm kind, float alpha,
                   float beta) {
  ops.append_eltwise(1, kind, alpha, beta);
}

#endif

// --- Arrays and chains of primitives ----------------------------------------

inline memory::data_type typeOf(const std::string &dtype) {
  if (dtype == "f32")
    return memory::data_type::f32;
  if (dtype == "bf16")
    return memory::data_type::bf16;
  throw Unsupported("no arrays of " + dtype);
}

/// Row-major; with `swapped`, the last two axes stand in memory the other way
/// round.
inline memory::desc dense(const std::vector<int64_t> &extents,
                          memory::data_type type, bool swapped = false) {
  std::vector<int64_t> strides(extents.size(), 1);
  size_t last = extents.size() - 1;
  for (size_t i = last; i > 0; --i)
    strides[i - 1] = strides[i] * extents[i];
  if (swapped) {
    strides[last] = extents[last - 1];
    strides[last - 1] = 1;
  }
  return {extents, type, strides};
}

using Arguments = std::unordered_map<int, memory>;

/// Primitives that run one after another.
class Chain : public Problem {
public:
  Chain() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {}

  memory bind(const memory::desc &desc, void *data) {
    return memory(desc, engine, data);
  }
  /// An array between two primitives.
  memory temporary(const memory::desc &desc) { return memory(desc, engine); }
  void add(const dnnl::primitive &primitive, Arguments arguments) {
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
    Arguments arguments;
  };
  dnnl::stream stream;
  std::vector<Step> steps;
};

/// The same extents and type, in whatever layout a primitive likes best.
inline memory::desc anyLayout(const std::vector<int64_t> &extents,
                              memory::data_type type) {
  return {extents, type, memory::format_tag::any};
}

/// An input in the layout that a primitive wants: itself, or a copy that each
/// call makes.
inline memory inLayout(Chain &chain, const memory &plain,
                       const memory::desc &wanted) {
  if (plain.get_desc() == wanted)
    return plain;
  memory copy = chain.temporary(wanted);
  chain.add(dnnl::reorder(plain, copy),
            {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, copy}});
  return copy;
}

/// Makes a problem's primitives for arrays as they are, or (true) for layouts
/// that oneDNN chooses.
using Way = std::function<std::unique_ptr<Chain>(bool)>;

/// The faster of the two, which a user would find out once. The arrays are
/// plain and their contents change between calls, so copies to layouts of
/// oneDNN's own are a part of each call.
inline std::unique_ptr<Problem> fasterWay(const Way &make) {
  std::unique_ptr<Problem> best;
  double least = std::numeric_limits<double>::infinity();
  std::string why;
  for (bool isAny : {false, true}) {
    std::unique_ptr<Chain> way;
    try {
      way = make(isAny);
    } catch (const dnnl::error &error) {
      if (error.status != dnnl_unimplemented)
        throw;
      why = error.what();
      continue;
    }
    using Clock = std::chrono::steady_clock;
    constexpr int calls = 4;
    double time = std::numeric_limits<double>::infinity();
    // The first call also sets things up.
    for (int call = 0; call < calls; ++call) {
      const Clock::time_point begin = Clock::now();
      way->run();
      const std::chrono::duration<double> taken = Clock::now() - begin;
      if (call > 0)
        time = std::min(time, taken.count());
    }
    if (time < least) {
      least = time;
      best = std::move(way);
    }
  }
  if (!best)
    throw Unsupported(why);
  return best;
}

/// What is applied to a primitive's result before it is stored.
class PostOps {
public:
  void eltwise(dnnl::algorithm kind, float alpha, float beta) {
    append(ops, kind, alpha, beta);
  }
  void binary(dnnl::algorithm kind, const memory &other) {
    arguments.emplace(
        DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len()) | DNNL_ARG_SRC_1, other);
    ops.append_binary(kind, other.get_desc());
  }
  dnnl::primitive_attr attributes() const {
    dnnl::primitive_attr result;
    result.set_post_ops(ops);
    return result;
  }
  Arguments with(Arguments others) const {
    others.insert(arguments.begin(), arguments.end());
    return others;
  }

private:
  dnnl::post_ops ops;
  Arguments arguments;
};

inline memory::desc matrixOf(const Request &request) {
  return dense({request.dim("rows"), request.dim("cols")},
               typeOf(request.dtype()));
}

// --- Rows -------------------------------------------------------------------

/// Whether oneDNN has generated code for it. Its reference implementations are
/// there for completeness, element by element.
template <typename Desc> bool isGenerated(const Desc &desc) {
  return std::string_view(desc.impl_info_str()).find("ref") ==
         std::string_view::npos;
}

/// One elementwise operation on a matrix, then a binary one with another: one
/// primitive where oneDNN has generated code for that, or two.
inline std::unique_ptr<Problem>
eltwiseThen(const Request &request, dnnl::algorithm first, float alpha,
            const char *input, dnnl::algorithm second, const char *other) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = matrixOf(request);
  memory x = chain->bind(matrix, request.array<void>(input));
  memory r = chain->bind(matrix, request.array<void>(other));
  memory y = chain->bind(matrix, request.array<void>("y"));
  auto eltwise = [&](const dnnl::primitive_attr &attributes) {
    return describe<dnnl::eltwise_forward>(
        chain->engine, attributes, prop_kind::forward_inference, first, matrix,
#if DNNL_VERSION_MAJOR >= 3
        matrix,
#endif
        alpha, 0.0f);
  };
  PostOps fused;
  fused.binary(second, r);
  try {
    if (auto desc = eltwise(fused.attributes()); isGenerated(desc)) {
      chain->add(dnnl::eltwise_forward(desc),
                 fused.with({{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}));
      return chain;
    }
  } catch (const dnnl::error &error) {
    if (error.status != dnnl_unimplemented)
      throw;
  }
  chain->add(dnnl::eltwise_forward(eltwise({})),
             {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  auto binary =
      describe<dnnl::binary>(chain->engine, {}, second, matrix, matrix, matrix);
  chain->add(dnnl::binary(binary),
             {{DNNL_ARG_SRC_0, y}, {DNNL_ARG_SRC_1, r}, {DNNL_ARG_DST, y}});
  return chain;
}

inline std::unique_ptr<Problem> softmax(const Request &request) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = matrixOf(request);
  auto desc =
      describe<Softmax>(chain->engine, {}, prop_kind::forward_inference,
                        dnnl::algorithm::softmax_accurate, matrix, matrix, 1);
  chain->add(Softmax(desc),
             {{DNNL_ARG_SRC, chain->bind(matrix, request.array<void>("x"))},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))}});
  return chain;
}

/// Of x, or of x + r.
inline std::unique_ptr<Problem> layerNorm(const Request &request) {
  // Scale and shift are f32 whatever the storage.
  if (request.dtype() != "f32")
    throw Unsupported("scale and shift of a layer_norm are f32 only");
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = matrixOf(request);
  memory::desc vector = dense({request.dim("cols")}, memory::data_type::f32);
  memory x = chain->bind(matrix, request.array<void>("x"));
  if (request.has("r")) {
    memory total = chain->temporary(matrix);
    auto sum = describe<dnnl::binary>(
        chain->engine, {}, dnnl::algorithm::binary_add, matrix, matrix, matrix);
    chain->add(dnnl::binary(sum),
               {{DNNL_ARG_SRC_0, x},
                {DNNL_ARG_SRC_1, chain->bind(matrix, request.array<void>("r"))},
                {DNNL_ARG_DST, total}});
    x = total;
  }
  auto desc = describe<dnnl::layer_normalization_forward>(
      chain->engine, {}, prop_kind::forward_inference, matrix,
#if DNNL_VERSION_MAJOR >= 3
      matrix,
#endif
      static_cast<float>(request.setting("eps", 1e-5)),
      dnnl::normalization_flags::use_scale |
          dnnl::normalization_flags::use_shift);
  chain->add(dnnl::layer_normalization_forward(desc),
             {{DNNL_ARG_SRC, x},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))},
              {DNNL_ARG_SCALE, chain->bind(vector, request.array<void>("w"))},
              {DNNL_ARG_SHIFT, chain->bind(vector, request.array<void>("b"))}});
  return chain;
}

inline std::unique_ptr<Problem> reduction(const Request &request,
                                          dnnl::algorithm kind,
                                          bool alongRows = false) {
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  memory::desc results = alongRows ? dense({1, request.dim("cols")}, type)
                                   : dense({request.dim("rows"), 1}, type);
  memory::desc matrix = matrixOf(request);
  auto desc = describe<dnnl::reduction>(chain->engine, {}, kind, matrix,
                                        results, 0.0f, 0.0f);
  chain->add(dnnl::reduction(desc),
             {{DNNL_ARG_SRC, chain->bind(matrix, request.array<void>("x"))},
              {DNNL_ARG_DST, chain->bind(results, request.array<void>("y"))}});
  return chain;
}

inline std::unique_ptr<Problem> add(const Request &request) {
  auto chain = std::make_unique<Chain>();
  memory::desc matrix = matrixOf(request);
  auto desc = describe<dnnl::binary>(
      chain->engine, {}, dnnl::algorithm::binary_add, matrix, matrix, matrix);
  chain->add(dnnl::binary(desc),
             {{DNNL_ARG_SRC_0, chain->bind(matrix, request.array<void>("a"))},
              {DNNL_ARG_SRC_1, chain->bind(matrix, request.array<void>("b"))},
              {DNNL_ARG_DST, chain->bind(matrix, request.array<void>("y"))}});
  return chain;
}

/// copy and transpose.
inline std::unique_ptr<Problem> reorder(const Request &request, bool swapped) {
  auto chain = std::make_unique<Chain>();
  memory::desc to = dense({request.dim("rows"), request.dim("cols")},
                          typeOf(request.dtype()), swapped);
  memory x = chain->bind(matrixOf(request), request.array<void>("x"));
  memory y = chain->bind(to, request.array<void>("y"));
  chain->add(dnnl::reorder(x, y), {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, y}});
  return chain;
}

// --- Products ---------------------------------------------------------------

/// What follows the product itself.
inline PostOps epilogue(const Request &request, Chain &chain, int64_t m,
                        int64_t n) {
  PostOps ops;
  auto number = [&](const char *name, double otherwise) {
    return static_cast<float>(request.setting(name, otherwise));
  };
  if (request.op() == "gemm_affine_leaky") {
    ops.eltwise(dnnl::algorithm::eltwise_linear, number("scale", 0.375),
                number("shift", -0.25));
    // z below 0 is multiplied; the operator takes the larger of both.
    float slope = number("slope", 0.1);
    if (!(slope >= 0 && slope <= 1))
      throw Unsupported("a leaky clamp with slopes from 0 to 1 only");
    ops.eltwise(dnnl::algorithm::eltwise_relu, slope, 0);
  }
  if (request.has("c0")) {
    if (number("beta", 1) != 1)
      throw Unsupported("adds another array only as it is");
    ops.binary(dnnl::algorithm::binary_add,
               chain.bind(dense({m, n}, typeOf(request.dtype())),
                          request.array<void>("c0")));
  }
  if (request.op() == "gemm_epilogue") {
    memory::data_type type = typeOf(request.dtype());
    if (float scale = number("scale", 1); scale != 1)
      ops.eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
    if (request.has("bias"))
      ops.binary(dnnl::algorithm::binary_add,
                 chain.bind(dense({1, n}, type), request.array<void>("bias")));
    switch (request.choice("activation", {"none", "relu", "gelu", "silu"})) {
    case 1:
      ops.eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
      break;
    case 2:
      ops.eltwise(dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
      break;
    case 3:
      ops.eltwise(dnnl::algorithm::eltwise_swish, 1, 0);
      break;
    }
    if (request.has("residual"))
      ops.binary(
          dnnl::algorithm::binary_add,
          chain.bind(dense({m, n}, type), request.array<void>("residual")));
  }
  return ops;
}

/// Sums of i32, scaled by columns as they are stored and by rows by a second
/// primitive: oneDNN has generated code for either, not for both at once.
inline std::unique_ptr<Chain> quantizedProduct(const Request &request,
                                               bool isAny) {
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  int64_t m = request.dim("m"), n = request.dim("n"), k = request.dim("k");
  memory::desc a = dense({m, k}, memory::data_type::s8);
  memory::desc b = dense({k, n}, memory::data_type::s8);
  memory::desc c = dense({m, n}, type), rows = dense({m, 1}, type);
  memory result = chain->bind(c, request.array<void>("c"));
  PostOps ops;
  ops.binary(dnnl::algorithm::binary_mul,
             chain->bind(dense({1, n}, type), request.array<void>("scale_b")));
  auto desc = describe<dnnl::matmul>(
      chain->engine, ops.attributes(), a,
      isAny ? anyLayout({k, n}, memory::data_type::s8) : b, c);
  memory weights = inLayout(*chain, chain->bind(b, request.array<void>("b")),
                            desc.weights_desc());
  chain->add(dnnl::matmul(desc),
             ops.with({{DNNL_ARG_SRC, chain->bind(a, request.array<void>("a"))},
                       {DNNL_ARG_WEIGHTS, weights},
                       {DNNL_ARG_DST, result}}));
  auto scale = describe<dnnl::binary>(chain->engine, {},
                                      dnnl::algorithm::binary_mul, c, rows, c);
  chain->add(
      dnnl::binary(scale),
      {{DNNL_ARG_SRC_0, result},
       {DNNL_ARG_SRC_1, chain->bind(rows, request.array<void>("scale_a"))},
       {DNNL_ARG_DST, result}});
  return chain;
}

inline std::unique_ptr<Chain> convolution(const Request &request, bool isAny) {
  const bool isDepthwise = request.op() != "conv2d";
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  int64_t n = request.dim("n"), c = request.dim("c"), h = request.dim("h"),
          w = request.dim("w"), kh = request.dim("kh"), kw = request.dim("kw");
  int64_t f = isDepthwise ? c : request.dim("f");
  auto whole = [&](const char *name, double otherwise) {
    return static_cast<int64_t>(request.setting(name, otherwise));
  };
  int64_t stride = whole("stride", 1), pad = whole("pad", 0),
          dilation = whole("dilation", 1);
  auto places = [&](int64_t extent, int64_t window) {
    return (extent + 2 * pad - (window - 1) * dilation - 1) / stride + 1;
  };
  const std::vector<int64_t> extents[] = {
      {n, c, h, w},
      isDepthwise ? std::vector<int64_t>{c, 1, 1, kh, kw}
                  : std::vector<int64_t>{f, c, kh, kw},
      {n, f, places(h, kh), places(w, kw)}};
  auto layout = [&](size_t number) {
    return isAny ? anyLayout(extents[number], type)
                 : dense(extents[number], type);
  };
  memory::desc bias = request.has("bias") ? dense({f}, type) : memory::desc();
  memory::dims strides{stride, stride}, pads{pad, pad},
      dilations{dilation - 1, dilation - 1};
  auto desc = describe<dnnl::convolution_forward>(
      chain->engine, {}, prop_kind::forward_inference,
      dnnl::algorithm::convolution_auto, layout(0), layout(1), bias, layout(2),
      strides, dilations, pads, pads);
  auto plain = [&](size_t number, const char *name) {
    return chain->bind(dense(extents[number], type), request.array<void>(name));
  };
  memory y = plain(2, "y");
  memory result =
      y.get_desc() == desc.dst_desc() ? y : chain->temporary(desc.dst_desc());
  Arguments arguments{
      {DNNL_ARG_SRC, inLayout(*chain, plain(0, "x"), desc.src_desc())},
      {DNNL_ARG_WEIGHTS, inLayout(*chain, plain(1, "w"), desc.weights_desc())},
      {DNNL_ARG_DST, result}};
  if (request.has("bias"))
    arguments.emplace(DNNL_ARG_BIAS,
                      chain->bind(bias, request.array<void>("bias")));
  chain->add(dnnl::convolution_forward(desc), std::move(arguments));
  if (y.get_desc() != desc.dst_desc())
    chain->add(dnnl::reorder(result, y),
               {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, y}});
  return chain;
}

inline std::unique_ptr<Chain> product(const Request &request, bool isAny) {
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
  PostOps ops = epilogue(request, *chain, m, n);
  auto desc =
      describe<dnnl::matmul>(chain->engine, ops.attributes(), a,
                             isAny ? anyLayout(with(k, n), type) : b, c);
  memory weights = inLayout(*chain, chain->bind(b, request.array<void>("b")),
                            desc.weights_desc());
  chain->add(
      dnnl::matmul(desc),
      ops.with({{DNNL_ARG_SRC, chain->bind(a, request.array<void>("a"))},
                {DNNL_ARG_WEIGHTS, weights},
                {DNNL_ARG_DST, chain->bind(c, request.array<void>("c"))}}));
  return chain;
}

/// Product, softmax, product, with the scores in memory between them.
inline std::unique_ptr<Problem> attention(const Request &request) {
  if (request.flag("causal") || request.has("mask") || request.has("lengths") ||
      request.has("lse"))
    throw Unsupported("attention: neither masks nor the log-sum");
  auto chain = std::make_unique<Chain>();
  memory::data_type type = typeOf(request.dtype());
  int64_t b = request.dim("b"), heads = request.dim("hkv");
  int64_t group = request.dim("hq") / heads, q = request.dim("q");
  int64_t k = request.dim("k"), d = request.dim("d"), dv = request.dim("dv");
  // Queries that share keys and values are rows of one product.
  memory::desc queries = dense({b * heads, group * q, d}, type);
  memory::desc keys = dense({b * heads, d, k}, type, /*swapped=*/true);
  memory::desc scores = dense({b * heads, group * q, k}, type);
  memory::desc values = dense({b * heads, k, dv}, type);
  memory::desc results = dense({b * heads, group * q, dv}, type);
  memory between = chain->temporary(scores);
  PostOps scaled;
  scaled.eltwise(dnnl::algorithm::eltwise_linear,
                 static_cast<float>(request.setting(
                     "scale", 1 / std::sqrt(static_cast<double>(d)))),
                 0);
  auto first = describe<dnnl::matmul>(chain->engine, scaled.attributes(),
                                      queries, keys, scores);
  chain->add(dnnl::matmul(first),
             {{DNNL_ARG_SRC, chain->bind(queries, request.array<void>("q"))},
              {DNNL_ARG_WEIGHTS, chain->bind(keys, request.array<void>("k"))},
              {DNNL_ARG_DST, between}});
  auto second =
      describe<Softmax>(chain->engine, {}, prop_kind::forward_inference,
                        dnnl::algorithm::softmax_accurate, scores, scores, 2);
  chain->add(Softmax(second),
             {{DNNL_ARG_SRC, between}, {DNNL_ARG_DST, between}});
  auto third =
      describe<dnnl::matmul>(chain->engine, {}, scores, values, results);
  chain->add(dnnl::matmul(third),
             {{DNNL_ARG_SRC, between},
              {DNNL_ARG_WEIGHTS, chain->bind(values, request.array<void>("v"))},
              {DNNL_ARG_DST, chain->bind(results, request.array<void>("o"))}});
  return chain;
}

// --- The plug-in ------------------------------------------------------------

inline std::unique_ptr<Problem> makePrimitives(const Request &request) {
  std::string op = request.op();
  if (op == "softmax")
    return softmax(request);
  if (op == "layer_norm" || op == "residual_layer_norm")
    return layerNorm(request);
  if (op == "row_sum")
    return reduction(request, dnnl::algorithm::reduction_sum);
  if (op == "row_mean")
    return reduction(request, dnnl::algorithm::reduction_mean);
  if (op == "row_max")
    return reduction(request, dnnl::algorithm::reduction_max);
  if (op == "col_sum")
    return reduction(request, dnnl::algorithm::reduction_sum,
                     /*alongRows=*/true);
  if (op == "add")
    return add(request);
  if (op == "copy" || op == "transpose")
    return reorder(request, /*swapped=*/op == "transpose");
  if (op == "gelu_residual")
    return eltwiseThen(request, dnnl::algorithm::eltwise_gelu_tanh, 0, "x",
                       dnnl::algorithm::binary_add, "r");
  if (op == "swiglu")
    return eltwiseThen(request, dnnl::algorithm::eltwise_swish, 1, "gate",
                       dnnl::algorithm::binary_mul, "up");
  if (op == "gemm" || op == "bmm" || op == "gemm_affine_leaky" ||
      op == "gemm_epilogue")
    return fasterWay([&](bool isAny) { return product(request, isAny); });
  if (op == "gemm_q8")
    return fasterWay(
        [&](bool isAny) { return quantizedProduct(request, isAny); });
  if (op == "conv2d" || op == "depthwise_conv2d")
    return fasterWay([&](bool isAny) { return convolution(request, isAny); });
  if (op == "attention")
    return attention(request);
  throw Unsupported("no primitive, or chain of them, computes " + op);
}

inline std::string describeOnednn(const char *name) {
  const dnnl_version_t *version = dnnl_version();
  return nlohmann::json(
             {{"name", name},
              {"version", std::to_string(version->major) + "." +
                              std::to_string(version->minor) + "." +
                              std::to_string(version->patch)},
              {"mathMode", "strict, IEEE f32 accumulation"},
              {"boundaries", {"native", "call"}},
              {"details",
               {{"hash", version->hash},
                {"isa", static_cast<int>(dnnl::get_effective_cpu_isa())},
                {"note", "epilogues are post-ops; gelu_residual and swiglu are "
                         "two primitives where oneDNN has no generated code "
                         "for one; residual_layer_norm is two, gemm_q8 two, "
                         "attention three; products and convolutions are "
                         "made for plain arrays and for layouts that oneDNN "
                         "chooses, with the copies to and from these in each "
                         "call, and the faster way is taken"}}}})
      .dump();
}

inline void *prepareOnednn(const char *request, void *memory, char *why,
                           size_t whyBytes) {
  return prepare(request, memory, why, whyBytes, [](const Request &request) {
    try {
      return makePrimitives(request);
    } catch (const dnnl::error &error) {
      if (error.status == dnnl_unimplemented)
        throw Unsupported(error.what());
      throw;
    }
  });
}

} // namespace tessera::peers

#endif // TESSERA_BENCH_PEERS_NATIVE_ONEDNN_PRIMITIVES_H
