//===- compile_control.cpp - Translation of regions and dimensions --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/compiler.h"

#include "support/launch_errors.h"

using namespace mlir;

namespace tessera::interp {

bool Compiler::visit(tile::KernelOp) { return false; }

bool Compiler::visit(tile::StageOp) { return true; }

bool Compiler::visit(tile::YieldOp op) {
  current->yields = slotsOf(op.getValues());
  return true;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

bool Compiler::visit(tile::DimOp op) {
  unsigned dim = dimOf(op.getNameAttr());
  Slot extent = slotOf(op.getExtent());
  llvm::SmallVector<Binding> bound;
  for (const Binding &binding : bindings)
    if (binding.dim == dim)
      bound.push_back(binding);
  emit([&m = machine, dim, extent, bound, name = op.getName().str()] {
    int64_t value = m.controlValue(extent);
    if (value < 0)
      return m.context.fail(launcherror::negativeDimension(name, value));
    m.dimExtents[dim] = value;
    for (const Binding &binding : bound) {
      const View &view = m.memory.view(binding.view);
      int64_t found = view.tensor.extents[binding.axis];
      if (found == value)
        continue;
      m.context.where = &binding.where;
      return m.context.fail(launcherror::boundExtent(view.name, binding.axis,
                                                     found, name, value));
    }
    return true;
  });
  return true;
}

bool Compiler::visit(tile::DimSizeOp op) {
  Slot result = slotOf(op.getResult());
  emit([&m = machine, dim = dimOf(op.getDimAttr()), result] {
    return m.setIndex(result, m.dimExtents[dim]);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Runs one instance of a region whose instances may overlap in time.
static bool runInstance(Machine &m, uint32_t region, int64_t instance,
                        const Block &body) {
  if (!m.races)
    return m.run(body);
  m.races->enter(region, instance);
  bool ok = m.context.allocate(RaceDetector::bytesPerInstance) && m.run(body);
  m.races->leave();
  return ok;
}

bool Compiler::visit(tile::ParallelOp op) {
  Dims dims;
  for (Attribute name : op.getDims())
    dims.push_back(dimOf(cast<StringAttr>(name)));
  auto coordinates = slotsOf(op.getBody().getArguments());
  auto names = std::make_shared<std::vector<std::string>>();
  for (Attribute name : op.getDims())
    names->push_back(cast<StringAttr>(name).str());
  Block &body = newBlock();
  if (!compileRegion(op.getBody(), body))
    return false;
  emit([&m = machine, &body, dims, coordinates, names] {
    Extents extents = m.extentsOf(dims);
    if (llvm::is_contained(extents, 0))
      return true;
    uint32_t region = m.races ? m.races->beginRegion(names, extents) : 0;
    Extents position(extents.size(), 0);
    for (int64_t instance = 0;; ++instance) {
      for (size_t i = 0; i < position.size(); ++i)
        if (!m.setIndex(coordinates[i], position[i]))
          return false;
      if (!m.context.charge(1) || !runInstance(m, region, instance, body))
        return false;
      size_t axis = extents.size();
      while (axis > 0 && ++position[axis - 1] == extents[axis - 1])
        position[--axis] = 0;
      if (axis == 0)
        return true;
    }
  });
  return true;
}

template <typename Loop> bool Compiler::visitLoop(Loop op) {
  unsigned dim = dimOf(op.getDimAttr());
  auto inits = slotsOf(op.getInits());
  auto arguments = slotsOf(op.getBody().getArguments());
  auto results = slotsOf(op.getResults());
  Block &body = newBlock();
  if (!compileRegion(op.getBody(), body))
    return false;
  emit([&m = machine, &body, dim, inits, arguments, results] {
    llvm::SmallVector<Tile, 4> carried;
    for (Slot init : inits)
      carried.push_back(m.slots[init]);
    for (int64_t i = 0, end = m.dimExtents[dim]; i < end; ++i) {
      if (!m.context.charge(1) || !m.setIndex(arguments[0], i))
        return false;
      for (size_t k = 0; k < carried.size(); ++k)
        m.slots[arguments[k + 1]] = std::move(carried[k]);
      if (!m.run(body))
        return false;
      carried = m.yielded(body);
    }
    for (size_t k = 0; k < results.size(); ++k)
      m.slots[results[k]] = carried[k];
    return true;
  });
  return true;
}

bool Compiler::visit(tile::SerialOp op) { return visitLoop(op); }
bool Compiler::visit(tile::PipelineOp op) { return visitLoop(op); }

bool Compiler::visit(tile::IfOp op) {
  Slot condition = slotOf(op.getCondition());
  auto results = slotsOf(op.getResults());
  Block &thenBlock = newBlock();
  Block *elseBlock = nullptr;
  if (!compileRegion(op.getThenRegion(), thenBlock))
    return false;
  if (!op.getElseRegion().empty()) {
    elseBlock = &newBlock();
    if (!compileRegion(op.getElseRegion(), *elseBlock))
      return false;
  }
  emit([&m = machine, &thenBlock, elseBlock, condition, results] {
    const Block *taken =
        m.controlValue(condition) != 0 ? &thenBlock : elseBlock;
    if (!taken)
      return true;
    if (!m.run(*taken))
      return false;
    auto values = m.yielded(*taken);
    for (size_t k = 0; k < results.size(); ++k)
      m.slots[results[k]] = values[k];
    return true;
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Fold
//===----------------------------------------------------------------------===//

namespace {

using Tiles = llvm::SmallVector<Tile, 4>;

struct Fold {
  Grouping grouping = Grouping::Unordered;
  unsigned dim = 0;
  RaceDetector::Names names;
  llvm::SmallVector<Slot, 4> inits, combineArguments, results;
  Slot coordinate = 0;
  const Block *body = nullptr;
  const Block *combine = nullptr;
  /// The named combiners of the components, where each has one.
  std::vector<Combination> named;
};

class FoldRun {
public:
  FoldRun(Machine &machine, const Fold &fold) : m(machine), fold(fold) {
    // Contributions without a fixed order may be computed at once.
    concurrent = m.races && (fold.grouping == Grouping::Unordered ||
                             fold.grouping == Grouping::Tree);
    if (concurrent)
      region = m.races->beginRegion(fold.names, m.dimExtents[fold.dim]);
  }

  bool run() {
    Tiles value;
    for (Slot init : fold.inits)
      value.push_back(m.slots[init]);
    bool unordered = fold.grouping == Grouping::Unordered;
    bool ok = unordered && m.context.oracle && m.dimExtents[fold.dim] > 0
                  ? runAnyOrder(value)
                  : runInOrder(value);
    for (size_t k = 0; ok && k < value.size(); ++k)
      m.slots[fold.results[k]] = value[k];
    return ok;
  }

private:
  bool contribute(int64_t i, Tiles &value) {
    if (!m.context.charge(1) || !m.setIndex(fold.coordinate, i))
      return false;
    if (concurrent ? !runInstance(m, region, i, *fold.body)
                   : !m.run(*fold.body))
      return false;
    value = m.yielded(*fold.body);
    return true;
  }

  bool combine(const Tiles &left, const Tiles &right, Tiles &result) {
    size_t n = left.size();
    for (size_t k = 0; k < n; ++k) {
      m.slots[fold.combineArguments[k]] = left[k];
      m.slots[fold.combineArguments[n + k]] = right[k];
    }
    if (!m.run(*fold.combine))
      return false;
    result = m.yielded(*fold.combine);
    return true;
  }

  bool runInOrder(Tiles &value) {
    int64_t n = m.dimExtents[fold.dim];
    auto get = [&](int64_t i, Tiles &out) { return contribute(i, out); };
    auto join = [&](const Tiles &a, const Tiles &b, Tiles &out) {
      return combine(a, b, out);
    };
    if (fold.grouping == Grouping::Tree) {
      Tiles total, result;
      if (n == 0)
        return true;
      if (!reduceInOrder(Grouping::Tree, n, get, join, total) ||
          !combine(value, total, result))
        return false;
      value = std::move(result);
      return true;
    }
    bool right = fold.grouping == Grouping::Right;
    for (int64_t k = 0; k < n; ++k) {
      Tiles contribution, result;
      if (!contribute(right ? n - 1 - k : k, contribution) ||
          !(right ? combine(contribution, value, result)
                  : combine(value, contribution, result)))
        return false;
      value = std::move(result);
    }
    return true;
  }

  /// Oracle mode: a bound that holds in any order.
  bool runAnyOrder(Tiles &value) {
    int64_t n = m.dimExtents[fold.dim];
    std::vector<Tiles> terms(1, value);
    for (int64_t i = 0; i < n; ++i) {
      Tiles term;
      if (!contribute(i, term))
        return false;
      terms.push_back(std::move(term));
    }
    if (!fold.named.empty())
      return reduceComponents(terms, value);
    auto get = [&](int64_t i, Tiles &out) {
      out = terms[i];
      return true;
    };
    auto join = [&](const Tiles &a, const Tiles &b, Tiles &out) {
      return combine(a, b, out);
    };
    int64_t count = n + 1;
    if (!reduceInOrder(Grouping::Left, count, get, join, value))
      return false;
    for (Grouping other : {Grouping::Tree, Grouping::Right}) {
      Tiles variant;
      if (!reduceInOrder(other, count, get, join, variant) ||
          !widen(value, variant))
        return false;
    }
    return true;
  }

  bool reduceComponents(const std::vector<Tiles> &terms, Tiles &value) {
    for (size_t k = 0; k < value.size(); ++k) {
      const Tile &init = terms[0][k];
      Extents extents{static_cast<int64_t>(terms.size())};
      extents.append(init.extents().begin(), init.extents().end());
      Tile stacked, total;
      if (!stacked.reset(m.context, init.kind(), extents))
        return false;
      int64_t to = 0;
      for (const Tiles &term : terms)
        for (int64_t i = 0; i < term[k].count(); ++i)
          stacked.copy(to++, term[k], i);
      llvm::SmallVector<bool, 4> reduced(extents.size(), false);
      reduced[0] = true;
      if (!reduceNamed(m.context, fold.named[k], Grouping::Unordered, stacked,
                       reduced, total))
        return false;
      value[k] = total;
    }
    return true;
  }

  bool widen(Tiles &value, const Tiles &variant) {
    for (size_t k = 0; k < value.size(); ++k) {
      if (!isFloat(value[k].kind()))
        continue;
      Tile wide;
      if (!wide.reset(m.context, value[k].kind(), value[k].extents()))
        return false;
      for (int64_t i = 0; i < wide.count(); ++i)
        wide.bounds()[i] =
            bounded::either(value[k].bounds()[i], variant[k].bounds()[i]);
      value[k] = wide;
    }
    return true;
  }

  Machine &m;
  const Fold &fold;
  bool concurrent = false;
  uint32_t region = 0;
};

} // namespace

bool Compiler::visit(tile::FoldOp op) {
  Fold fold;
  fold.grouping = static_cast<Grouping>(op.getOrder());
  fold.dim = dimOf(op.getDimAttr());
  fold.names = std::make_shared<std::vector<std::string>>(
      1, op.getDimAttr().getValue().str());
  fold.inits = slotsOf(op.getInits());
  fold.combineArguments = slotsOf(op.getCombine().front().getArguments());
  fold.results = slotsOf(op.getResults());
  fold.coordinate = slotOf(op.getBody().front().getArgument(0));
  fold.named = componentCombinations(op.getCombine());
  Block &body = newBlock(), &combine = newBlock();
  if (!compileRegion(op.getBody(), body) ||
      !compileRegion(op.getCombine(), combine))
    return false;
  fold.body = &body;
  fold.combine = &combine;
  emit([&m = machine, fold = std::move(fold)] {
    return FoldRun(m, fold).run();
  });
  return true;
}

} // namespace tessera::interp
