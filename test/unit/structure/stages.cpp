//===- test/unit/structure/stages.cpp - What the compiler emitted ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "test/unit/planned_machine.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <regex>

namespace tessera::structuretest {

namespace {

template <typename Visit> void forEachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Plans must not depend on the machine that tests them.
void fixMachine(session::RunRequest &request) {
  if (!request.machine)
    request.machine = plannedMachine();
  if (request.threads == 0)
    request.threads = 1;
}

template <typename Compile>
Emitted emitWith(session::RunRequest request, Compile compile) {
  Emitted result;
  fixMachine(request);
  for (const char *stage : {"tile", "loops", "llvm", "asm"})
    result.text[stage];
  request.stageText = [&](const char *stage, std::string text) {
    result.text[stage] = std::move(text);
  };
  Result<session::Compilation> compiled = compile(request);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().str();
    return result;
  }
  result.object = compiled->kernel.object;
  result.plan = compiled->kernel.planSummary;
  for (const StageTime &time : compiled->kernel.times)
    if (time.stage != "codegen")
      result.seconds += time.seconds;
  for (const char *stage : {"tile", "loops", "llvm", "asm"})
    EXPECT_FALSE(result.text[stage].empty()) << "no text of stage " << stage;
  return result;
}

} // namespace

Emitted emit(const kernels::Operator &op, session::RunRequest request) {
  return emitWith(std::move(request), [&](const session::RunRequest &wanted) {
    return session::compileOperator(op, wanted);
  });
}

Emitted emit(Program program, session::RunRequest request) {
  return emitWith(std::move(request), [&](const session::RunRequest &wanted) {
    return session::compileProgram(std::move(program), wanted);
  });
}

std::string objectOf(const kernels::Operator &op, session::RunRequest request) {
  fixMachine(request);
  Result<session::Compilation> compiled = session::compileOperator(op, request);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().str();
    return "";
  }
  return compiled->kernel.object;
}

std::vector<std::string> linesWith(std::string_view text,
                                   const std::string &expression) {
  const std::regex regex(expression);
  std::vector<std::string> found;
  forEachLine(text, [&](std::string_view line) {
    if (found.size() < 3 && std::regex_search(line.begin(), line.end(), regex))
      found.emplace_back(line);
  });
  return found;
}

int64_t countInstructions(std::string_view llvmText) {
  int64_t count = 0;
  forEachLine(llvmText, [&](std::string_view line) {
    count += line.starts_with("  ") && !line.starts_with("   ");
  });
  return count;
}

/// The object of type T at an offset; zeros beyond the end.
template <typename T> static T readAt(std::string_view bytes, uint64_t offset) {
  T value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::vector<std::string> undefinedSymbols(std::string_view object) {
  std::vector<std::string> result;
  const auto header = readAt<Elf64_Ehdr>(object, 0);
  auto section = [&](uint64_t index) {
    return readAt<Elf64_Shdr>(object,
                              header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_SYMTAB)
      continue;
    const Elf64_Shdr names = section(table.sh_link);
    // The first symbol is none.
    for (uint64_t at = sizeof(Elf64_Sym); at < table.sh_size;
         at += sizeof(Elf64_Sym)) {
      const auto symbol = readAt<Elf64_Sym>(object, table.sh_offset + at);
      if (symbol.st_shndx != SHN_UNDEF)
        continue;
      std::string_view name = object.substr(
          std::min<uint64_t>(names.sh_offset + symbol.st_name, object.size()));
      result.emplace_back(name.substr(0, name.find('\0')));
    }
  }
  return result;
}

std::vector<const kernels::Operator *> rowOperators() {
  std::vector<const kernels::Operator *> result;
  for (const kernels::Operator &op : kernels::operators())
    if (op.dims == std::vector<std::string_view>{"rows", "cols"} &&
        op.name != "transpose" && op.name != "sort")
      result.push_back(&op);
  return result;
}

kernels::Dims rowsOf(int64_t rows, int64_t cols) {
  return {{"rows", rows}, {"cols", cols}};
}

} // namespace tessera::structuretest
