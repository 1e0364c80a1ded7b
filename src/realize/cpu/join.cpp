//===- join.cpp - Reductions about a reference ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A joined phase computes, in one loop, a reduction and others that depend on
// its result only through a scalar, their centre
// (analysis/reduction_algebra.h).
//
// The loop runs with a reference r in the centre's place: the centre of a few
// elements. It gives the first reduction's result, hence the centre c, and sums
// about r, which the law turns into sums about c. That is exact but for
// rounding, which grows with the distance of r from c. So the result is taken
// only if that distance turns out small, and all of it is finite:
//
//   shift   |k (r - c)| <= 8
//   powers  sum (x - r)^2 <= 4 sum (x - c)^2
//
// Otherwise a second loop follows with r = c, which gives the sums as they are
// written: rows with infinities, with NaN, without a visible element, or whose
// few elements stand for nothing, take two passes and have the results of two.
//
// docs/numerics.md bounds what the first pass may lose.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/elementwise.h"
#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"
#include "support/reference.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

using Form = Dependence::Form;

namespace {

/// Elements that the reference is computed from: more where there are many.
int64_t samplesOf(int64_t count) {
  constexpr int64_t many = 1024;
  return std::min<int64_t>(count, count < many ? 4 : 8);
}
/// A reference of powers beyond this is replaced by 0: its square, or what it
/// is subtracted from, might leave the range.
constexpr double largestReference = 0x1p60;

class JoinEmitter {
public:
  JoinEmitter(Realizer &realizer, const Phase &phase, const NestPlan &plan)
      : r(realizer), emit(realizer.emit), b(realizer.b), phase(phase),
        join(*phase.join), plan(plan),
        first(tile::ReduceOp(phase.join->first).getResult(0)),
        type(first.getType()) {}

  void run() {
    listOutputs();
    Pass pass = emitPass(sampledCentre(), plan);
    SmallVector<Type> types;
    for (Value output : outputs)
      types.push_back(tile::getElement(output.getType()));
    auto choice = b.create<scf::IfOp>(emit.loc, types, pass.isGood,
                                      /*withElseRegion=*/true);
    choice->setAttr(usualAttr, b.getUnitAttr());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(choice.thenBlock());
    b.create<scf::YieldOp>(emit.loc, pass.values);
    b.setInsertionPointToEnd(choice.elseBlock());
    b.create<scf::YieldOp>(emit.loc, emitSecondPass(pass));
    for (auto [output, value] : llvm::zip(outputs, choice.getResults()))
      r.setScalar(output, value);
  }

private:
  /// The scalars that leave the loop; the first of them, up to the centre, are
  /// computed from the first reduction alone.
  void listOutputs() {
    outputs.push_back(first);
    for (Operation *op : join.between)
      llvm::append_range(outputs, op->getResults());
    carried = outputs.size();
    for (const Root &root : phase.roots) {
      if (!isOutput(root))
        continue;
      if (root.kind == Root::Kind::Reduce)
        llvm::append_range(outputs, root.op->getResults());
      else
        outputs.push_back(root.value);
    }
  }

  /// Other reductions, and what is kept about the reference: it is scaled when
  /// it is read.
  bool isOutput(const Root &root) const {
    return root.kind == Root::Kind::Reduce
               ? root.op != join.first
               : root.dependence.form == Form::Exponential;
  }

  size_t centreNumber() const {
    return llvm::find(outputs, join.centre) - outputs.begin();
  }

  //===--------------------------------------------------------------------===//
  // Arithmetic on scalars
  //===--------------------------------------------------------------------===//

  Value number(double value) { return emit.floating(type, value); }
  Value add(Value x, Value y) {
    return b.create<arith::AddFOp>(emit.loc, x, y);
  }
  Value sub(Value x, Value y) {
    return b.create<arith::SubFOp>(emit.loc, x, y);
  }
  Value mul(Value x, Value y) {
    return b.create<arith::MulFOp>(emit.loc, x, y);
  }
  Value negateIf(bool condition, Value x) {
    return condition ? b.create<arith::NegFOp>(emit.loc, x).getResult() : x;
  }
  Value atMost(Value x, Value y) {
    return emit.compare(arith::CmpFPredicate::OLE, x, y);
  }
  Value magnitude(Value x) { return b.create<math::AbsFOp>(emit.loc, x); }
  Value isFinite(Value x) {
    const auto &semantics = cast<FloatType>(type).getFloatSemantics();
    return atMost(
        magnitude(x),
        number(llvm::APFloat::getLargest(semantics).convertToDouble()));
  }

  //===--------------------------------------------------------------------===//
  // The reference
  //===--------------------------------------------------------------------===//

  /// Computes the scalars between the first reduction and the centre.
  void runBetween() {
    for (Operation *op : join.between)
      r.runImmediate(*op);
  }

  /// The centre of a few elements, or 0.
  Value sampledCentre() {
    NestEmitter nest(r, phase, plan);
    tile::ReduceOp reduce = join.first;
    const int64_t count = samplesOf(join.count);
    SmallVector<Value> samples;
    for (int64_t i = 0; i < count; ++i)
      samples.push_back(nest.sample(reduce.getInputs()[0], i, count));
    while (samples.size() > 1) {
      SmallVector<Value> halves;
      for (size_t i = 0; i + 1 < samples.size(); i += 2)
        halves.push_back(emitCombine(emit, reduce.getCombiner(), samples[i],
                                     samples[i + 1]));
      if (samples.size() % 2 == 1)
        halves.push_back(samples.back());
      samples = std::move(halves);
    }
    Value estimate = samples[0];
    if (join.law == Law::Powers)
      estimate = mul(estimate, number(double(join.count) / double(count)));
    r.setScalar(first, estimate);
    runBetween();
    Value centre = r.scalar(join.centre);
    Value isUsable = join.law == Law::Powers
                         ? atMost(magnitude(centre), number(largestReference))
                         : isFinite(centre);
    return emit.select(isUsable, centre, number(0));
  }

