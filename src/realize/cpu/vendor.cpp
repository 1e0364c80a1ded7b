//===- vendor.cpp - A kernel as a call to a library -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/vendor.h"

#include "realize/cpu/vector_emitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <climits>

using namespace mlir;

namespace tessera {

namespace {

/// Of the C interface of BLAS.
constexpr int64_t rowMajor = 101, noTrans = 111, trans = 112;

class VendorEmitter {
public:
  VendorEmitter(ModuleOp module, func::FuncOp body, const VendorCall &call,
                tile::KernelOp kernel, const Target &target,
                std::vector<Error> &checks)
      : module(module), body(body), call(call), kernel(kernel),
        b(OpBuilder::atBlockBegin(&body.front())),
        emit(b, kernel.getLoc(), target), checks(checks) {}

  void run() {
    const Matrix a = read(call.a), bMatrix = read(call.b), c = read(call.c);
    Value status = integer(32, 0);
    for (const auto &[matrix, planned] :
         {std::pair(&a, &call.a), {&bMatrix, &call.b}, {&c, &call.c}})
      status = checkLeading(*matrix, *planned, status);
    Value fits = emit.compare(arith::CmpIPredicate::eq, status, integer(32, 0));
    auto branch = b.create<scf::IfOp>(emit.loc, TypeRange(b.getI32Type()), fits,
                                      /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(branch.elseBlock());
      b.create<scf::YieldOp>(emit.loc, status);
      b.setInsertionPointToEnd(branch.thenBlock());
      b.create<scf::YieldOp>(emit.loc, emitLoops(a, bMatrix, c));
    }
    b.create<func::ReturnOp>(emit.loc, branch.getResult(0));
  }

private:
  struct Matrix {
    Value pointer, leading;
    /// By loop, in elements; null for none.
    SmallVector<Value> batchStrides;
  };

  Value integer(unsigned bits, int64_t value) {
    return emit.integer(b.getIntegerType(bits), value);
  }

  Value readSlot(unsigned argument, Type type, int64_t number) {
    Value slot = emit.offsetPointer(body.getArgument(argument), b.getI64Type(),
                                    emit.index(number));
    return b.create<LLVM::LoadOp>(emit.loc, type, slot);
  }

  /// The numbers of a view among the kernel's, and of its first stride.
  std::pair<int64_t, int64_t> numbersOf(unsigned parameter) {
    int64_t view = 0, stride = 0;
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      if (argument.getArgNumber() == parameter)
        break;
      if (auto type = dyn_cast<tile::ViewType>(argument.getType())) {
        ++view;
        stride += type.getRank();
      }
    }
    return {view, stride};
  }

  Matrix read(const VendorMatrix &planned) {
    Matrix matrix;
    auto [view, stride] = numbersOf(planned.parameter);
    matrix.pointer =
        readSlot(0, LLVM::LLVMPointerType::get(b.getContext()), view);
    matrix.leading =
        planned.leadingAxis < 0
            ? integer(64, planned.leastLeading)
            : readSlot(1, b.getI64Type(), stride + planned.leadingAxis);
    for (int axis : planned.batchAxes)
      matrix.batchStrides.push_back(
          axis < 0 ? Value() : readSlot(1, b.getI64Type(), stride + axis));
    return matrix;
  }

  /// The number of an error where the leading dimension is out of range.
  Value checkLeading(const Matrix &matrix, const VendorMatrix &planned,
                     Value status) {
    if (planned.leadingAxis < 0)
      return status;
    const int64_t most =
        call.library == Vendor::OneDnn ? INT64_MAX : int64_t{INT_MAX};
    checks.push_back(Error{
        ErrorFamily::Launch,
        "launch.stride",
        "argument '" + planned.name + "': its stride along axis " +
            std::to_string(planned.leadingAxis) + " is not from " +
            std::to_string(planned.leastLeading) + " to " +
            std::to_string(most) + ", and '" + call.function +
            "' takes no other; compile without a vendor's library for such a "
            "view",
        {}});
    Value wrong =
        emit.logicalOr(emit.compare(arith::CmpIPredicate::slt, matrix.leading,
                                    integer(64, planned.leastLeading)),
                       emit.compare(arith::CmpIPredicate::sgt, matrix.leading,
                                    integer(64, most)));
    Value isFirst =
        emit.compare(arith::CmpIPredicate::eq, status, integer(32, 0));
    return emit.select(emit.logicalAnd(wrong, isFirst),
                       integer(32, int64_t(checks.size())), status);
  }

