//===- report.cpp - The execution report ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/report.h"

#include "nlohmann/json.hpp"

using Json = nlohmann::ordered_json;

namespace tessera {

std::string makeReport(const PipelineResult &compiled,
                       const ExecutableInfo &info, tile::KernelOp kernel,
                       const CompileRequest &request) {
  const Target &target = getTarget(request.isa);
  Json report;
  report["schema"] = 1;
  report["kernel"] = info.kernel;
  Json plan;
  plan["backend"] = "cpu";
  plan["target"] = compiled.plan.target;
  plan["summary"] = compiled.plan.summary();
  Json loops = Json::array();
  for (const StagePlan &stage : compiled.plan.stages) {
    Json grid{{"grid", stage.grid}, {"programs", stage.programs}};
    for (const NestPlan &nest : stage.nests) {
      Json entry{{"space", nest.space},
                 {"computes", nest.roots},
                 {"vector_dimension", nest.vectorDim},
                 {"lanes", nest.lanes},
                 {"vectors_per_iteration", nest.unroll},
                 {"tail", nest.tail == TailForm::Mask ? "mask" : "scalar"},
                 {"predicted_ns", nest.nanoseconds}};
      Json reasons = Json::array();
      for (const Reason &reason : nest.reasons)
        reasons.push_back({{"code", reason.code}, {"text", reason.text}});
      entry["reasons"] = reasons;
      grid["nests"].push_back(entry);
    }
    loops.push_back(grid);
  }
  plan["stages"] = loops;
  report["plan"] = plan;
  Json passes = Json::array();
  for (const StageTime &time : compiled.times)
    passes.push_back({{"name", time.stage}, {"seconds", time.seconds}});
  report["passes"] = passes;
  Json buffers = Json::array();
  for (const auto &[what, bytes] : compiled.plan.buffers)
    buffers.push_back({{"what", what}, {"bytes", bytes}});
  report["allocations"] = buffers;
  report["numerics"] = {
      {"tier", tile::stringifyTier(kernel.getTier()).str()},
      {"accumulation", "f32 for f16, bf16 and f32; f64 for f64"},
      {"fused_multiply_adds", compiled.multiplyAdds}};
  report["machine"] = {{"isa", target.name},
                       {"vector_bits", target.vectorBits},
                       {"object_bytes", compiled.object.size()}};
  return report.dump(2);
}

} // namespace tessera
