//===- expand_math.cpp - Math functions as arithmetic ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/expand_math.h"

#include "codegen/cpu/counting_math.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <numeric>

using namespace mlir;

namespace tessera {

namespace {

/// The constants of one function, each emitted once, at its begin.
class ConstantPool {
public:
  explicit ConstantPool(func::FuncOp function) : function(function) {}

  Value get(OpBuilder &b, Location loc, TypedAttr attribute) {
    Value &known = constants[attribute];
    if (known)
      return known;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.front());
    return known = b.create<arith::ConstantOp>(loc, attribute);
  }

  func::FuncOp function;

private:
  llvm::DenseMap<Attribute, Value> constants;
};

/// The builder of vector_math_support.h that emits arith ops on the type of
/// one operand.
class EmittingBuilder {
public:
  using Value = mlir::Value;
  using Int = mlir::Value;
  using Mask = mlir::Value;

  EmittingBuilder(OpBuilder &builder, ConstantPool &constants, Location loc,
                  Type type, const Target &target)
      : b(builder), constants(constants), loc(loc), type(type), target(target) {
    Type element = getElementTypeOrSelf(type);
    Type integer = b.getIntegerType(element.getIntOrFloatBitWidth());
    auto vector = dyn_cast<VectorType>(type);
    lanes = vector ? vector.getNumElements() : 1;
    intType = vector ? VectorType::get(vector.getShape(), integer) : integer;
  }

