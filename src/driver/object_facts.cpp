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
#include <memory>
#include <mutex>

namespace tessera {

namespace {

/// Reads one function's instructions as text; an architecture's forms are its
/// subclass's.
class FunctionReader {
public:
  FunctionReader(LLVMDisasmContextRef context, FunctionFact &fact)
      : fact(fact), context(context) {}
  virtual ~FunctionReader() = default;

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
      auto [mnemonic, operands] =
          llvm::getToken(llvm::StringRef(text).trim(), "\t ");
      if (mnemonic.starts_with("nop"))
        continue;
      ++fact.instructions;
      instruction(mnemonic, operands.trim());
    }
    fact.vectorRegisters = int64_t(registers.count());
  }

protected:
  virtual void instruction(llvm::StringRef mnemonic,
                           llvm::StringRef operands) = 0;

  void noteRegister(unsigned number) {
    if (number < registers.size())
      registers.set(number);
  }

  FunctionFact &fact;
  /// The frame is set up before the first branch.
  bool inPrologue = true;

private:
  LLVMDisasmContextRef context;
  std::bitset<32> registers;
};

/// AT&T syntax.
class X86Reader : public FunctionReader {
public:
  using FunctionReader::FunctionReader;

private:
  void instruction(llvm::StringRef mnemonic,
                   llvm::StringRef operands) override {
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
      if (!name.drop_front(3).consumeInteger(10, number))
        noteRegister(number);
    }
    if (widest == 3)
      ++fact.vector512;
    else if (widest == 2)
      ++fact.vector256;
    else if (widest == 1)
      ++fact.vector128;
  }
};

class AArch64Reader : public FunctionReader {
public:
  using FunctionReader::FunctionReader;

private:
  void instruction(llvm::StringRef mnemonic,
                   llvm::StringRef operands) override {
    if (inPrologue && reserves(mnemonic, operands))
      return;
    if (mnemonic == "b" || mnemonic.starts_with("b.") || mnemonic == "bl" ||
        mnemonic == "ret" || mnemonic.starts_with("cb") ||
        mnemonic.starts_with("tb"))
      inPrologue = false;
    if (operands.contains("[sp") && !restores(mnemonic, operands))
      ++fact.stackAccesses;
    noteVectors(operands);
  }

  /// `sub sp, sp, #32`, `stp x29, x30, [sp, #-32]!` and saves of the caller's
  /// registers.
  bool reserves(llvm::StringRef mnemonic, llvm::StringRef operands) {
    llvm::StringRef amount;
    if (mnemonic == "sub" && operands.contains(", sp, #"))
      amount = operands.split(", sp, #").second;
    else if (operands.ends_with("]!") && operands.contains("[sp, #-"))
      amount = operands.split("[sp, #-").second;
    else
      return mnemonic.starts_with("st") && ofTheCaller(operands);
    int64_t bytes = 0;
    if (!amount.consumeInteger(0, bytes))
      fact.stackBytes += amount.contains("lsl #12") ? bytes << 12 : bytes;
    return true;
  }

  bool restores(llvm::StringRef mnemonic, llvm::StringRef operands) {
    return mnemonic.starts_with("ld") && ofTheCaller(operands);
  }

  /// Whether the first register is one that a function has to keep.
  static bool ofTheCaller(llvm::StringRef operands) {
    unsigned number = 0;
    char kind = operands.empty() ? ' ' : operands.front();
    return operands.contains("[sp") &&
           !operands.drop_front().consumeInteger(10, number) &&
           ((kind == 'x' && number >= 19) ||
            (kind == 'd' && number >= 8 && number <= 15));
  }

  void noteVectors(llvm::StringRef operands) {
    bool any = false;
    for (size_t at = operands.find_first_of("bhsdqv");
         at != llvm::StringRef::npos;
         at = operands.find_first_of("bhsdqv", at + 1)) {
      if (at > 0 && llvm::isAlnum(operands[at - 1]))
        continue;
      unsigned number = 0;
      llvm::StringRef rest = operands.drop_front(at + 1);
      if (rest.consumeInteger(10, number) || number >= 32 ||
          (!rest.empty() && llvm::isAlnum(rest.front())))
        continue;
      noteRegister(number);
      any = true;
    }
    fact.vector128 += any;
  }
};

std::unique_ptr<FunctionReader> makeReader(Architecture architecture,
                                           LLVMDisasmContextRef context,
                                           FunctionFact &fact) {
  switch (architecture) {
  case Architecture::X86_64:
    return std::make_unique<X86Reader>(context, fact);
  case Architecture::AArch64:
    return std::make_unique<AArch64Reader>(context, fact);
  }
  return nullptr;
}

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
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64Disassembler();
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
    makeReader(target.architecture, context, fact)
        ->read(llvm::arrayRefFromStringRef(
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
