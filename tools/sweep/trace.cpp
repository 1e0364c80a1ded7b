//===- sweep/trace.cpp - The vector math library as operations ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tessera-math-trace prints, as JSON, the operations that each f64 function of
// the vector math library consists of, for every tier and ISA: the headers are
// instantiated on a builder that records. scripts/math_proof proves its bounds
// on these records, so that it argues about the code as written. Each record
// carries the stated bounds, and arguments with the results of the compiled
// kernels (where the host has the ISA), on which a record is checked.
//
//   {"hash": ..., "functions": [{"function", "tier", "isa", "stated",
//     "tier_bound", "nodes": [[operation, operand, ...]], "output": index,
//     "samples": [[argument's bits, result's bits]]}]}
//
// A node's operands are indices of earlier nodes; "x" has none, "constF" and
// "constI" have their bits, the shifts a count after the operand. One builder
// call is one node; equal calls share one (fma without FMA is mul and add).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/math_accuracy.h"
#include "sweep/accuracy.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <cstdio>
#include <map>
#include <vector>

using namespace tessera;
using namespace tessera::sweep;
using nlohmann::ordered_json;
using vmath::Accuracy;
using vmath::Function;

namespace {

/// Records what an emitting builder would emit.
class RecordingBuilder {
public:
  struct Value {
    int64_t node = 0;
  };
  using Int = Value;
  using Mask = Value;
  struct Node {
    const char *operation;
    std::vector<int64_t> operands;
  };

  explicit RecordingBuilder(Isa isa) : isa(isa) {}

  Value x() { return record("x", {}); }
  Value constF(double c) {
    return record("constF", {std::bit_cast<int64_t>(c)});
  }
  Value constI(int64_t c) { return record("constI", {c}); }
  Value add(Value a, Value c) { return record("add", {a.node, c.node}); }
  Value sub(Value a, Value c) { return record("sub", {a.node, c.node}); }
  Value mul(Value a, Value c) { return record("mul", {a.node, c.node}); }
  Value div(Value a, Value c) { return record("div", {a.node, c.node}); }
  bool hasFMA() { return isa != Isa::Baseline; }
  Value fma(Value a, Value c, Value d) {
    return hasFMA() ? record("fma", {a.node, c.node, d.node})
                    : add(mul(a, c), d);
  }
  Value neg(Value a) { return record("neg", {a.node}); }
  Value abs(Value a) { return record("abs", {a.node}); }
  Value sqrt(Value a) { return record("sqrt", {a.node}); }
  Value min(Value a, Value c) { return record("min", {a.node, c.node}); }
  Value max(Value a, Value c) { return record("max", {a.node, c.node}); }
  Value lt(Value a, Value c) { return record("lt", {a.node, c.node}); }
  Value eq(Value a, Value c) { return record("eq", {a.node, c.node}); }
  Value select(Value m, Value a, Value c) {
    return record("select", {m.node, a.node, c.node});
  }
  Value toBits(Value a) { return record("toBits", {a.node}); }
  Value fromBits(Value a) { return record("fromBits", {a.node}); }
  Value iadd(Value a, Value c) { return record("iadd", {a.node, c.node}); }
  Value isub(Value a, Value c) { return record("isub", {a.node, c.node}); }
  Value imul(Value a, Value c) { return record("imul", {a.node, c.node}); }
  Value iand(Value a, Value c) { return record("iand", {a.node, c.node}); }
  Value ior(Value a, Value c) { return record("ior", {a.node, c.node}); }
  Value ixor(Value a, Value c) { return record("ixor", {a.node, c.node}); }
  Value shl(Value a, unsigned n) { return record("shl", {a.node, n}); }
  Value lshr(Value a, unsigned n) { return record("lshr", {a.node, n}); }
  Value shlv(Value a, Value c) { return record("shlv", {a.node, c.node}); }
  Value ieq(Value a, Value c) { return record("ieq", {a.node, c.node}); }
  Value iselect(Value m, Value a, Value c) {
    return record("select", {m.node, a.node, c.node});
  }
  bool hasScalef() { return isa == Isa::Avx512; }
  Value scalef(Value a, Value n) { return record("scalef", {a.node, n.node}); }
  template <class Then> Value ifAny(Value m, Value otherwise, Then then) {
    return record("ifAny", {m.node, otherwise.node, then().node});
  }

