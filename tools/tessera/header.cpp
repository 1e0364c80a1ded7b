//===- header.cpp - The C header of an exported kernel --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/header.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace tessera::cli {

namespace {

std::string upper(std::string_view text) {
  std::string result;
  for (char c : text)
    result +=
        std::isalnum(static_cast<unsigned char>(c))
            ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
            : '_';
  return result;
}

const char *cType(DType dtype) {
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return "uint8_t";
  case DType::I8:
    return "int8_t";
  case DType::I16:
    return "int16_t";
  case DType::I32:
    return "int32_t";
  case DType::I64:
    return "int64_t";
  case DType::U16:
  case DType::F16:
  case DType::BF16:
    return "uint16_t";
  case DType::U32:
    return "uint32_t";
  case DType::U64:
    return "uint64_t";
  case DType::F32:
    return "float";
  case DType::F64:
    return "double";
  }
  return "void";
}

/// The default of a scalar as a C constant, as short as its type allows.
std::string defaultText(const ScalarParameter &scalar) {
  return std::visit(
      [&](auto number) -> std::string {
        if constexpr (std::is_same_v<decltype(number), double>) {
          if (std::isnan(number))
            return "NAN";
          if (std::isinf(number))
            return number < 0 ? "-INFINITY" : "INFINITY";
          if (number == 0)
            return std::signbit(number) ? "-0.0" : "0"; // -0 is an integer.
        } else if (number == std::numeric_limits<int64_t>::min()) {
          return "INT64_MIN";
        }
        return scalar.dtype == DType::F32
                   ? fmt::format("{}", static_cast<float>(number))
                   : fmt::format("{}", number);
      },
      scalar.defaultValue);
}

/// Whether its default is a macro of <math.h>.
bool needsMath(const ScalarParameter *scalar) {
  const double *number = std::get_if<double>(&scalar->defaultValue);
  return scalar->hasDefault && number && !std::isfinite(*number);
}

/// Writes the header of one kernel.
class HeaderWriter {
public:
  HeaderWriter(const CompiledKernel &kernel, const Target &target)
      : info(kernel.executable.info()), target(target),
        prefix(upper(info.kernel)) {}

