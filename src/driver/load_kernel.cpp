//===- load_kernel.cpp - From an object to an executable ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/load_kernel.h"

#include "codegen/llvm/codegen.h"
#include "runtime/host/vendor_library.h"

#include <algorithm>

namespace tessera {

/// Gives a stage its entry.
static Result<void> findEntry(Stage &stage, LoadedObject &code) {
  stage.entry = reinterpret_cast<StageEntry>(code.lookup(stage.symbol));
  if (stage.entry)
    return {};
  return Error{ErrorFamily::Internal,
               "codegen.symbol",
               "the generated object does not define '" + stage.symbol + "'",
               {}};
}

Result<ExecutableInfo>
loadKernel(const std::string &name,
           const std::vector<ProgramParameter> &parameters,
           const CompileRequest &request, KernelCode code) {
  std::shared_ptr<LoadedObject> loaded;
  ExecutableInfo info;
  info.kernel = name;
  info.alias = request.alias;
  info.checks = std::move(code.checks);
  info.command = request.command;
  if (hostRuns(request.isa)) {
    ExternalFunctions functions;
    if (code.vendor) {
      Result<std::shared_ptr<VendorLibrary>> opened =
          VendorLibrary::open(code.vendor->library);
      if (!opened)
        return opened.error();
      info.vendor = *opened;
      Result<void *> function = info.vendor->find(code.vendor->function);
      if (!function)
        return function.error();
      functions.emplace_back(code.vendor->function, *function);
    }
    Result<std::shared_ptr<LoadedObject>> made =
        loadObject(code.object, name, functions);
    if (!made)
      return made.error();
    loaded = std::move(*made);
    info.code = loaded;
  }
  for (Stage &stage : code.stages) {
    if (loaded)
      if (Result<void> found = findEntry(stage, *loaded); !found)
        return found.error();
    info.stages.push_back(std::move(stage));
  }
  for (PackedParameter &pack : code.packs) {
    if (loaded)
      if (Result<void> found = findEntry(pack.stage, *loaded); !found)
        return found.error();
    info.packs.push_back(std::move(pack));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ProgramParameter &parameter = parameters[i];
    if (parameter.isView)
      info.parameters.push_back(
          ViewParameter{parameter.name, parameter.dtype, parameter.writable,
                        request.extents[i], request.unitStride[i],
                        std::any_of(info.packs.begin(), info.packs.end(),
                                    [&](const PackedParameter &pack) {
                                      return pack.parameter == i;
                                    })});
    else
      info.parameters.push_back(ScalarParameter{parameter.name, parameter.dtype,
                                                parameter.hasDefault,
                                                parameter.defaultValue});
  }
  return info;
}

} // namespace tessera