  std::vector<Node> nodes;

private:
  Value record(const char *operation, std::vector<int64_t> operands) {
    auto [place, isNew] =
        known.try_emplace({operation, operands}, int64_t(nodes.size()));
    if (isNew)
      nodes.push_back({operation, std::move(operands)});
    return {place->second};
  }

  Isa isa;
  std::map<std::pair<std::string, std::vector<int64_t>>, int64_t> known;
};

/// Arguments of every kind, of a fixed sequence.
std::vector<double> sampleArguments() {
  std::vector<double> arguments = {0.0, -0.0, 1, -1, 0x1p-1074, 0x1p-1022, 710};
  uint64_t state = 1;
  auto next = [&] {
    state = state * 6364136223846793005 + 1442695040888963407;
    return state ^ (state >> 29);
  };
  while (arguments.size() % kernelStep != 0 || arguments.size() < 480) {
    uint64_t bits = next(), kind = next() % 3;
    double unit = double(bits >> 11) * 0x1p-53;
    double sign = bits & 1 ? -1 : 1;
    if (kind == 0)
      arguments.push_back(sign * unit * 750);
    else if (kind == 1)
      arguments.push_back(sign * unit * 4);
    else if (double v = std::bit_cast<double>(bits); v == v)
      arguments.push_back(v);
  }
  return arguments;
}

ordered_json boundOf(double constant, double perX, double absolute) {
  return {{"constant", constant}, {"per_x", perX}, {"absolute", absolute}};
}

ordered_json trace(Function function, Accuracy tier, Isa isa) {
  RecordingBuilder builder(isa);
  auto output =
      vmath::evaluate<vmath::F64>(builder, function, builder.x(), tier);
  vmath::StatedBound stated =
      vmath::statedBound(function, true, tier, vmath::MathIsa(isa));
  Bound promised = tierBound(function, tier);
  ordered_json nodes = ordered_json::array();
  for (const RecordingBuilder::Node &node : builder.nodes) {
    ordered_json row = {node.operation};
    for (int64_t operand : node.operands)
      row.push_back(operand);
    nodes.push_back(row);
  }
  ordered_json samples = ordered_json::array();
  if (hostSupports(isa)) {
    std::vector<double> in = sampleArguments(), out(in.size());
    kernels(isa).f64[unsigned(function)][unsigned(tier)].vector(
        in.data(), out.data(), in.size());
    for (size_t i = 0; i < in.size(); ++i)
      samples.push_back(
          {std::bit_cast<uint64_t>(in[i]), std::bit_cast<uint64_t>(out[i])});
  }
  return {{"function", vmath::name(function)},
          {"tier", tier == Accuracy::Strict ? "strict" : "default"},
          {"isa", name(isa)},
          {"stated", boundOf(stated.constant, stated.perX, stated.absolute)},
          {"tier_bound",
           boundOf(promised.constant, promised.perX, promised.absolute)},
          {"nodes", nodes},
          {"output", output.node},
          {"samples", samples}};
}

} // namespace

int main() {
  ordered_json functions = ordered_json::array();
  for (unsigned i = 0; i < vmath::functionCount; ++i)
    for (Accuracy tier : {Accuracy::Strict, Accuracy::Default})
      for (unsigned isa = 0; isa < isaCount; ++isa)
        functions.push_back(trace(Function(i), tier, Isa(isa)));
  ordered_json document = {{"hash", sourceHash(TESSERA_SOURCE_DIR)},
                           {"functions", functions}};
  std::puts(document.dump().c_str());
  return 0;
}
