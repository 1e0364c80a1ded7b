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
#include "mlir/IR/Iterators.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;

namespace tessera {

namespace {
/// Operations that are replaced live on for a while, as the patterns expect.
class BlockRewriter : public PatternRewriter {
public:
  using PatternRewriter::PatternRewriter;
  BlockRewriter(const BlockRewriter &) = delete;
  BlockRewriter &operator=(const BlockRewriter &) = delete;
  ~BlockRewriter() override {
    for (Operation *op : replaced)
      op->dropAllReferences();
    for (Operation *op : replaced)
      op->destroy();
  }

  void eraseOp(Operation *op) override {
    op->remove();
    replaced.push_back(op);
  }

private:
  SmallVector<Operation *> replaced;
};
} // namespace

/// Makes blocks of structured loops and branches, the last ones first: what
/// follows one of them in its block is moved to another block, and would be
/// moved again for each that precedes it.
static LogicalResult makeBlocks(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  const FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  SmallVector<Operation *> structured;
  module.walk<WalkOrder::PreOrder, ReverseIterator>([&](Operation *op) {
    if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
      structured.push_back(op);
  });
  BlockRewriter rewriter(module.getContext());
  for (Operation *op : structured) {
    rewriter.setInsertionPoint(op);
    if (failed(applicator.matchAndRewrite(op, rewriter)))
      return op->emitError("has no form in blocks");
  }
  return success();
}

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
  LLVMConversionTarget target(*mlirContext);
  target.addLegalOp<ModuleOp>();
  LLVMTypeConverter converter(mlirContext);
  RewritePatternSet patterns(mlirContext);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  // Structured loops first: their blocks must exist before types change.
  if (failed(makeBlocks(module)) ||
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
