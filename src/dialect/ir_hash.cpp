//===- ir_hash.cpp - The content of an operation --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types, attributes and names are unique in a context, so that each is printed
// once. The order of their first uses numbers them, never their addresses.
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
    const OperationName name = op->getName();
    add(content, name.getAsOpaquePointer(),
        [&](llvm::raw_ostream &stream) { stream << name.getStringRef(); });
    content.integer(op->getNumOperands());
    for (Value operand : op->getOperands())
      content.integer(numbers.lookup(operand));
    content.integer(op->getNumResults());
    for (Value result : op->getResults())
      define(result);
    const DictionaryAttr attributes = op->getAttrDictionary();
    content.integer(int64_t(attributes.size()));
    for (NamedAttribute attribute : attributes) {
      add(content, Attribute(attribute.getName()));
      add(content, attribute.getValue());
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
    add(content, value.getType());
  }

  void add(Location where) {
    if (auto line = dyn_cast<FileLineColLoc>(where)) {
      locations.integer(line.getLine()).integer(line.getColumn());
      add(locations, Attribute(line.getFilename()));
    } else {
      locations.integer(-1);
      add(locations, Attribute(LocationAttr(where)));
    }
  }

  template <typename Unique> void add(support::Hasher &hasher, Unique item) {
    add(hasher, item.getAsOpaquePointer(),
        [&](llvm::raw_ostream &stream) { item.print(stream); });
  }

  /// The text of what is unique where it is first met, and its number there
  /// wherever it is met again.
  template <typename Print>
  void add(support::Hasher &hasher, const void *unique, Print print) {
    Seen &seen = &hasher == &content ? inContent : inLocations;
    const int64_t next = int64_t(seen.size());
    const auto [found, isNew] = seen.try_emplace(unique, next);
    hasher.integer(found->second);
    if (!isNew)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    print(stream);
    hasher.text(text);
  }

  using Seen = llvm::DenseMap<const void *, int64_t>;

  support::Hasher content, locations;
  llvm::DenseMap<Value, int64_t> numbers;
  Seen inContent, inLocations;
};

} // namespace

IrHash hashIr(Operation *op) { return IrHasher().run(op); }

} // namespace tessera::tile
