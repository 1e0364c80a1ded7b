//===- test/unit/run/cases.cpp - Operators at their edges -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "kernels/elements.h"
#include "test/unit/emulation/emulator.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtest {

using kernels::Dims;
using kernels::Operator;
using kernels::ValueClass;
using session::Backend;
using session::CompiledOperator;
using session::RunRequest;
using session::RunResult;

//===----------------------------------------------------------------------===//
// Machines and subjects
//===----------------------------------------------------------------------===//

int64_t Machine::lanes() const {
  return getTarget(backend == Backend::Cpu ? isa : Isa::Avx512).lanes32();
}

std::string Machine::name() const {
  if (backend == Backend::Interpreter)
    return "interp";
  std::string text(tessera::name(isa));
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::vector<Machine> cpuMachines() {
  std::vector<Machine> result;
  // What avx512-vnni has beside avx512, avx512-bf16 has, too.
  for (Isa isa : hostIsas())
    if (isa != Isa::Avx512Vnni)
      result.push_back({Backend::Cpu, isa});
  return result;
}

std::vector<Machine> emulatedMachines(uint64_t share) {
  std::vector<Machine> result;
  for (Isa isa : emulation::emulatedIsas())
    result.push_back({Backend::Cpu, isa, share});
  return result;
}

bool Machine::takes(std::string_view theCase) const {
  return stableHash(std::string(theCase) + " share") % share == 0;
}

std::string Machine::whyNot() const {
  return backend == Backend::Cpu ? emulation::whyNotRunnable(isa) : "";
}

std::vector<Machine> machines() {
  std::vector<Machine> result = {{Backend::Interpreter, hostIsa()}};
  for (const Machine &machine : cpuMachines())
    result.push_back(machine);
  return result;
}

std::string Subject::name() const {
  return std::string(op->name) + "_" + machine.name();
}

std::ostream &operator<<(std::ostream &stream, const Subject &subject) {
  return stream << subject.name();
}

bool sumsProducts(const Operator &op) {
  auto has = [&](std::string_view dim) {
    return std::find(op.dims.begin(), op.dims.end(), dim) != op.dims.end();
  };
  // Of matrices, of attention, and with filters that are arrays.
  const bool filters =
      std::any_of(op.arrays.begin(), op.arrays.end(),
                  [](const auto &array) { return array.name == "w"; });
  return (has("k") && (has("n") || has("q"))) || (has("kh") && filters);
}

bool addsNarrowProducts(Isa isa) {
  return isa == Isa::Avx512Vnni || isa == Isa::Avx512Bf16 ||
         isa == Isa::Avx512Amx;
}

std::vector<Subject> subjects(const std::vector<Machine> &machines) {
  std::vector<Subject> result;
  for (const Operator &op : kernels::operators())
    for (const Machine &machine : machines)
      if (sumsProducts(op) || machine.backend != Backend::Cpu ||
          !addsNarrowProducts(machine.isa))
        result.push_back({&op, machine});
  return result;
}

uint64_t stableHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3u;
  // The low bits of FNV are weak.
  return (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u >> 32;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

std::vector<int64_t> edgeExtents(int64_t lanes) {
  constexpr int64_t prime = 49999;
  return {0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 65, 4097, prime};
}

Dims admissible(const Operator &op, Dims dims) {
  if (!op.evenDim.empty()) {
    int64_t &extent = dims.find(op.evenDim)->second;
    extent += extent % 2;
  }
  if (!op.multipleDim.empty()) {
    int64_t &whole = dims.find(op.multipleDim)->second;
    int64_t part = dims.find(op.multipleOf)->second;
    whole = part == 0 ? 0 : (whole + part - 1) / part * part;
  }
  return dims;
}

Dims smallDims(const Operator &op) {
  // Different ones, so that mixed-up dimensions show.
  constexpr int64_t small[] = {3, 5, 7};
  Dims dims;
  size_t next = 0;
  for (std::string_view name : op.dims) {
    bool isMinor = name == "b" || name == "batch" || name == op.multipleOf;
    bool isWindow = name == "kh" || name == "kw";
    dims.emplace(name, isMinor    ? 1
                       : isWindow ? 2
                                  : small[next++ % std::size(small)]);
  }
  return admissible(op, dims);
}

std::string_view longDim(const Operator &op) {
  return op.dims.back() == "kw" ? "w" : op.dims.back();
}

static Dims with(Dims dims, std::string_view name, int64_t extent) {
  dims.find(name)->second = extent;
  return dims;
}

static void keep(std::vector<Dims> &result, Dims dims) {
  if (std::find(result.begin(), result.end(), dims) == result.end())
    result.push_back(std::move(dims));
}

std::vector<Dims> singleSweeps(const Operator &op, int64_t lanes) {
  std::vector<Dims> result;
  for (std::string_view name : op.dims)
    for (int64_t extent : edgeExtents(lanes)) {
      Dims dims = smallDims(op);
      // The oracle's time counts for the longest extent, that of windows on
      // many places for long ones.
      const int64_t most = op.dims.size() > 3 ? 1 : 3;
      if (extent > (op.dims.back() == "kw" ? 1'000 : 10'000))
        for (auto &[other, small] : dims)
          small = std::min(small, most);
      keep(result, admissible(op, with(dims, name, extent)));
    }
  return result;
}

std::vector<Dims> pairSweeps(const Operator &op, int64_t lanes,
                             int64_t maxElements) {
  std::vector<Dims> result;
  for (size_t i = 0; i < op.dims.size(); ++i)
    for (size_t j = i + 1; j < op.dims.size(); ++j)
      for (int64_t first : edgeExtents(lanes))
        for (int64_t second : edgeExtents(lanes)) {
          Dims dims = with(smallDims(op), op.dims[i], first);
          dims = admissible(op, with(dims, op.dims[j], second));
          if (totalElements(op, dims) <= maxElements &&
              work(op, dims) <= 8.0 * static_cast<double>(maxElements))
            keep(result, std::move(dims));
        }
  return result;
}

int64_t totalElements(const Operator &op, const Dims &dims) {
  int64_t total = 0;
  for (const kernels::ArrayInfo &array : op.arrays) {
    int64_t count = 1;
    for (int64_t extent : kernels::arrayExtents(array, dims))
      count *= extent;
    total += count;
  }
  return total;
}

double work(const Operator &op, const Dims &dims) {
  auto extent = [&](std::string_view name) {
    return static_cast<double>(dims.find(name)->second);
  };
  if (dims.count("m"))
    return (dims.count("batch") ? extent("batch") : 1) * extent("m") *
           extent("n") * extent("k") / 4;
  if (dims.count("kh")) {
    double places = 1;
    for (int64_t size : kernels::arrayExtents(op.arrays.back(), dims))
      places *= static_cast<double>(size);
    return places * (dims.count("f") ? extent("c") : 1) * extent("kh") *
           extent("kw") / 4;
  }
  if (op.name == "attention")
    return extent("b") * extent("hq") * extent("q") * extent("k") *
           (extent("d") + extent("dv") + 8) / 16;
  return static_cast<double>(totalElements(op, dims));
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

std::vector<ValueClass> acceptanceClasses() {
  return {ValueClass::Normal,       ValueClass::NegativeInfinity,
          ValueClass::SprinkledNan, ValueClass::Subnormal,
          ValueClass::HugeOffset,   ValueClass::SignedZeros};
}

RunRequest requestFor(const Subject &subject, Dims dims, DType dtype) {
  RunRequest request;
  request.dims = std::move(dims);
  request.dtype = dtype;
  request.backend = subject.machine.backend;
  request.isa = subject.machine.isa;
  // No index is valid in an axis of extent 0; unchecked ones give the fill.
  for (const kernels::ArrayInfo &array : subject.op->arrays)
    if (array.content == kernels::Content::Index &&
        request.dims.find(array.limit)->second == 0)
      request.validate = false;
  return request;
}

std::string describe(const Operator &op, const RunRequest &request) {
  std::string text = fmt::format("{} --dims ", op.name);
  bool isFirst = true;
  for (std::string_view name : op.dims) {
    text += fmt::format("{}{}={}", isFirst ? "" : ",", name,
                        request.dims.find(name)->second);
    isFirst = false;
  }
  text += fmt::format(" --dtype {} --backend {}", name(request.dtype),
                      request.backend == Backend::Cpu ? "cpu" : "interp");
  if (request.backend == Backend::Cpu)
    text += fmt::format(" --isa {}", name(request.isa));
  for (const auto &[name, value] : request.settings)
    text += fmt::format(
        " --set {}={}", name,
        std::visit([](auto v) { return fmt::format("{}", v); }, value));
  for (const std::string &name : request.present)
    text += fmt::format(" +{}", name);
  for (const auto &[name, strides] : request.strides)
    text += fmt::format(" {} strides [{}]", name, fmt::join(strides, ", "));
  for (const auto &[output, input] : request.inPlace)
    text += fmt::format(" {} in place of {}", output, input);
  if (request.tier && request.tier != Tier::Default)
    text += request.tier == Tier::Strict ? " strict" : " fast";
  if (request.edge == session::Edge::Begin)
    text += " (begins at the guard page)";
  if (!request.validate)
    text += " (not validated)";
  return text;
}

session::RunValues onMachine(session::RunValues values,
                             const RunRequest &request) {
  if (request.backend == Backend::Cpu && !hostRuns(request.isa))
    values.launcher = [isa = request.isa](const CompiledKernel &kernel,
                                          std::span<const Argument> arguments) {
      return emulation::launch(isa, kernel, arguments);
    };
  return values;
}

bool check(const Operator &op, const Case &theCase, const Machine &machine) {
  const RunRequest &request = theCase.request;
  if (!machine.takes(describe(op, request)))
    return true;
  Result<CompiledOperator> compiled = CompiledOperator::create(op, request);
  if (!compiled) {
    ADD_FAILURE() << describe(op, request) << ": " << compiled.error().str();
    return false;
  }
  bool isRight = true;
  for (ValueClass valueClass : theCase.classes) {
    session::RunValues values;
    values.valueClass = valueClass;
    Result<RunResult> result = compiled->run(onMachine(values, request));
    bool passed = result.ok() && result->passed();
    if (!passed)
      ADD_FAILURE() << describe(op, request) << " with "
                    << kernels::name(valueClass) << " values: "
                    << (result ? result->failures() : result.error().str());
    isRight &= passed;
  }
  return isRight;
}

std::vector<unsigned char> bytesOf(const TensorRef &tensor) {
  auto size = static_cast<size_t>(sizeInBytes(tensor.dtype));
  std::vector<unsigned char> bytes(static_cast<size_t>(tensor.elements()) *
                                   size);
  kernels::forEachElement(tensor, [&](void *address, int64_t linear) {
    std::memcpy(bytes.data() + static_cast<size_t>(linear) * size, address,
                size);
  });
  return bytes;
}

} // namespace tessera::runtest
