//===- reduction_algebra.cpp - Reductions about a centre ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/reduction_algebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace mlir;

namespace tessera {

using Form = Dependence::Form;

static constexpr LawRow laws[] = {
    {Law::Shift, "shift",
     "sum g(x) exp(k (x - c)) = exp(k (r - c)) sum g(x) exp(k (x - r))"},
    {Law::Powers, "powers",
     "sum (x - c)^2 = sum (x - r)^2 + d (2 sum (x - r) + n d), d = r - c"}};

const LawRow &rowOf(Law law) {
  for (const LawRow &row : laws)
    if (row.law == law)
      return row;
  return laws[0];
}

namespace {

/// The constant in every element, if there is one.
std::optional<double> constantOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, tile::TransposeOp>(op))
      break;
    value = op->getOperand(0);
  }
  FloatAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  return constant.getValueAsDouble();
}

bool isFinite(std::optional<double> constant) {
  return constant && std::isfinite(*constant);
}

/// Gives forms to the values that depend on a centre.
class Prover {
public:
  explicit Prover(Value centre) {
    known[centre] = Dependence{Form::Centre, 1, false, {}, {}};
  }

  Proof run(Value value) {
    // Operands first, not by recursion: chains are as long as authors make
    // them.
    SmallVector<Value> stack{value};
    while (!stack.empty()) {
      Value next = stack.back();
      if (known.count(next)) {
        stack.pop_back();
        continue;
      }
      Operation *op = next.getDefiningOp();
      // Other reductions' results and everything with regions is looked at from
      // outside: it is free, since the centre is the one scalar of the loop
      // that the value depends on.
      const bool isLeaf = !op || op->getNumRegions() > 0 ||
                          op->getNumResults() != 1 || isa<tile::ReduceOp>(op);
      size_t before = stack.size();
      if (!isLeaf)
        for (Value operand : op->getOperands())
          if (!known.count(operand))
            stack.push_back(operand);
      if (stack.size() > before)
        continue;
      Dependence form;
      if (!isLeaf && llvm::any_of(op->getOperands(), [&](Value operand) {
            return !isFree(operand);
          }))
        form = formOf(op);
      if (refusal)
        return *refusal;
      known[next] = form;
      stack.pop_back();
    }
    return known[value];
  }

private:
  const Dependence &of(Value value) const { return known.find(value)->second; }
  bool isFree(Value value) const { return of(value).form == Form::Free; }
  bool is(Value value, Form form) const { return of(value).form == form; }

  Dependence refuse(Operation *op, const Twine &why) {
    refusal = Refusal{"algebra.form",
                      ("'" + op->getName().getStringRef() + "' " + why).str()};
    return {};
  }

  Dependence formOf(Operation *op) {
    if (isa<tile::BroadcastOp, tile::TransposeOp>(op)) {
      // The element is the value at the same coordinates, whatever their order.
      Dependence form = of(op->getOperand(0));
      form.element = {};
      return form;
    }
    if (auto cast = dyn_cast<tile::CastOp>(op))
      return formOfCast(cast);
    if (isa<arith::NegFOp>(op))
      return scaled(of(op->getOperand(0)), -1);
    if (isa<arith::AddFOp>(op))
      return formOfSum(op, of(op->getOperand(0)), of(op->getOperand(1)));
    if (isa<arith::SubFOp>(op))
      return formOfSum(op, of(op->getOperand(0)),
                       negatedOperand(of(op->getOperand(1))));
    if (isa<arith::MulFOp>(op))
      return formOfProduct(op);
    if (isa<arith::DivFOp>(op))
      return formOfQuotient(op);
    if (isa<math::ExpOp, math::Exp2Op>(op))
      return formOfExponential(op);
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return formOfSelect(select);
    return refuse(op, "is no operation that a law goes through");
  }

  /// The form of factor * value; an Exponential takes factors anyway.
  static Dependence scaled(Dependence form, double factor) {
    if (form.form == Form::Exponential)
      return form;
    form.rate *= factor;
    if (std::fabs(factor) != 1)
      form.element = {};
    return form;
  }