  //===--------------------------------------------------------------------===//
  // Passes
  //===--------------------------------------------------------------------===//

  struct Pass {
    /// Whether the reference was good enough.
    Value isGood;
    /// The outputs about the centre that the law leads to, and as the loop has
    /// them, about the reference.
    SmallVector<Value> values, asWritten;
  };

  Pass emitPass(Value reference, const NestPlan &nest) {
    r.setScalar(join.centre, reference);
    NestEmitter(r, phase, nest).run();
    Pass pass;
    pass.asWritten.resize(carried);
    for (const Root &root : phase.roots) {
      if (!isOutput(root))
        continue;
      if (root.kind == Root::Kind::Materialize)
        pass.asWritten.push_back(number(1));
      else if (root.dependence.form == Form::Deviation)
        pass.asWritten.push_back(Value());
      else
        llvm::append_range(pass.asWritten, scalarsOf(root));
    }
    if (join.law == Law::Shift)
      finishShift(reference, pass);
    else
      finishPowers(reference, pass);
    return pass;
  }

  /// The sums as they are written: about the centre of the first pass. Those of
  /// powers are again moved where that is good, to a centre that is computed
  /// from deviations alone.
  SmallVector<Value> emitSecondPass(const Pass &before) {
    NestPlan nest = plan;
    nest.id = -1;
    nest.unroll = 1;
    Pass pass = emitPass(before.values[centreNumber()], nest);
    SmallVector<Value> values;
    for (auto [number, output] : llvm::enumerate(outputs)) {
      Value written =
          number < carried ? before.values[number] : pass.asWritten[number];
      values.push_back(
          join.law == Law::Shift
              ? written
              : emit.select(pass.isGood, pass.values[number], written));
    }
    return values;
  }

  void finishShift(Value reference, Pass &pass) {
    Value distance = sub(r.scalar(first), reference);
    pass.values.push_back(r.scalar(first));
    for (const Root &root : phase.roots) {
      if (!isOutput(root))
        continue;
      const Dependence &dependence = root.dependence;
      if (dependence.form != Form::Exponential) {
        llvm::append_range(pass.values, scalarsOf(root));
        continue;
      }
      Value exponent = mul(distance, number(dependence.rate));
      require(pass, atMost(magnitude(exponent), number(mostShift)));
      Value scale = dependence.isBase2
                        ? b.create<math::Exp2Op>(emit.loc, exponent).getResult()
                        : b.create<math::ExpOp>(emit.loc, exponent).getResult();
      if (root.kind == Root::Kind::Materialize) {
        pass.values.push_back(scale);
        continue;
      }
      Value sum = r.scalar(root.op->getResult(0));
      require(pass, isFinite(sum));
      pass.values.push_back(mul(sum, scale));
    }
  }

  void finishPowers(Value reference, Pass &pass) {
    // The deviations are x - r or r - x.
    Value deviations = negateIf(join.isReversed, r.scalar(first));
    Value count = number(double(join.count));
    r.setScalar(first, add(mul(count, reference), deviations));
    runBetween();
    for (Value output : ArrayRef(outputs).take_front(carried))
      pass.values.push_back(r.scalar(output));
    Value distance = sub(reference, r.scalar(join.centre));
    Value moved = mul(count, distance);
    Value linear = add(deviations, moved);
    Value correction = mul(distance, add(add(deviations, deviations), moved));
    for (const Root &root : phase.roots) {
      if (!isOutput(root))
        continue;
      const bool isNegative = root.dependence.rate < 0;
      if (root.dependence.form == Form::Deviation) {
        // The rate is that of the centre.
        pass.asWritten[pass.values.size()] = negateIf(!isNegative, deviations);
        pass.values.push_back(negateIf(!isNegative, linear));
      } else if (root.dependence.form == Form::Square) {
        Value sum = r.scalar(root.op->getResult(0));
        Value about = add(sum, negateIf(isNegative, correction));
        pass.values.push_back(about);
        Value least = negateIf(isNegative, about);
        require(pass, emit.logicalAnd(atMost(negateIf(isNegative, sum),
                                             mul(number(mostSpread), least)),
                                      isFinite(least)));
      } else {
        llvm::append_range(pass.values, scalarsOf(root));
      }
    }
  }

  void require(Pass &pass, Value condition) {
    pass.isGood =
        pass.isGood ? emit.logicalAnd(pass.isGood, condition) : condition;
  }

  SmallVector<Value> scalarsOf(const Root &root) {
    SmallVector<Value> values;
    for (Value result : root.op->getResults())
      values.push_back(r.scalar(result));
    return values;
  }

  Realizer &r;
  VectorEmitter &emit;
  OpBuilder &b;
  const Phase &phase;
  const Join &join;
  const NestPlan &plan;
  Value first;
  Type type;
  SmallVector<Value> outputs;
  /// How many of them are computed from the first reduction alone.
  size_t carried = 0;
};

} // namespace

void emitJoined(Realizer &realizer, const Phase &phase, const NestPlan &plan) {
  JoinEmitter(realizer, phase, plan).run();
}

} // namespace tessera
