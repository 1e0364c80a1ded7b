//===- cache_key.cpp - What an executable depends on ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/cache_key.h"

#include "dialect/ir_hash.h"
#include "driver/cache_entry.h"
#include "driver/pipeline.h"
#include "driver/plan_store.h"
#include "dsl/trace.h"
#include "support/env.h"
#include "support/hash.h"
#include "support/module_identity.h"
#include "target/machine_figures.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/MC/TargetRegistry.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace tessera {

std::string CacheKey::name() const {
  support::Hasher hasher;
  for (const Part &part : parts)
    hasher.text(part.name).text(part.value);
  return hasher.finish().hex();
}

std::string CacheKey::value(std::string_view part) const {
  for (const Part &own : parts)
    if (own.name == part)
      return own.value;
  return {};
}

std::string cacheCompiler() {
  static const std::string text = fmt::format(
      "{}, {}", TESSERA_VERSION,
      support::moduleIdentity(reinterpret_cast<const void *>(&cacheCompiler)));
  return text;
}

std::string cacheLlvm() {
  // A function of each library: its patches may change without its version.
  using Lookup = const llvm::Target *(*)(llvm::StringRef, std::string &);
  static const std::string text = fmt::format(
      "{}, {}, MLIR {}", LLVM_VERSION_STRING,
      support::moduleIdentity(reinterpret_cast<const void *>(
          static_cast<Lookup>(&llvm::TargetRegistry::lookupTarget))),
      support::moduleIdentity(
          reinterpret_cast<const void *>(&mlir::registerMLIRContextCLOptions)));
  return text;
}

static std::string parametersText(const std::vector<ProgramParameter> &all) {
  std::string text;
  for (const ProgramParameter &parameter : all) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", parameter.name,
                        name(parameter.dtype));
    if (parameter.hasDefault)
      std::visit([&](auto value) { text += fmt::format(" = {}", value); },
                 parameter.defaultValue);
  }
  return text;
}

/// What a trace fixes beside the tunables.
static std::string traceText(const TraceOptions &options) {
  support::Hasher hasher;
  hasher.text(name(options.storage)).integer(int64_t(options.tier));
  for (const auto &[name, value] : options.constants) {
    hasher.text(name).integer(int64_t(value.index()));
    std::visit(
        [&](auto number) {
          if constexpr (std::is_same_v<decltype(number), double>)
            hasher.number(number);
          else
            hasher.integer(int64_t(number));
        },
        value);
  }
  hasher.text("present");
  for (const std::string &name : options.present)
    hasher.text(name);
  hasher.text("tunables");
  for (const auto &[name, value] : options.tunables)
    hasher.text(name).integer(value);
  return hasher.finish().hex();
}

/// "17x65 64 -": extents by parameter, and a mark where an axis is adjacent.
static std::string shapesText(const CompileRequest &request, bool strides) {
  std::string text;
  for (size_t i = 0; i < request.extents.size(); ++i) {
    std::string own;
    for (size_t axis = 0; axis < request.extents[i].size(); ++axis) {
      own += own.empty() ? "" : "x";
      own +=
          !strides ? std::to_string(request.extents[i][axis])
          : axis < request.unitStride[i].size() && request.unitStride[i][axis]
              ? "1"
              : "any";
    }
    text +=
        fmt::format("{}{}", text.empty() ? "" : " ", own.empty() ? "-" : own);
  }
  return text;
}

static std::string targetText(const Target &target) {
  return fmt::format("{}: {} {} {}", target.name, target.triple, target.cpu,
                     target.features);
}

static std::string planText(const CompileRequest &request) {
  if (request.savedPlan)
    return "saved " + support::hashBytes(request.savedPlan->text).hex();
  return request.useTunedPlans ? "searched, or tuned" : "searched";
}

/// What the choice of tunables depends on beside the kernel as it was traced.
static std::string choiceText(const CacheSubject &subject) {
  if (!subject.source)
    return "none to choose";
  return fmt::format("{}, {}, trace {}", support::programIdentity(),
                     support::moduleIdentity(sourceFile(*subject.source)),
                     traceText(*subject.options));
}

CacheKey makeCacheKey(const CacheSubject &subject,
                      const CompileRequest &request) {
  tile::KernelOp kernel = subject.kernel;
  const tile::IrHash ir = tile::hashIr(kernel);
  const Machine &machine = machineOf(request);
  CacheKey key;
  auto add = [&](std::string name, std::string value) {
    key.parts.push_back({std::move(name), std::move(value)});
  };
  add("kernel", kernel.getSymName().str());
  add("form", std::to_string(cacheEntryVersion));
  add("tessera", cacheCompiler());
  add("llvm", cacheLlvm());
  add("ir", ir.content.hex());
  add("lines", ir.locations.hex());
  add("parameters", parametersText(subject.parameters));
  add("choice of tunables", choiceText(subject));
  add("extents", shapesText(request, /*strides=*/false));
  add("strides", shapesText(request, /*strides=*/true));
  add("alias", std::string(name(request.alias)));
  add("target", targetText(getTarget(request.isa)));
  add("processor", tuningCpu());
  add("machine", fmt::format("{} ({}) {}", machine.name, machine.provenance,
                             contentHash(machine)));
  add("threads", std::to_string(request.threads));
  add("plan", planText(request));
  add("validate", request.validate ? "yes" : "no");
  add("prepacked", fmt::format("{}", fmt::join(request.prepacked, ", ")));
  add("machine facts", request.machineFacts ? "yes" : "no");
  return key;
}

std::string whyUncached(const CompileRequest &request) {
  if (request.vendor != Vendor::None)
    return "a library computes the kernel";
  if (request.choices)
    return "the plan is a caller's";
  if (request.stageText)
    return "stages of the compilation are asked for";
  if (support::envText(support::EnvVariable::DumpDir))
    return "TESSERA_DUMP_DIR asks for the stages of the compilation";
  if (support::moduleIdentity(reinterpret_cast<const void *>(&cacheCompiler))
          .empty())
    return "this build of Tessera cannot be told from others";
  return {};
}

} // namespace tessera
