//===- packed.cpp - Arrays in the layout of one executable ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/host/packed.h"

#include "runtime/cpu/dispatch.h"
#include "runtime/host/arguments.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera {

namespace {

Error launchError(std::string code, std::string message) {
  return {ErrorFamily::Launch, std::move(code), std::move(message), {}};
}

std::string describe(const ExecutableInfo &info, const ViewParameter &view) {
  return fmt::format("'{}' of kernel '{}', {} {}", view.name, info.kernel,
                     fmt::join(view.extents, "x"), name(view.dtype));
}

const PackedParameter *findPack(const ExecutableInfo &info, size_t number) {
  for (const PackedParameter &pack : info.packs)
    if (pack.parameter == number)
      return &pack;
  return nullptr;
}

} // namespace

int64_t Packed::bytes() const { return array ? array->panels.size() : 0; }

Result<Packed> Executable::pack(std::string_view name, const TensorRef &array,
                                const LaunchOptions &options) const {
  const ExecutableInfo &info = *shared;
  size_t view = 0, stride = 0, number = 0;
  const ViewParameter *parameter = nullptr;
  int64_t views = 0, strides = 0;
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const auto *one = std::get_if<ViewParameter>(&info.parameters[i]);
    if (!one)
      continue;
    if (one->name == name) {
      parameter = one;
      number = i;
      view = size_t(views);
      stride = size_t(strides);
    }
    ++views;
    strides += int64_t(one->extents.size());
  }
  const PackedParameter *pack = parameter ? findPack(info, number) : nullptr;
  if (!pack)
    return launchError(
        "launch.packed",
        fmt::format("kernel '{}' takes no packed '{}'; compile it with "
                    "'{}' among CompileOptions::prepacked",
                    info.kernel, name, name));
  if (Result<void> fits = runtime::checkArray(*parameter, array); !fits)
    return fits.error();
  Result<Buffer> panels = Buffer::allocate(pack->panels * pack->panelBytes);
  if (!panels)
    return panels.error();
  std::vector<void *> data(size_t(views) + 1, nullptr);
  data[view] = array.data;
  data.back() = panels->data();
  std::vector<int64_t> allStrides(size_t(strides), 0);
  std::copy(array.strides.begin(), array.strides.end(),
            allStrides.begin() + ptrdiff_t(stride));
  const std::vector<uint64_t> scalars(info.parameters.size(), 0);

  const Stage &stage = pack->stage;
  if (!stage.entry && stage.programs > 0)
    return Error{ErrorFamily::Unsupported,
                 "launch.no-code",
                 fmt::format("'{}' of kernel '{}' has no machine code that "
                             "this machine can run",
                             stage.symbol, info.kernel),
                 {}};
  TaskPool *pool = nullptr;
  int threads = 1;
  if (options.threads != 1 && !runtime::isSmall(stage)) {
    pool = options.pool ? options.pool : &defaultTaskPool();
    threads = pool->threads();
    if (options.threads > 0)
      threads = std::min(threads, options.threads);
  }
  const runtime::Grain grain = runtime::chooseGrain(stage, threads);
  runtime::StageArguments arguments;
  arguments.data = data.data();
  arguments.strides = allStrides.data();
  arguments.scalars = scalars.data();
  arguments.scratchStride = (stage.scratchBytes + 127) / 128 * 128;
  Result<Buffer> scratch =
      Buffer::allocate(arguments.scratchStride * grain.threads);
  if (!scratch)
    return scratch.error();
  arguments.scratch = scratch->as<unsigned char>();
  runtime::runStage(stage, arguments, grain, pool);

  Packed packed;
  packed.array = std::make_shared<const PackedArray>(
      PackedArray{std::move(*panels), pack->tag, describe(info, *parameter)});
  return packed;
}

Result<void *> runtime::bindPacked(const ExecutableInfo &info, size_t number,
                                   const Argument &argument) {
  const auto &view = std::get<ViewParameter>(info.parameters[number]);
  auto wrong = [&](std::string found) {
    return launchError("launch.packed",
                       fmt::format("argument '{}': found {}, expected what "
                                   "Executable::pack made of {}",
                                   view.name, found, describe(info, view)));
  };
  const auto *packed = std::get_if<Packed>(&argument);
  if (!packed)
    return wrong(std::holds_alternative<TensorRef>(argument)
                     ? "an array as it is"
                     : "a scalar");
  if (!packed->array)
    return wrong("a packed array without memory, which was freed or moved "
                 "away");
  const PackedParameter *pack = findPack(info, number);
  if (!pack || packed->array->tag != pack->tag)
    return wrong(fmt::format("one that was packed for {} and another plan or "
                             "kernel",
                             packed->array->what));
  return packed->array->panels.data();
}

} // namespace tessera