  Value constF(double c) {
    return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), c));
  }
  Value add(Value a, Value c) { return create<arith::AddFOp>(a, c); }
  Value sub(Value a, Value c) { return create<arith::SubFOp>(a, c); }
  Value mul(Value a, Value c) { return create<arith::MulFOp>(a, c); }
  Value div(Value a, Value c) { return create<arith::DivFOp>(a, c); }
  bool hasFMA() const { return target.hasFma; }
  Value fma(Value a, Value c, Value d) {
    return hasFMA() ? create<math::FmaOp>(a, c, d) : add(mul(a, c), d);
  }
  Value neg(Value a) { return create<arith::NegFOp>(a); }
  Value abs(Value a) { return create<math::AbsFOp>(a); }
  Value sqrt(Value a) { return create<math::SqrtOp>(a); }
  Value min(Value a, Value c) { return select(lt(a, c), a, c); }
  Value max(Value a, Value c) {
    return select(compare(arith::CmpFPredicate::OGT, a, c), a, c);
  }
  Mask lt(Value a, Value c) { return compare(arith::CmpFPredicate::OLT, a, c); }
  Mask eq(Value a, Value c) { return compare(arith::CmpFPredicate::OEQ, a, c); }
  Value select(Mask m, Value a, Value c) {
    return create<arith::SelectOp>(m, a, c);
  }

  Int toBits(Value a) { return create<arith::BitcastOp>(intType, a); }
  Value fromBits(Int i) { return create<arith::BitcastOp>(type, i); }
  Int constI(int64_t c) {
    unsigned width = getElementTypeOrSelf(intType).getIntOrFloatBitWidth();
    return constant(intType, b.getIntegerAttr(getElementTypeOrSelf(intType),
                                              APInt(64, c).trunc(width)));
  }
  Int iadd(Int i, Int j) { return create<arith::AddIOp>(i, j); }
  Int isub(Int i, Int j) { return create<arith::SubIOp>(i, j); }
  Int imul(Int i, Int j) { return create<arith::MulIOp>(i, j); }
  Int iand(Int i, Int j) { return create<arith::AndIOp>(i, j); }
  Int ior(Int i, Int j) { return create<arith::OrIOp>(i, j); }
  Int ixor(Int i, Int j) { return create<arith::XOrIOp>(i, j); }
  Int shl(Int i, unsigned n) { return create<arith::ShLIOp>(i, constI(n)); }
  Int lshr(Int i, unsigned n) { return create<arith::ShRUIOp>(i, constI(n)); }
  Int shlv(Int i, Int j) { return create<arith::ShLIOp>(i, j); }
  Mask ieq(Int i, Int j) {
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, i, j);
  }
  Int iselect(Mask m, Int i, Int j) { return create<arith::SelectOp>(m, i, j); }

  bool hasScalef() const { return target.hasScalef; }
  Value scalef(Value a, Value n) {
    bool isF32 = getElementTypeOrSelf(type).isF32();
    int64_t full = isF32 ? 16 : 8;
    if (lanes < full) {
      // One element at a time, in the lowest lane of the narrowest form.
      int64_t narrow = isF32 ? 4 : 2;
      if (lanes == 1)
        return extract(scalefNarrow(insert(a, narrow), insert(n, narrow)));
      Value result = a;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value index = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), lane);
        Value x = b.create<LLVM::ExtractElementOp>(loc, a, index);
        Value y = b.create<LLVM::ExtractElementOp>(loc, n, index);
        result = b.create<LLVM::InsertElementOp>(
            loc, result,
            extract(scalefNarrow(insert(x, narrow), insert(y, narrow))), index);
      }
      return result;
    }
    if (lanes == full)
      return scalefFull(a, n);
    // As many registers as the lanes fill: both are powers of two.
    SmallVector<Value> parts;
    for (int64_t from = 0; from < lanes; from += full)
      parts.push_back(scalefFull(part(a, from, full), part(n, from, full)));
    while (parts.size() > 1) {
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = joined(parts[2 * i], parts[2 * i + 1]);
      parts.resize(parts.size() / 2);
    }
    return parts[0];
  }

  template <typename Then> Value ifAny(Mask m, Value otherwise, Then then) {
    Value any = m;
    if (lanes > 1) {
      Type bits = b.getIntegerType(lanes);
      Value packed = b.create<LLVM::BitcastOp>(loc, bits, m);
      any = b.create<arith::CmpIOp>(
          loc, arith::CmpIPredicate::ne, packed,
          b.create<arith::ConstantOp>(loc, b.getIntegerAttr(bits, 0)));
    }
    auto branch = b.create<scf::IfOp>(loc, TypeRange(otherwise.getType()), any,
                                      /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    b.create<scf::YieldOp>(loc, then());
    b.setInsertionPointToEnd(branch.elseBlock());
    b.create<scf::YieldOp>(loc, otherwise);
    return branch.getResult(0);
  }

private:
  template <typename Op, typename... Args> Value create(Args &&...args) {
    return b.create<Op>(loc, std::forward<Args>(args)...);
  }
  Mask compare(arith::CmpFPredicate predicate, Value a, Value c) {
    return b.create<arith::CmpFOp>(loc, predicate, a, c);
  }
  Value constant(Type shape, Attribute element) {
    if (auto vector = dyn_cast<VectorType>(shape))
      return constants.get(
          b, loc, DenseElementsAttr::get(vector, ArrayRef<Attribute>(element)));
    return constants.get(b, loc, cast<TypedAttr>(element));
  }
  Value zeroIndex() {
    return b.create<LLVM::ConstantOp>(loc, b.getI32Type(), 0);
  }
  Value insert(Value scalar, int64_t width) {
    auto vector = VectorType::get({width}, scalar.getType());
    Value zero = constant(vector, b.getFloatAttr(scalar.getType(), 0));
    return b.create<LLVM::InsertElementOp>(loc, zero, scalar, zeroIndex());
  }
  /// The elements of a vector from one of them on.
  Value part(Value vector, int64_t from, int64_t count) {
    SmallVector<int32_t> order(count);
    std::iota(order.begin(), order.end(), int32_t(from));
    return b.create<LLVM::ShuffleVectorOp>(loc, vector, vector, order);
  }
  /// One vector after another of its length.
  Value joined(Value low, Value high) {
    SmallVector<int32_t> order(
        2 * cast<VectorType>(low.getType()).getNumElements());
    std::iota(order.begin(), order.end(), 0);
    return b.create<LLVM::ShuffleVectorOp>(loc, low, high, order);
  }
  Value extract(Value vector) {
    return b.create<LLVM::ExtractElementOp>(loc, vector, zeroIndex());
  }
  Value call(StringRef name, Type result, ValueRange arguments) {
    return b
        .create<LLVM::CallIntrinsicOp>(loc, result, b.getStringAttr(name),
                                       arguments)
        .getResult(0);
  }
  Value scalefNarrow(Value a, Value n) {
    bool isF32 = getElementTypeOrSelf(a.getType()).isF32();
    Value all = b.create<arith::ConstantOp>(loc, b.getI8IntegerAttr(-1));
    return call(isF32 ? "llvm.x86.avx512.mask.scalef.ps.128"
                      : "llvm.x86.avx512.mask.scalef.pd.128",
                a.getType(), {a, n, a, all});
  }
  Value scalefFull(Value a, Value n) {
    bool isF32 = getElementTypeOrSelf(a.getType()).isF32();
    Value all = b.create<arith::ConstantOp>(
        loc, b.getIntegerAttr(b.getIntegerType(isF32 ? 16 : 8), -1));
    // The current rounding direction.
    Value rounding = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), 4);
    return call(isF32 ? "llvm.x86.avx512.mask.scalef.ps.512"
                      : "llvm.x86.avx512.mask.scalef.pd.512",
                a.getType(), {a, n, a, all, rounding});
  }

  OpBuilder &b;
  ConstantPool &constants;
  Location loc;
  Type type, intType;
  int64_t lanes;
  const Target &target;
};

