//===- load_object.cpp - Loading object files into the process ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/codegen.h"

#include "support/env.h"

#include "llvm/ExecutionEngine/JITEventListener.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/SectionMemoryManager.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <vector>

namespace tessera {

namespace {

/// The process's linker of generated code. It outlives every loaded object.
class Linker {
public:
  static Result<Linker *> get() {
    // Never destroyed: executables in static objects may outlive any order of
    // destruction.
    static Linker &linker = *new Linker;
    if (!linker.problem.empty())
      return Error{ErrorFamily::Internal, "codegen.jit", linker.problem, {}};
    return &linker;
  }

  llvm::orc::LLJIT &jit() { return *instance; }

private:
  Linker() {
    llvm::InitializeNativeTarget();
    llvm::orc::LLJITBuilder builder;
    builder.setNumCompileThreads(0);
    builder.setObjectLinkingLayerCreator(
        [](llvm::orc::ExecutionSession &session, const llvm::Triple &) {
          auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
              session,
              [] { return std::make_unique<llvm::SectionMemoryManager>(); });
          if (auto *gdb =
                  llvm::JITEventListener::createGDBRegistrationListener())
            layer->registerJITEventListener(*gdb);
          return layer;
        });
    auto created = builder.create();
    if (!created)
      problem = llvm::toString(created.takeError());
    else
      instance = std::move(*created);
  }

  std::unique_ptr<llvm::orc::LLJIT> instance;
  std::string problem;
};

class LoadedInLibrary : public LoadedObject {
public:
  LoadedInLibrary(llvm::orc::LLJIT &jit, llvm::orc::JITDylib &library)
      : jit(jit), library(library) {}
  ~LoadedInLibrary() override {
    if (auto error = jit.getExecutionSession().removeJITDylib(library))
      llvm::consumeError(std::move(error));
  }
  void *lookup(const std::string &symbol) override {
    auto address = jit.lookup(library, symbol);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void *>();
  }

private:
  llvm::orc::LLJIT &jit;
  llvm::orc::JITDylib &library;
};

/// Appends the functions of a loaded object to the file where perf looks for
/// symbols of generated code. All functions of an object are in one section, so
/// one exported address tells where the others are.
void writePerfMap(const std::string &object, LoadedObject &loaded) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(object, "object"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  struct Symbol {
    std::string name;
    uint64_t value, size;
  };
  std::vector<Symbol> symbols;
  std::optional<uint64_t> base;
  for (llvm::object::ELFSymbolRef symbol :
       llvm::cast<llvm::object::ELFObjectFileBase>(**file).symbols()) {
    auto name = symbol.getName();
    auto value = symbol.getValue();
    if (!name || !value || symbol.getELFType() != llvm::ELF::STT_FUNC) {
      if (!name)
        llvm::consumeError(name.takeError());
      if (!value)
        llvm::consumeError(value.takeError());
      continue;
    }
    symbols.push_back({name->str(), *value, symbol.getSize()});
    if (!base)
      if (void *address = loaded.lookup(symbols.back().name))
        base = reinterpret_cast<uintptr_t>(address) - *value;
  }
  if (!base)
    return;
  std::ofstream map("/tmp/perf-" + std::to_string(getpid()) + ".map",
                    std::ios::app);
  for (const Symbol &symbol : symbols)
    map << std::hex << *base + symbol.value << ' ' << symbol.size
        << " tessera:" << symbol.name << '\n';
}

} // namespace

Result<std::shared_ptr<LoadedObject>>
loadObject(const std::string &object, const std::string &name,
           const ExternalFunctions &functions) {
  static std::atomic<uint64_t> serial = 0;
  Result<Linker *> linker = Linker::get();
  if (!linker)
    return linker.error();
  llvm::orc::LLJIT &jit = (*linker)->jit();
  auto fail = [](llvm::Error error) {
    return Error{ErrorFamily::Internal,
                 "codegen.load",
                 llvm::toString(std::move(error)),
                 {}};
  };
  auto library =
      jit.createJITDylib(name + "." + std::to_string(serial.fetch_add(1)));
  if (!library)
    return fail(library.takeError());
  auto loaded = std::make_shared<LoadedInLibrary>(jit, *library);
  llvm::orc::SymbolMap symbols;
  for (const auto &[symbol, address] : functions)
    symbols[jit.mangleAndIntern(symbol)] = {
        llvm::orc::ExecutorAddr::fromPtr(address),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (!symbols.empty())
    if (auto error =
            library->define(llvm::orc::absoluteSymbols(std::move(symbols))))
      return fail(std::move(error));
  // Functions of the C math library may be referenced on old targets.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit.getDataLayout().getGlobalPrefix());
  if (!process)
    return fail(process.takeError());
  library->addGenerator(std::move(*process));
  if (auto error = jit.addObjectFile(
          *library, llvm::MemoryBuffer::getMemBufferCopy(object, name)))
    return fail(std::move(error));
  if (support::envFlag(support::EnvVariable::PerfMap))
    writePerfMap(object, *loaded);
  return std::shared_ptr<LoadedObject>(loaded);
}

} // namespace tessera