  /// The loops around the call; the result is 0 or the number of an error.
  Value emitLoops(const Matrix &a, const Matrix &bMatrix, const Matrix &c) {
    if (call.library == Vendor::OneDnn)
      checks.push_back(Error{ErrorFamily::Unsupported,
                             "vendor.failed",
                             "'" + call.function +
                                 "' did not compute the product; compile "
                                 "without a vendor's library",
                             {}});
    SmallVector<Value> pointers{a.pointer, bMatrix.pointer, c.pointer};
    return emitLoop(0, {&a, &bMatrix, &c}, pointers);
  }

  Value emitLoop(size_t number, ArrayRef<const Matrix *> matrices,
                 ArrayRef<Value> pointers) {
    if (number == call.batch.size())
      return emitCall(matrices, pointers);
    auto loop = b.create<scf::ForOp>(emit.loc, emit.index(0),
                                     emit.index(call.batch[number]),
                                     emit.index(1), ValueRange(integer(32, 0)));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    SmallVector<Value> moved;
    Type element = elementType();
    for (auto [matrix, pointer] : llvm::zip(matrices, pointers)) {
      Value stride = matrix->batchStrides[number];
      moved.push_back(stride
                          ? emit.offsetPointer(pointer, element,
                                               emit.mul(loop.getInductionVar(),
                                                        toIndex(stride)))
                          : pointer);
    }
    Value status = emitLoop(number + 1, matrices, moved);
    // The last failure stays; there is one kind.
    Value failed =
        emit.compare(arith::CmpIPredicate::ne, status, integer(32, 0));
    b.create<scf::YieldOp>(
        emit.loc, emit.select(failed, status, loop.getRegionIterArg(0)));
    return loop.getResult(0);
  }

  Value toIndex(Value value) {
    return b.create<arith::IndexCastOp>(emit.loc, b.getIndexType(), value);
  }
  Type elementType() {
    return call.isF64 ? Type(b.getF64Type()) : Type(b.getF32Type());
  }

  Value emitCall(ArrayRef<const Matrix *> matrices, ArrayRef<Value> pointers) {
    const bool isOneDnn = call.library == Vendor::OneDnn;
    const unsigned bits = isOneDnn ? 64 : 32;
    auto form = [&](const VendorMatrix &matrix) {
      if (isOneDnn)
        return integer(32, matrix.transposed ? 'T' : 'N');
      return integer(32, matrix.transposed ? trans : noTrans);
    };
    auto leading = [&](const Matrix &matrix) -> Value {
      if (bits == 64)
        return matrix.leading;
      return b.create<arith::TruncIOp>(emit.loc, b.getI32Type(),
                                       matrix.leading);
    };
    SmallVector<Value> arguments;
    if (!isOneDnn)
      arguments.push_back(integer(32, rowMajor));
    arguments.append({form(call.a), form(call.b), integer(bits, call.m),
                      integer(bits, call.n), integer(bits, call.k),
                      emit.floating(elementType(), call.alpha), pointers[0],
                      leading(*matrices[0]), pointers[1], leading(*matrices[1]),
                      emit.floating(elementType(), VendorCall::beta),
                      pointers[2], leading(*matrices[2])});
    SmallVector<Type> types;
    for (Value argument : arguments)
      types.push_back(argument.getType());
    MLIRContext *context = b.getContext();
    auto type = LLVM::LLVMFunctionType::get(
        isOneDnn ? Type(b.getI32Type()) : LLVM::LLVMVoidType::get(context),
        types);
    LLVM::LLVMFuncOp callee;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      callee = b.create<LLVM::LLVMFuncOp>(emit.loc, call.function, type);
    }
    auto made = b.create<LLVM::CallOp>(emit.loc, callee, arguments);
    if (!isOneDnn)
      return integer(32, 0);
    Value failed = emit.compare(arith::CmpIPredicate::ne, made.getResult(),
                                integer(32, 0));
    return emit.select(failed, integer(32, int64_t(checks.size())),
                       integer(32, 0));
  }

  ModuleOp module;
  func::FuncOp body;
  const VendorCall &call;
  tile::KernelOp kernel;
  OpBuilder b;
  VectorEmitter emit;
  std::vector<Error> &checks;
};

} // namespace

void emitVendorCall(ModuleOp module, func::FuncOp body, const VendorCall &call,
                    tile::KernelOp kernel, const Target &target,
                    std::vector<Error> &checks) {
  VendorEmitter(module, body, call, kernel, target, checks).run();
}

} // namespace tessera