std::optional<vmath::Function> functionOf(Operation *op) {
  using vmath::Function;
  if (isa<math::ExpOp>(op))
    return Function::Exp;
  if (isa<math::Exp2Op>(op))
    return Function::Exp2;
  if (isa<math::ExpM1Op>(op))
    return Function::Expm1;
  if (isa<tile::SigmoidOp>(op))
    return Function::Sigmoid;
  if (isa<math::TanhOp>(op))
    return Function::Tanh;
  if (isa<math::ErfOp>(op))
    return Function::Erf;
  if (isa<math::LogOp>(op))
    return Function::Log;
  if (isa<math::Log2Op>(op))
    return Function::Log2;
  if (isa<math::Log1pOp>(op))
    return Function::Log1p;
  if (isa<math::RsqrtOp>(op))
    return Function::Rsqrt;
  if (isa<math::SinOp>(op))
    return Function::Sin;
  if (isa<math::CosOp>(op))
    return Function::Cos;
  return std::nullopt;
}

/// A function on one type, and where the module uses it.
struct UsedFunction {
  SmallVector<Operation *> uses;
  /// Instructions of one use.
  int64_t instructions = 0;
  /// What its uses call, where it is not evaluated in their place.
  func::FuncOp called;
};

using UsedFunctions =
    llvm::MapVector<std::pair<vmath::Function, Type>, UsedFunction>;

class Expansion {
public:
  Expansion(ModuleOp module, const Target &target, vmath::Accuracy accuracy)
      : module(module), target(target), accuracy(accuracy),
        builder(module.getContext()) {}

