//===- fuzz/random_program.cpp - Printing and trimming of programs -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "random_program.h"

#include <algorithm>
#include <cctype>

namespace tessera::fuzz {

std::string tileType(const std::string &element, const Dims &dims) {
  if (dims.empty())
    return element;
  std::string text = "tensor<";
  for (size_t i = 0; i < dims.size(); ++i)
    text += "?x";
  text += element + ", [";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", \"" : "\"") + dims[i] + "\"";
  return text + "]>";
}

std::string Value::type() const { return tileType(element, dims); }

std::string storageSpelling(DType type) {
  switch (type) {
  case DType::Bool:
    return "i1";
  case DType::U8:
    return "ui8";
  case DType::U16:
    return "ui16";
  case DType::U32:
    return "ui32";
  case DType::U64:
    return "ui64";
  case DType::F8E4M3:
    return "f8E4M3FN";
  case DType::F8E5M2:
    return "f8E5M2";
  default:
    return std::string(name(type));
  }
}

std::string computeSpelling(DType type) {
  if (isFloat(type))
    return type == DType::F64 ? "f64" : "f32";
  if (type == DType::Bool)
    return "i1";
  return "i" + std::to_string(8 * sizeInBytes(type));
}

std::string viewType(const ViewSpec &view) {
  return "!tile.view<" + storageSpelling(view.dtype) + ", " +
         std::to_string(view.axes.size()) +
         (view.writable ? ", write>" : ", read>");
}

const DimSpec *RandomProgram::findDim(const std::string &name) const {
  for (const DimSpec &dim : dims)
    if (dim.name == name)
      return &dim;
  return nullptr;
}

int64_t RandomProgram::extent(const std::string &name) const {
  const DimSpec *dim = findDim(name);
  if (dim->factors.empty())
    return dim->extent;
  int64_t product = 1;
  for (const std::string &factor : dim->factors)
    product *= extent(factor);
  return product;
}

std::vector<int64_t> RandomProgram::extents(const ViewSpec &view) const {
  std::vector<int64_t> result;
  for (const AxisSpec &axis : view.axes)
    result.push_back(axis.dim.empty() ? axis.extent : extent(axis.dim));
  return result;
}

static bool isNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

void collectReferences(const std::string &text, std::set<std::string> &names) {
  for (size_t at = text.find('%'); at != text.npos; at = text.find('%', at)) {
    size_t end = ++at;
    while (end < text.size() && isNameCharacter(text[end]))
      ++end;
    names.insert(text.substr(at, end - at));
    at = end;
  }
}

static void renameIn(std::string &text, const std::string &from,
                     const std::string &to) {
  std::string needle = "%" + from;
  for (size_t at = 0; (at = text.find(needle, at)) != text.npos;) {
    size_t end = at + needle.size();
    if (end < text.size() && isNameCharacter(text[end])) {
      at = end;
      continue;
    }
    text.replace(at, needle.size(), "%" + to);
    at += to.size() + 1;
  }
}

void renameReferences(Block &block, const std::string &from,
                      const std::string &to) {
  for (Statement &statement : block) {
    renameIn(statement.head, from, to);
    for (Block &region : statement.regions)
      renameReferences(region, from, to);
  }
}

std::string printBlock(const Block &block, unsigned indent) {
  std::string pad(2 * indent, ' '), text;
  for (const Statement &statement : block) {
    text += pad;
    for (size_t i = 0; i < statement.results.size(); ++i)
      text += (i ? ", " : "") + statement.results[i].ref();
    if (!statement.results.empty())
      text += " = ";
    text += statement.head;
    for (size_t i = 0; i < statement.regions.size(); ++i) {
      if (i > 0)
        text += " " + statement.separators[i - 1];
      text += " {\n";
      if (i < statement.headers.size() && !statement.headers[i].empty())
        text += pad + statement.headers[i] + "\n";
      text += printBlock(statement.regions[i], indent + 1) + pad + "}";
    }
    text += "\n";
  }
  return text;
}

std::vector<const ViewSpec *> RandomProgram::usedViews() const {
  std::set<std::string> names;
  collectReferences(printBlock(body, 0), names);
  std::vector<const ViewSpec *> used;
  for (const ViewSpec &view : views)
    if (names.count(view.name))
      used.push_back(&view);
  return used;
}

std::vector<const ScalarSpec *> RandomProgram::usedScalars() const {
  std::set<std::string> names;
  collectReferences(printBlock(body, 0), names);
  std::vector<const ScalarSpec *> used;
  for (const ScalarSpec &scalar : scalars)
    if (names.count(scalar.name))
      used.push_back(&scalar);
  return used;
}

