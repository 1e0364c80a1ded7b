//===- codegen.cpp - From realized loops to an object file ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/codegen.h"

#include "codegen/llvm/interleave.h"
#include "codegen/llvm/loop_addresses.h"
#include "codegen/llvm/to_llvm.h"

#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/IntrinsicInst.h"
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

/// The passes that explicit vector code needs: no vectorizers, no unrolling. Of
/// long code those alone whose time grows with its length.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     bool isLong) {
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
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/!isLong));
  passes.addPass(llvm::SimplifyCFGPass());
  if (!isLong) {
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(
        llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    passes.addPass(llvm::GVNPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass());
  }
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      functions.invalidate(function, passes.run(function, functions));
      shareLoopPointers(function, functions);
      interleaveChains(function, functions);
    }
}

namespace {
/// Sets a switch of LLVM's that only the options of a process have, while an
/// object of this type lives.
class ProcessSwitch {
public:
  ProcessSwitch(llvm::StringRef name, bool value) {
    auto &options = llvm::cl::getRegisteredOptions();
    auto found = options.find(name);
    if (found == options.end())
      return;
    option = static_cast<llvm::cl::opt<bool> *>(found->second);
    before = *option;
    option->setValue(value);
  }
  ProcessSwitch(const ProcessSwitch &) = delete;
  ProcessSwitch &operator=(const ProcessSwitch &) = delete;
  ~ProcessSwitch() {
    if (option)
      option->setValue(before);
  }

private:
  llvm::cl::opt<bool> *option = nullptr;
  bool before = false;
};
} // namespace

/// Whether a loop carries so many sums of products in vectors that few
/// registers are left: the inner loop of a tiled contraction.
static bool carriesManyVectors(llvm::Module &module) {
  constexpr int many = 12;
  auto isSum = [](const llvm::PHINode &phi) {
    return phi.getType()->isVectorTy() &&
           llvm::any_of(phi.incoming_values(), [](const llvm::Use &value) {
             auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(value.get());
             return call && call->getIntrinsicID() == llvm::Intrinsic::fma;
           });
  };
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      if (llvm::count_if(block.phis(), isSum) >= many)
        return true;
  return false;
}

/// Adds the passes of code generation, without loop strength reduction: our
/// loops have one counter and addresses that start from it, which it leaves as
/// they are or makes longer, in a large part of the time that emission takes.
/// Nor are machine instructions moved out of loops where one of these needs
/// most registers: the constants of functions would be held across it, and what
/// it carries spilled instead.
static void addEmission(llvm::legacy::PassManager &passes,
                        llvm::raw_pwrite_stream &stream,
                        llvm::TargetMachine &machine,
                        llvm::CodeGenFileType type, bool movesOutOfLoops) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  ProcessSwitch reduction("disable-lsr", true);
  ProcessSwitch motion("disable-machine-licm", !movesOutOfLoops);
  machine.addPassesToEmitFile(passes, stream, nullptr, type);
}

static std::string emit(llvm::Module &module, llvm::TargetMachine &machine,
                        llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // AArch64's default for unoptimized code, which knows fewer vectors.
  machine.setGlobalISel(false);
  addEmission(passes, stream, machine, type, !carriesManyVectors(module));
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
    // Vector math that is called: chains of calls may take turns, too.
    if (function.doesNotAccessMemory())
      function.addFnAttr(llvm::Attribute::WillReturn);
  }
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return internalError("codegen.verify",
                         "generated LLVM IR is not valid: " + problem);
  optimize(module, **machine, options.isLong);
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