  MathForm run() {
    SmallVector<Operation *> operations;
    UsedFunctions used;
    module.walk([&](Operation *op) {
      std::optional<vmath::Function> function = functionOf(op);
      if (!function)
        return;
      operations.push_back(op);
      used[{*function, op->getOperand(0).getType()}].uses.push_back(op);
    });
    MathForm form = chooseCalled(used);
    // Before their uses are gone.
    for (auto &[key, one] : used)
      if (one.called)
        define(one.called, key.first);
    std::optional<ConstantPool> constants;
    for (Operation *op : operations) {
      Value x = op->getOperand(0);
      builder.setInsertionPoint(op);
      Value result;
      if (func::FuncOp called =
              used.find({*functionOf(op), x.getType()})->second.called) {
        result =
            builder.create<func::CallOp>(op->getLoc(), called, x).getResult(0);
      } else {
        // One function comes after another.
        if (auto function = op->getParentOfType<func::FuncOp>();
            !constants || constants->function != function)
          constants.emplace(function);
        result = evaluate(*constants, op->getLoc(), *functionOf(op), x);
      }
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
    return form;
  }

private:
  int64_t instructionsOf(vmath::Function function, Type type) const {
    Type element = getElementTypeOrSelf(type);
    vmath::CountingBuilder counting(target.hasFma, target.hasScalef);
    if (element.isF32())
      vmath::evaluate<vmath::F32>(counting, function, {}, accuracy);
    else
      vmath::evaluate<vmath::F64>(counting, function, {}, accuracy);
    int64_t registers = 1;
    if (auto vector = dyn_cast<VectorType>(type))
      registers = std::max<int64_t>(1, vector.getNumElements() *
                                           element.getIntOrFloatBitWidth() /
                                           target.vectorBits);
    return counting.instructions() * registers;
  }

  /// Declares what is called: of the functions that are used repeatedly those
  /// that take most of the code, until the rest is short enough.
  MathForm chooseCalled(UsedFunctions &used) {
    MathForm form;
    /// Instructions of all uses, negative so that the longest come first, and
    /// the place in the map.
    SmallVector<std::pair<int64_t, size_t>> byLength;
    for (auto [number, entry] : llvm::enumerate(used)) {
      auto &[key, one] = entry;
      one.instructions = instructionsOf(key.first, key.second);
      const int64_t all = one.instructions * int64_t(one.uses.size());
      form.inlined += all;
      byLength.emplace_back(-all, number);
    }
    llvm::sort(byLength);
    int64_t left = form.inlined;
    for (auto [length, number] : byLength) {
      auto &[key, one] = used.begin()[number];
      const auto uses = int64_t(one.uses.size());
      if (left <= mostInlinedMath)
        break;
      if (uses < 2)
        continue;
      left -= one.instructions * (uses - 1);
      form.calls += uses;
      ++form.called;
      one.called = declare(key.first, key.second);
    }
    return form;
  }

  func::FuncOp declare(vmath::Function function, Type type) {
    MLIRContext *context = module.getContext();
    std::string name = "vmath_" + std::string(vmath::name(function)) + "_";
    llvm::raw_string_ostream stream(name);
    if (auto vector = dyn_cast<VectorType>(type))
      stream << vector.getNumElements() << "x";
    stream << getElementTypeOrSelf(type);
    builder.setInsertionPointToEnd(module.getBody());
    auto declared = builder.create<func::FuncOp>(
        module.getLoc(), name, builder.getFunctionType(type, type));
    declared->setAttr("llvm.linkage",
                      LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
    declared->setAttr("llvm.readnone", builder.getUnitAttr());
    return declared;
  }

  void define(func::FuncOp declared, vmath::Function function) {
    builder.setInsertionPointToStart(declared.addEntryBlock());
    ConstantPool constants(declared);
    Value result = evaluate(constants, declared.getLoc(), function,
                            declared.getArgument(0));
    builder.setInsertionPointToEnd(&declared.front());
    builder.create<func::ReturnOp>(declared.getLoc(), result);
  }

  Value evaluate(ConstantPool &constants, Location loc,
                 vmath::Function function, Value x) {
    EmittingBuilder emitting(builder, constants, loc, x.getType(), target);
    return getElementTypeOrSelf(x.getType()).isF32()
               ? vmath::evaluate<vmath::F32>(emitting, function, x, accuracy)
               : vmath::evaluate<vmath::F64>(emitting, function, x, accuracy);
  }

  ModuleOp module;
  const Target &target;
  vmath::Accuracy accuracy;
  OpBuilder builder;
};

} // namespace

MathForm expandMath(ModuleOp module, const Target &target, tile::Tier tier) {
  vmath::Accuracy accuracy =
      tier == tile::Tier::Strict    ? vmath::Accuracy::Strict
      : tier == tile::Tier::Default ? vmath::Accuracy::Default
                                    : vmath::Accuracy::Fast;
  return Expansion(module, target, accuracy).run();
}

int64_t formMultiplyAdds(ModuleOp module, const Target &target,
                         tile::Tier tier) {
  if (tier == tile::Tier::Strict || !target.hasFma)
    return 0;
  int64_t formed = 0;
  SmallVector<Operation *> sums;
  module.walk([&](Operation *op) {
    if (isa<arith::AddFOp, arith::SubFOp>(op) &&
        !op->hasAttr("tessera.ordered"))
      sums.push_back(op);
  });
  OpBuilder builder(module.getContext());
  for (Operation *op : sums) {
    // A product with other uses would be computed twice.
    auto product = [](Value value) {
      auto mul = value.getDefiningOp<arith::MulFOp>();
      return mul && mul->hasOneUse() ? mul : arith::MulFOp();
    };
    builder.setInsertionPoint(op);
    Location loc = op->getLoc();
    Value lhs = op->getOperand(0), rhs = op->getOperand(1);
    auto negate = [&](Value value) -> Value {
      return builder.create<arith::NegFOp>(loc, value);
    };
    bool isSub = isa<arith::SubFOp>(op);
    Value fused;
    arith::MulFOp used;
    if ((used = product(lhs)))
      fused = builder.create<math::FmaOp>(loc, used.getLhs(), used.getRhs(),
                                          isSub ? negate(rhs) : rhs);
    else if ((used = product(rhs)))
      fused = builder.create<math::FmaOp>(
          loc, isSub ? negate(used.getLhs()) : used.getLhs(), used.getRhs(),
          lhs);
    if (!fused)
      continue;
    op->getResult(0).replaceAllUsesWith(fused);
    op->erase();
    used->erase();
    ++formed;
  }
  return formed;
}

} // namespace tessera