  static Dependence negatedOperand(const Dependence &form) {
    return scaled(form, -1);
  }

  Dependence formOfCast(tile::CastOp cast) {
    auto from =
        dyn_cast<FloatType>(tile::getElement(cast.getInput().getType()));
    auto to = dyn_cast<FloatType>(tile::getElement(cast.getType()));
    if (!from || !to || from.getWidth() > to.getWidth())
      return refuse(cast, "rounds what depends on the centre");
    Dependence form = of(cast.getInput());
    form.element = {};
    return form.form == Form::Square
               ? refuse(cast, "widens a square of deviations")
               : form;
  }

  /// The sum of two forms; `free` values keep their sign, which matters to none
  /// but the element of a deviation.
  Dependence formOfSum(Operation *op, const Dependence &a,
                       const Dependence &b) {
    if (a.form == Form::Exponential && b.form == Form::Exponential &&
        a.rate == b.rate && a.isBase2 == b.isBase2)
      return a;
    auto isAffine = [](const Dependence &form) {
      return form.form == Form::Free || form.form == Form::Centre ||
             form.form == Form::Deviation;
    };
    if (!isAffine(a) || !isAffine(b))
      return refuse(op, "adds what changes with the centre in different ways");
    Dependence sum{Form::Deviation, a.rate + b.rate, false, {}, {}};
    if (a.form == Form::Centre && b.form == Form::Centre)
      sum.form = Form::Centre;
    if (sum.rate == 0)
      return refuse(op, "cancels the centre");
    // x - c, c - x, x + -c and -c + x.
    const bool subtracts = isa<arith::SubFOp>(op);
    if (a.form == Form::Free && b.form == Form::Centre && sum.rate == -1)
      sum.element = op->getOperand(0);
    else if (a.form == Form::Centre && b.form == Form::Free && subtracts &&
             sum.rate == 1)
      sum.element = op->getOperand(1);
    else if (a.form == Form::Centre && b.form == Form::Free && !subtracts &&
             sum.rate == -1)
      sum.element = op->getOperand(1);
    if (sum.element)
      sum.deviation = op->getResult(0);
    return sum;
  }

  Dependence formOfProduct(Operation *op) {
    Value x = op->getOperand(0), y = op->getOperand(1);
    if (isFree(x))
      std::swap(x, y);
    const Dependence a = of(x), b = of(y);
    if (b.form == Form::Free) {
      if (a.form == Form::Exponential)
        return a;
      std::optional<double> factor = constantOf(y);
      if (a.form == Form::Square)
        return refuse(op, "weights squares of deviations");
      if (!isFinite(factor) || *factor == 0)
        return refuse(op, "scales a deviation by what is not a constant");
      return scaled(a, *factor);
    }
    if (a.form == Form::Deviation && b.form == Form::Deviation) {
      if (!a.element || a.element != b.element)
        return refuse(op, "multiplies deviations of different elements");
      return {Form::Square, a.rate * b.rate, false, a.element, a.deviation};
    }
    if (a.form == Form::Exponential && b.form == Form::Exponential &&
        a.isBase2 == b.isBase2)
      return {Form::Exponential, a.rate + b.rate, a.isBase2, {}, {}};
    return refuse(op, "multiplies what changes with the centre in ways that "
                      "no law covers");
  }

  Dependence formOfQuotient(Operation *op) {
    const Dependence a = of(op->getOperand(0));
    if (!isFree(op->getOperand(1)))
      return refuse(op, "divides by what depends on the centre");
    if (a.form == Form::Exponential)
      return a;
    std::optional<double> divisor = constantOf(op->getOperand(1));
    if (a.form == Form::Square || !isFinite(divisor) || *divisor == 0)
      return refuse(op, "scales a deviation by what is not a constant");
    return scaled(a, 1 / *divisor);
  }