  std::string run() {
    for (const Parameter &parameter : info.parameters) {
      if (const auto *view = std::get_if<ViewParameter>(&parameter))
        views.push_back(view);
      else
        scalars.push_back(&std::get<ScalarParameter>(parameter));
    }
    add("/* {}, compiled by Tessera for {} on {} Linux.\n", info.kernel,
        target.name, name(target.architecture));
    add(" *\n * Calling convention. Every stage function runs the programs "
        "[begin, end) of\n * its grid; run the stages in order, each to its "
        "end before the next begins.\n * Programs of one stage may run "
        "concurrently, each call with scratch of its\n * own.\n *\n");
    describeData();
    describeScalars();
    add(" * scratch: the stage's bytes (below), aligned to 64; may be null for "
        "0.\n *\n * A stage returns 0{}.\n",
        info.checks.empty() ? "" : ", or the number of the check that failed");
    for (size_t i = 0; i < info.checks.size(); ++i)
      add(" *   {}: {}\n", i + 1, info.checks[i].message);
    describeAlias();
    describeExample();
    add(" */\n#ifndef TESSERA_KERNEL_{0}_H\n#define TESSERA_KERNEL_{0}_H\n\n"
        "#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        prefix);
    addConstants();
    addDeclarations();
    add("#ifdef __cplusplus\n}}\n#endif\n\n#endif /* TESSERA_KERNEL_{}_H */\n",
        prefix);
    return std::move(text);
  }

private:
  template <typename... Values>
  void add(fmt::format_string<Values...> form, Values &&...values) {
    text += fmt::format(form, std::forward<Values>(values)...);
  }

  void describeData() {
    add(" * data[{}]: the address of element (0, ..., 0) of each array.\n"
        " * strides[{}]: their strides in elements, one array after another.\n",
        views.size() + (workspaceBytes() > 0), strideCount());
    size_t stride = 0;
    for (size_t i = 0; i < views.size(); ++i) {
      const ViewParameter &view = *views[i];
      std::string axes, required;
      for (size_t axis = 0; axis < view.extents.size(); ++axis) {
        axes += fmt::format("[{}]", view.extents[axis]);
        if (view.unitStride[axis])
          required += fmt::format("{}strides[{}] must be 1",
                                  required.empty() ? "" : ", ", stride + axis);
      }
      std::string where = view.extents.empty()
                              ? "no strides"
                              : fmt::format("strides[{}..{}]", stride,
                                            stride + view.extents.size() - 1);
      add(" *   data[{}]: {}, {}{}{} of {}; {}{}{}\n", i, view.name,
          view.writable ? "" : "const ", cType(view.dtype), axes,
          name(view.dtype), where, required.empty() ? "" : "; ", required);
      stride += view.extents.size();
    }
    if (workspaceBytes() > 0)
      add(" *   data[{}]: the workspace, {} bytes aligned to 64, the same for "
          "all\n *     programs of a run and of no other; before a stage's "
          "first program, as\n *     many bytes as its constant (below) says "
          "are zero\n",
          views.size(), workspaceBytes());
  }

  int64_t workspaceBytes() const {
    int64_t bytes = 0;
    for (const Stage &stage : info.stages)
      bytes = std::max(bytes, stage.workspaceBytes);
    return (bytes + 63) / 64 * 64;
  }

  size_t strideCount() const {
    size_t count = 0;
    for (const ViewParameter *view : views)
      count += view->extents.size();
    return count;
  }

  void describeScalars() {
    if (scalars.empty()) {
      add(" * scalars: none, may be null.\n");
      return;
    }
    add(" * scalars: one 8-byte slot each, the value in its first bytes, the "
        "rest zero.\n");
    for (size_t i = 0; i < scalars.size(); ++i)
      add(" *   slot {}: {}, {}{}\n", i, scalars[i]->name,
          cType(scalars[i]->dtype),
          scalars[i]->hasDefault
              ? fmt::format(" (usually {})", defaultText(*scalars[i]))
              : "");
  }

  void describeAlias() {
    switch (info.alias) {
    case AliasMode::Disjoint:
      add(" * No array that is written may overlap another array.\n");
      return;
    case AliasMode::InPlace:
      add(" * An array that is written may be the same array as another, and "
          "overlap none\n * in part.\n");
      return;
    case AliasMode::Overlap:
      return;
    }
  }

  void describeExample() {
    bool needsScratch =
        std::any_of(info.stages.begin(), info.stages.end(),
                    [](const Stage &stage) { return stage.scratchBytes > 0; });
    std::string headers;
    auto include = [&](bool needed, const char *header) {
      if (needed)
        headers += fmt::format("{}<{}>", headers.empty() ? "" : ", ", header);
    };
    include(!scalars.empty() || workspaceBytes() > 0, "string.h");
    include(needsScratch || workspaceBytes() > 0, "stdlib.h");
    include(std::any_of(scalars.begin(), scalars.end(), needsMath), "math.h");
    add(" *\n * Example in C11, all on this thread, arrays dense{}{}:\n *\n",
        headers.empty() ? "" : "; includes ", headers);
    std::string pointers, strides;
    for (const ViewParameter *view : views) {
      pointers += (pointers.empty() ? "" : ", ") +
                  ((view->writable ? "" : "(void *)") + view->name);
      int64_t stride = 1;
      std::vector<int64_t> dense(view->extents.size());
      for (size_t axis = dense.size(); axis-- > 0;) {
        dense[axis] = stride;
        stride *= std::max<int64_t>(view->extents[axis], 1);
      }
      for (int64_t value : dense)
        strides += (strides.empty() ? "" : ", ") + std::to_string(value);
    }
    if (workspaceBytes() > 0) {
      add(" *   void *workspace = aligned_alloc(64, {});\n", workspaceBytes());
      pointers += (pointers.empty() ? "" : ", ") + std::string("workspace");
    }
    add(" *   void *data[] = {{{}}};\n", pointers);
    add(" *   const int64_t strides[] = {{{}}};\n",
        strides.empty() ? "0" : strides);
    if (!scalars.empty()) {
      add(" *   uint64_t scalars[{}] = {{0}};\n", scalars.size());
      for (size_t i = 0; i < scalars.size(); ++i) {
        add(" *   {0} {1} = {2}; memcpy(&scalars[{3}], &{1}, sizeof {1});\n",
            cType(scalars[i]->dtype), scalars[i]->name,
            defaultText(*scalars[i]), i);
      }
    }
    for (size_t i = 0; i < info.stages.size(); ++i) {
      const Stage &stage = info.stages[i];
      std::string scratch = "0";
      if (stage.scratchBytes > 0) {
        scratch = "scratch" + std::to_string(i);
        add(" *   void *{} = aligned_alloc(64, {});\n", scratch,
            (stage.scratchBytes + 63) / 64 * 64);
      }
      if (stage.workspaceZeroBytes > 0)
        add(" *   memset(workspace, 0, {});\n", stage.workspaceZeroBytes);
      std::string call = fmt::format(
          "{}(data, strides, {}, 0, {}_{}_PROGRAMS, {})", stage.symbol,
          scalars.empty() ? "0" : "scalars", prefix, stageName(i), scratch);
      if (info.checks.empty())
        add(" *   {};\n", call);
      else
        add(" *   if ({} != 0)\n *     return 1;\n", call);
    }
  }

  std::string stageName(size_t number) const {
    std::string name = info.stages[number].symbol;
    if (name.starts_with(info.kernel + "_"))
      name = name.substr(info.kernel.size() + 1);
    return upper(name);
  }

  void addConstants() {
    for (const ViewParameter *view : views)
      for (size_t axis = 0; axis < view->extents.size(); ++axis)
        add("#define {}_{}_EXTENT{} INT64_C({})\n", prefix, upper(view->name),
            axis, view->extents[axis]);
    for (size_t i = 0; i < info.stages.size(); ++i) {
      add("#define {0}_{1}_PROGRAMS INT64_C({2})\n"
          "#define {0}_{1}_SCRATCH_BYTES INT64_C({3})\n",
          prefix, stageName(i), info.stages[i].programs,
          info.stages[i].scratchBytes);
      if (workspaceBytes() > 0)
        add("#define {0}_{1}_WORKSPACE_ZERO_BYTES INT64_C({2})\n", prefix,
            stageName(i), info.stages[i].workspaceZeroBytes);
    }
    text += "\n";
  }

  void addDeclarations() {
    for (const Stage &stage : info.stages)
      add("int32_t {}(void *const *data, const int64_t *strides,\n"
          "    const void *scalars, int64_t begin, int64_t end, void *scratch);"
          "\n",
          stage.symbol);
    text += "\n";
  }

  const ExecutableInfo &info;
  const Target &target;
  std::string prefix;
  std::vector<const ViewParameter *> views;
  std::vector<const ScalarParameter *> scalars;
  std::string text;
};

} // namespace

std::string makeHeader(const CompiledKernel &kernel, const Target &target) {
  return HeaderWriter(kernel, target).run();
}

} // namespace tessera::cli
