//===- codegen.cpp - From realized loops to an object file ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/codegen.h"

#include "codegen/llvm/to_llvm.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <chrono>
#include <mutex>

namespace tessera {

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static Error internalError(std::string code, std::string message) {
  return Error{ErrorFamily::Internal, std::move(code), std::move(message), {}};
}

static Result<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const Target &target, const CodegenOptions &request) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
  std::string message;
  const llvm::Target *description =
      llvm::TargetRegistry::lookupTarget(target.triple, message);
  if (!description)
    return internalError("codegen.target", message);
  llvm::TargetOptions options;
  // Multiply-adds are formed by Tessera, nowhere else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(description->createTargetMachine(
      target.triple, target.cpu, target.features, options,
      request.positionIndependent ? llvm::Reloc::PIC_ : llvm::Reloc::Static,
      llvm::CodeModel::Small,
      request.isLong ? llvm::CodeGenOptLevel::None
                     : llvm::CodeGenOptLevel::Default));
}

/// The passes that explicit vector code needs: no vectorizers, no unrolling.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(
      llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

/// Adds the passes of code generation, without loop strength reduction: our
/// loops have one counter and addresses that start from it, which it leaves as
/// they are or makes longer, in a large part of the time that emission takes.
/// LLVM has no other switch for it than the option of a process, which is back
/// in place when the passes have been added.
static void addEmission(llvm::legacy::PassManager &passes,
                        llvm::raw_pwrite_stream &stream,
                        llvm::TargetMachine &machine,
                        llvm::CodeGenFileType type) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("disable-lsr");
  auto *disable = found == options.end()
                      ? nullptr
                      : static_cast<llvm::cl::opt<bool> *>(found->second);
  const bool before = disable && *disable;
  if (disable)
    disable->setValue(true);
  machine.addPassesToEmitFile(passes, stream, nullptr, type);
  if (disable)
    disable->setValue(before);
}

static std::string emit(llvm::Module &module, llvm::TargetMachine &machine,
                        llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // AArch64's default for unoptimized code, which knows fewer vectors.
  machine.setGlobalISel(false);
  addEmission(passes, stream, machine, type);
  // The selector of unoptimized code splits the block at every select of
  // floats, which takes time in the square of its length.
  machine.setFastISel(false);
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

Result<CodegenResult> generateObject(mlir::ModuleOp realized,
                                     const Target &target,
                                     const CodegenOptions &options) {
  using Clock = std::chrono::steady_clock;
  CodegenResult result;
  auto start = Clock::now();
  llvm::LLVMContext context;
  Result<std::unique_ptr<llvm::Module>> lowered = toLLVM(realized, context);
  if (!lowered)
    return lowered.error();
  result.lowerSeconds = secondsSince(start);

  start = Clock::now();
  llvm::Module &module = **lowered;
  auto machine = makeTargetMachine(target, options);
  if (!machine)
    return machine.error();
  module.setTargetTriple(target.triple);
  module.setDataLayout((*machine)->createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.hasLocalLinkage())
      function.addFnAttr(llvm::Attribute::NoInline);
  }
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return internalError("codegen.verify",
                         "generated LLVM IR is not valid: " + problem);
  optimize(module, **machine);
  result.optimizeSeconds = secondsSince(start);

  if (options.stageText) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    options.stageText("llvm", text);
    // Emission changes the module, so the text comes from a copy.
    Result<std::unique_ptr<llvm::Module>> copy = copyModule(module);
    if (!copy)
      return copy.error();
    options.stageText(
        "asm", emit(**copy, **machine, llvm::CodeGenFileType::AssemblyFile));
  }
  start = Clock::now();
  result.object = emit(module, **machine, llvm::CodeGenFileType::ObjectFile);
  result.emitSeconds = secondsSince(start);
  return result;
}

} // namespace tessera