std::string RandomProgram::text() const {
  std::string statements = printBlock(body, 1);
  std::string text = "module attributes {tile.version = 1 : i64} {\n"
                     "tile.kernel @k(";
  bool first = true;
  auto parameter = [&](const std::string &name, const std::string &type) {
    text += (first ? "%" : ",\n    %") + name + ": " + type;
    first = false;
  };
  std::vector<const ViewSpec *> used = usedViews();
  for (const ViewSpec *view : used)
    parameter(view->name, viewType(*view));
  for (const ScalarSpec *scalar : usedScalars())
    parameter(scalar->name, computeSpelling(scalar->dtype));
  text += std::string(")") + (strict ? " tier(strict)" : "") + " {\n";

  // A dimension is needed if it is named, or is a factor of a needed one.
  std::set<std::string> needed;
  for (size_t i = dims.size(); i-- > 0;) {
    const DimSpec &dim = dims[i];
    if (statements.find("\"" + dim.name + "\"") == statements.npos &&
        !needed.count(dim.name))
      continue;
    needed.insert(dim.name);
    needed.insert(dim.factors.begin(), dim.factors.end());
  }
  for (const DimSpec &dim : dims) {
    if (dim.isData || !needed.count(dim.name))
      continue;
    std::string value = "%n_" + dim.name;
    if (!dim.factors.empty()) {
      std::string product;
      for (const std::string &factor : dim.factors) {
        std::string next = value + "_" + factor;
        text += "  " + next + " = tile.dim_size \"" + factor + "\"\n";
        if (!product.empty()) {
          text += "  " + next + "p = arith.muli " + product + ", " + next +
                  " : index\n";
          next += "p";
        }
        product = next;
      }
      text += "  tile.dim \"" + dim.name + "\" = " + product + "\n";
      continue;
    }
    std::string source;
    for (const ViewSpec *view : used)
      for (size_t axis = 0; axis < view->axes.size() && source.empty(); ++axis)
        if (view->axes[axis].dim == dim.name && (view->seed & 1))
          source = "tile.extent %" + view->name + ", " + std::to_string(axis) +
                   " : " + viewType(*view);
    if (source.empty())
      source = "arith.constant " + std::to_string(dim.extent) + " : index";
    text += "  " + value + " = " + source + "\n  tile.dim \"" + dim.name +
            "\" = " + value + "\n";
  }
  return text + statements + "}\n}\n";
}

static bool anyUsed(const Statement &statement,
                    const std::set<std::string> &used) {
  return std::any_of(
      statement.results.begin(), statement.results.end(),
      [&](const Value &value) { return used.count(value.name) > 0; });
}

static bool hasStore(const Block &block) {
  for (const Statement &statement : block) {
    if (statement.head.rfind("tile.store", 0) == 0 ||
        statement.head.rfind("tile.scatter", 0) == 0)
      return true;
    for (const Block &region : statement.regions)
      if (hasStore(region))
        return true;
  }
  return false;
}

/// Marks what a block needs from its end to its beginning.
static bool trim(Block &block, std::set<std::string> &used) {
  bool changed = false;
  for (size_t i = block.size(); i-- > 0;) {
    Statement &statement = block[i];
    bool hasRegions = !statement.regions.empty();
    bool keep = statement.effect && !hasRegions;
    for (const Block &region : statement.regions)
      keep |= hasStore(region);
    if (!keep && !anyUsed(statement, used)) {
      block.erase(block.begin() + static_cast<int64_t>(i));
      changed = true;
      continue;
    }
    for (size_t r = statement.regions.size(); r-- > 0;)
      changed |= trim(statement.regions[r], used);
    collectReferences(statement.head, used);
  }
  return changed;
}

void RandomProgram::removeDead() {
  // A declaration of a dimension from data goes when nothing names it.
  for (bool changed = true; changed;) {
    std::set<std::string> used;
    changed = trim(body, used);
    std::string statements = printBlock(body, 0);
    for (const DimSpec &dim : dims) {
      std::string name = "\"" + dim.name + "\"";
      size_t at = statements.find(name);
      if (!dim.isData || at == statements.npos ||
          statements.find(name, at + 1) != statements.npos)
        continue;
      auto drop = [&](auto &&self, Block &block) -> void {
        for (size_t i = block.size(); i-- > 0;) {
          if (block[i].head.rfind("tile.dim " + name, 0) == 0) {
            block.erase(block.begin() + static_cast<int64_t>(i));
            changed = true;
            continue;
          }
          for (Block &region : block[i].regions)
            self(self, region);
        }
      };
      drop(drop, body);
    }
  }
}

/// Whether the bits of a block's results are fixed.
static bool isExactBlock(const Block &block) {
  static const char *const inexact[] = {"math.cos",  "math.erf",    "math.exp",
                                        "math.log",  "math.rsqrt",  "math.sin",
                                        "math.tanh", "tile.sigmoid"};
  for (const Statement &statement : block) {
    const std::string &head = statement.head;
    for (const char *op : inexact)
      if (head.rfind(op, 0) == 0)
        return false;
    bool isFloating =
        head.find("f32") != head.npos || head.find("f64") != head.npos;
    bool isFree = head.find(" unordered ") != head.npos ||
                  (head.rfind("tile.contract", 0) == 0 &&
                   head.find("<order ") == head.npos);
    if (isFree && isFloating)
      return false;
    for (const Block &region : statement.regions)
      if (!isExactBlock(region))
        return false;
  }
  return true;
}

bool RandomProgram::isExact() const {
  if (!isExactBlock(body))
    return false;
  if (strict)
    return true;
  // The default tier may fuse a product into a sum, also that of a scatter.
  std::string statements = printBlock(body, 0);
  auto has = [&](const char *op) {
    return statements.find(op) != statements.npos;
  };
  return !has("arith.mulf") ||
         !(has("arith.addf") || has("arith.subf") || has("tile.scatter add"));
}

std::string RandomProgram::describeArguments() const {
  std::string text;
  for (const ViewSpec *view : usedViews()) {
    text += "// %" + view->name + ": [";
    for (int64_t extent : extents(*view))
      text += (text.back() == '[' ? "" : ", ") + std::to_string(extent);
    static const char *const names[] = {"tame", "small integers", "special",
                                        "wild"};
    text += "], contents " + std::string(names[int(view->contents)]) +
            ", seed " + std::to_string(view->seed) +
            (view->plainLayout ? ", dense" : "") +
            (view->sameAs.empty() ? "" : ", same memory as %" + view->sameAs) +
            "\n";
  }
  for (const ScalarSpec *scalar : usedScalars())
    text +=
        "// %" + scalar->name + " = " + std::to_string(scalar->value) + "\n";
  return text;
}

} // namespace tessera::fuzz
