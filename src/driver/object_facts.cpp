//===- object_facts.cpp - What an emitted object holds --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/object_facts.h"

#include "llvm-c/Disassembler.h"
#include "llvm-c/Target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"

#include <algorithm>
#include <bitset>
#include <mutex>

namespace tessera {

namespace {

/// Reads one function's instructions as text, in AT&T syntax.
class FunctionReader {
public:
  FunctionReader(LLVMDisasmContextRef context, FunctionFact &fact)
      : context(context), fact(fact) {}

  void read(llvm::ArrayRef<uint8_t> code) {
    std::vector<uint8_t> bytes(code.begin(), code.end());
    size_t at = 0;
    while (at < bytes.size()) {
      char text[256];
      size_t size = LLVMDisasmInstruction(
          context, bytes.data() + at, bytes.size() - at, at, text, sizeof text);
      if (size == 0)
        break;
      at += size;
      instruction(llvm::StringRef(text).trim());
    }
    fact.vectorRegisters = int64_t(registers.count());
  }

private:
  void instruction(llvm::StringRef text) {
    auto [mnemonic, operands] = llvm::getToken(text, "\t ");
    if (mnemonic == "nop" || mnemonic.starts_with("nopw") ||
        mnemonic.starts_with("nopl"))
      return;
    ++fact.instructions;
    operands = operands.trim();
    if (inPrologue && mnemonic.starts_with("push")) {
      fact.stackBytes += 8;
      return;
    }
    if (inPrologue && mnemonic.starts_with("sub") &&
        operands.ends_with("%rsp") && operands.starts_with("$")) {
      int64_t reserved = 0;
      if (!operands.drop_front().split(',').first.getAsInteger(0, reserved))
        fact.stackBytes += reserved;
      inPrologue = false;
      return;
    }
    // The frame is set up before the first branch.
    if (mnemonic.starts_with("j") || mnemonic.starts_with("call"))
      inPrologue = false;
    if (operands.contains("(%rsp") && !mnemonic.starts_with("lea"))
      ++fact.stackAccesses;
    noteVectors(operands);
  }

  void noteVectors(llvm::StringRef operands) {
    int widest = 0;
    for (size_t at = operands.find('%'); at != llvm::StringRef::npos;
         at = operands.find('%', at + 1)) {
      llvm::StringRef name = operands.drop_front(at + 1);
      int width = name.starts_with("zmm")   ? 3
                  : name.starts_with("ymm") ? 2
                  : name.starts_with("xmm") ? 1
                                            : 0;
      if (width == 0)
        continue;
      widest = std::max(widest, width);
      unsigned number = 0;
      if (!name.drop_front(3).consumeInteger(10, number) && number < 32)
        registers.set(number);
    }
    if (widest == 3)
      ++fact.vector512;
    else if (widest == 2)
      ++fact.vector256;
    else if (widest == 1)
      ++fact.vector128;
  }

  LLVMDisasmContextRef context;
  FunctionFact &fact;
  std::bitset<32> registers;
  bool inPrologue = true;
};

Error unreadable(llvm::Error error) {
  return {ErrorFamily::Internal,
          "report.object",
          "the emitted object cannot be read: " +
              llvm::toString(std::move(error)),
          {}};
}

} // namespace

Result<std::vector<FunctionFact>> readFunctions(const std::string &object,
                                                const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
  });
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(object, "kernel"));
  if (!file)
    return unreadable(file.takeError());
  LLVMDisasmContextRef context = LLVMCreateDisasmCPUFeatures(
      target.triple.c_str(), target.cpu.c_str(), target.features.c_str(),
      nullptr, 0, nullptr, nullptr);
  if (!context)
    return Error{ErrorFamily::Internal,
                 "report.disassembler",
                 "there is no disassembler for '" + target.triple + "'",
                 {}};
  std::vector<std::pair<uint64_t, FunctionFact>> found;
  std::optional<Error> failure;
  for (const llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
    if (symbol.getELFType() != llvm::ELF::STT_FUNC)
      continue;
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto address = symbol.getAddress();
    if (!name || !section || !address) {
      llvm::Error all = llvm::Error::success();
      if (!name)
        all = llvm::joinErrors(std::move(all), name.takeError());
      if (!section)
        all = llvm::joinErrors(std::move(all), section.takeError());
      if (!address)
        all = llvm::joinErrors(std::move(all), address.takeError());
      failure = unreadable(std::move(all));
      break;
    }
    if (*section == (*file)->section_end())
      continue;
    auto contents = (*section)->getContents();
    if (!contents) {
      failure = unreadable(contents.takeError());
      break;
    }
    FunctionFact fact;
    fact.name = name->str();
    fact.codeBytes = int64_t(symbol.getSize());
    uint64_t offset = *address - (*section)->getAddress();
    FunctionReader(context, fact)
        .read(llvm::arrayRefFromStringRef(
            contents->substr(offset, symbol.getSize())));
    found.emplace_back(*address, std::move(fact));
  }
  LLVMDisasmDispose(context);
  if (failure)
    return *failure;
  std::sort(found.begin(), found.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<FunctionFact> facts;
  for (auto &[address, fact] : found)
    facts.push_back(std::move(fact));
  return facts;
}

} // namespace tessera
