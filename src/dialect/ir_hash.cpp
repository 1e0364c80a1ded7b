//===- ir_hash.cpp - The content of an operation --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types and attributes are unique in a context, so that each is printed once.
//
//===----------------------------------------------------------------------===//

#include "dialect/ir_hash.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera::tile {

namespace {

class IrHasher {
public:
  IrHash run(Operation *op) {
    add(op);
    return {content.finish(), locations.finish()};
  }

private:
  void add(Operation *op) {
    content.text(view(op->getName().getStringRef()));
    content.integer(op->getNumOperands());
    for (Value operand : op->getOperands())
      content.integer(numbers.lookup(operand));
    content.integer(op->getNumResults());
    for (Value result : op->getResults())
      define(result);
    const DictionaryAttr attributes = op->getAttrDictionary();
    content.integer(int64_t(attributes.size()));
    for (NamedAttribute attribute : attributes) {
      content.text(view(attribute.getName().getValue()));
      content.text(textOf(attribute.getValue()));
    }
    add(op->getLoc());
    content.integer(op->getNumRegions());
    for (Region &region : op->getRegions()) {
      content.integer(int64_t(region.getBlocks().size()));
      for (Block &block : region) {
        content.integer(block.getNumArguments());
        for (BlockArgument argument : block.getArguments()) {
          define(argument);
          add(argument.getLoc());
        }
        content.integer(int64_t(block.getOperations().size()));
        for (Operation &inner : block)
          add(&inner);
      }
    }
  }

  /// Numbers from 1 on, in the order of their definitions.
  void define(Value value) {
    const int64_t number = int64_t(numbers.size()) + 1;
    numbers[value] = number;
    content.text(textOf(value.getType()));
  }

  void add(Location where) {
    if (auto line = dyn_cast<FileLineColLoc>(where))
      locations.integer(1)
          .text(view(line.getFilename().getValue()))
          .integer(line.getLine())
          .integer(line.getColumn());
    else
      locations.integer(0).text(textOf(LocationAttr(where)));
  }

  template <typename Unique> const std::string &textOf(Unique item) {
    std::string &text = texts[item.getAsOpaquePointer()];
    if (text.empty()) {
      llvm::raw_string_ostream stream(text);
      item.print(stream);
    }
    return text;
  }

  static std::string_view view(llvm::StringRef text) {
    return {text.data(), text.size()};
  }

  support::Hasher content, locations;
  llvm::DenseMap<Value, int64_t> numbers;
  /// Never empty: every type and attribute has a form.
  llvm::DenseMap<const void *, std::string> texts;
};

} // namespace

IrHash hashIr(Operation *op) { return IrHasher().run(op); }

} // namespace tessera::tile