  Dependence formOfExponential(Operation *op) {
    const Dependence a = of(op->getOperand(0));
    if (a.form != Form::Deviation)
      return refuse(op, "of what is no deviation from the centre");
    return {Form::Exponential, a.rate, isa<math::Exp2Op>(op), {}, {}};
  }

  Dependence formOfSelect(arith::SelectOp select) {
    if (!isFree(select.getCondition()))
      return refuse(select, "chooses by what depends on the centre");
    Value yes = select.getTrueValue(), no = select.getFalseValue();
    if (isFree(yes))
      std::swap(yes, no);
    const Dependence a = of(yes), b = of(no);
    if (a.form != Form::Exponential)
      return refuse(select, "leaves out deviations");
    // 0 about one centre is 0 about every other.
    if (b.form == Form::Free ? constantOf(no) == 0.0
                             : b.form == Form::Exponential &&
                                   a.rate == b.rate && a.isBase2 == b.isBase2)
      return a;
    return refuse(select, "mixes exponentials with other values");
  }

  llvm::DenseMap<Value, Dependence> known;
  std::optional<Refusal> refusal;
};

} // namespace

Proof dependenceOn(Value centre, Value value) {
  return Prover(centre).run(value);
}

std::variant<Licence, Refusal> proveJoin(const JoinQuery &query) {
  tile::KernelOp kernel = query.kernel;
  tile::ReduceOp first = query.first, second = query.second;
  auto refuse = [](const char *code, std::string text) {
    return Refusal{code, std::move(text)};
  };
  if (kernel.getTier() == tile::Tier::Strict)
    return refuse("algebra.tier", "in tier strict, operations are rounded as "
                                  "they are written");
  for (tile::ReduceOp reduce : {first, second})
    if (reduce && (reduce.getOrder() != tile::Order::Unordered ||
                   reduce.getInputs().size() != 1))
      return refuse("algebra.order", "the order of a reduction is fixed, or it "
                                     "combines several values");
  if (second && second.getCombiner() != tile::Combiner::Add)
    return refuse("algebra.combiner",
                  "what depends on the centre is not summed");
  auto type = dyn_cast<FloatType>(first.getResult(0).getType());
  if (!type || query.centre.getType() != type ||
      tile::getElement(query.value.getType()) != type)
    return refuse("algebra.type", "centre, elements and sums are not numbers "
                                  "of one floating type");
  constexpr int64_t mostElements = int64_t(1) << 24;
  if (!query.count || *query.count < 2 || *query.count > mostElements)
    return refuse("algebra.extent",
                  "the number of elements is not constant, or is below 2, or "
                  "is not exact in every type");
  Proof proof = dependenceOn(query.centre, query.value);
  if (auto *refusal = std::get_if<Refusal>(&proof))
    return *refusal;
  const Dependence dependence = std::get<Dependence>(proof);
  const tile::Combiner combiner = first.getCombiner();
  switch (dependence.form) {
  case Form::Exponential:
    // The reference is taken from some of the elements: it lies on the side of
    // the centre where exponentials are larger, so that none of them gets lost.
    if (query.centre != first.getResult(0) ||
        !((combiner == tile::Combiner::Max && dependence.rate < 0) ||
          (combiner == tile::Combiner::Min && dependence.rate > 0)))
      return refuse("algebra.centre",
                    "exponentials are not about the largest of what they grow "
                    "with");
    return Licence{Law::Shift, dependence};
  case Form::Deviation:
  case Form::Square:
    if (!second)
      return refuse("algebra.form", "deviations are kept");
    if (combiner != tile::Combiner::Add)
      return refuse("algebra.centre",
                    "deviations are not about what a sum gives");
    if (dependence.element != first.getInputs()[0])
      return refuse("algebra.element",
                    "deviations are of other elements than those that are "
                    "summed for the centre");
    return Licence{Law::Powers, dependence};
  case Form::Free:
  case Form::Centre:
    break;
  }
  return refuse("algebra.form", "the sum is of the centre itself");
}

} // namespace tessera
