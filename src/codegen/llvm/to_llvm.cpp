//===- to_llvm.cpp - From MLIR to LLVM IR ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/to_llvm.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace tessera {

Result<std::unique_ptr<llvm::Module>> toLLVM(ModuleOp module,
                                             llvm::LLVMContext &context) {
  MLIRContext *mlirContext = module.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  mlirContext->appendDialectRegistry(registry);
  mlirContext->loadDialect<cf::ControlFlowDialect>();

  std::string message;
  ScopedDiagnosticHandler handler(mlirContext, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  // Structured loops first: their blocks must exist before types change.
  ConversionTarget branches(*mlirContext);
  branches.addIllegalDialect<scf::SCFDialect>();
  branches.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  RewritePatternSet loopPatterns(mlirContext);
  populateSCFToControlFlowConversionPatterns(loopPatterns);
  LLVMConversionTarget target(*mlirContext);
  target.addLegalOp<ModuleOp>();
  LLVMTypeConverter converter(mlirContext);
  RewritePatternSet patterns(mlirContext);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  if (failed(
          applyPartialConversion(module, branches, std::move(loopPatterns))) ||
      failed(applyFullConversion(module, target, std::move(patterns))))
    return Error{ErrorFamily::Internal,
                 "codegen.lower",
                 "lowering to the LLVM dialect failed: " + message,
                 {}};
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context);
  if (!translated)
    return Error{ErrorFamily::Internal,
                 "codegen.translate",
                 "translation to LLVM IR failed: " + message,
                 {}};
  return translated;
}

Result<std::unique_ptr<llvm::Module>> copyModule(const llvm::Module &module) {
  return llvm::CloneModule(module);
}

} // namespace tessera
