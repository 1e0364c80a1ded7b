//===- tile_assembly.cpp - Custom textual forms of Tile ops ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsers and printers for the forms that declarative assembly cannot express:
// kernel signatures and loops with carried values here, subscripts and
// reductions in tile_assembly_values.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_assembly.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera::tile;

static void nameArguments(Region &region, OpAsmSetValueNameFn setName,
                          StringRef coordinate) {
  if (!region.empty() && region.front().getNumArguments() > 0)
    setName(region.front().getArgument(0), coordinate);
}

/// A string that may name an SSA value: the dimension's name if it is plain.
static std::string coordinateName(StringRef dim) {
  if (dim.empty() ||
      !llvm::all_of(dim, [](char c) { return llvm::isAlnum(c) || c == '_'; }) ||
      llvm::isDigit(dim.front()))
    return "i";
  return ("i_" + dim).str();
}

//===----------------------------------------------------------------------===//
// tile.kernel
//===----------------------------------------------------------------------===//

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip(region.getArguments(), getArgNames()))
    setName(argument, cast<StringAttr>(name).getValue());
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr symbol;
  if (parser.parseSymbolName(symbol, "sym_name", state.attributes))
    return failure();
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> names, defaults;
  auto parseParameter = [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    if (parser.parseArgument(argument, /*allowType=*/true))
      return failure();
    names.push_back(builder.getStringAttr(argument.ssaName.name.drop_front()));
    Attribute value = builder.getUnitAttr();
    if (succeeded(parser.parseOptionalEqual())) {
      SMLoc at = parser.getCurrentLocation();
      if (parser.parseAttribute(value, argument.type))
        return failure();
      // Infinity is written as bits, "0x7F800000"; a decimal that rounds to it
      // is a mistake.
      auto number = dyn_cast<FloatAttr>(value);
      StringRef begin(at.getPointer(), 2);
      bool isDecimal = (llvm::isDigit(begin[0]) || begin[0] == '-') &&
                       !begin.starts_with("0x");
      if (number && number.getValue().isInfinity() && isDecimal)
        return parser.emitError(at)
               << "default of '" << argument.ssaName.name
               << "' is beyond the range of " << argument.type;
    }
    defaults.push_back(value);
    arguments.push_back(argument);
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseParameter))
    return failure();
  state.addAttribute("arg_names", builder.getArrayAttr(names));
  state.addAttribute("arg_defaults", builder.getArrayAttr(defaults));
  if (succeeded(parser.parseOptionalKeyword("tier"))) {
    if (parser.parseLParen() ||
        parseEnum<Tier, TierAttr>(parser, state, "tier", symbolizeTier) ||
        parser.parseRParen())
      return failure();
  }
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  Region *body = state.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getArgDefaults()),
                        printer, [&](auto parameter) {
                          auto [argument, value] = parameter;
                          printer.printRegionArgument(argument);
                          if (isa<UnitAttr>(value))
                            return;
                          printer << " = ";
                          printer.printAttributeWithoutType(value);
                        });
  printer << ')';
  if (getTier() != Tier::Default)
    printer << " tier(" << stringifyTier(getTier()) << ')';
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {"sym_name", "arg_names", "arg_defaults", "tier"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// tile.parallel, tile.serial, tile.pipeline, tile.fold
//===----------------------------------------------------------------------===//

void ParallelOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  for (auto [argument, dim] : llvm::zip(region.getArguments(), getDims()))
    setName(argument, coordinateName(cast<StringAttr>(dim).getValue()));
}

ParseResult ParallelOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::Argument> coordinates;
  ArrayAttr dims;
  if (parser.parseArgumentList(coordinates, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("in") || parseStringList(parser, dims))
    return failure();
  for (OpAsmParser::Argument &coordinate : coordinates)
    coordinate.type = parser.getBuilder().getIndexType();
  state.addAttribute("dims", dims);
  Region *body = state.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*body, coordinates))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void ParallelOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(
      getBody().getArguments(), printer,
      [&](BlockArgument coordinate) { printer << coordinate; });
  printer << ") in ";
  printStringList(printer, getDims());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"dims"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

static ParseResult parseLoop(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument coordinate;
  StringAttr dim;
  if (parser.parseArgument(coordinate) || parser.parseKeyword("in") ||
      parseString(parser, dim))
    return failure();
  coordinate.type = parser.getBuilder().getIndexType();
  state.addAttribute("dim", dim);
  SmallVector<OpAsmParser::Argument> arguments{coordinate};
  if (succeeded(parser.parseOptionalKeyword("carry"))) {
    SmallVector<OpAsmParser::UnresolvedOperand> inits;
    auto parseCarry = [&]() -> ParseResult {
      OpAsmParser::UnresolvedOperand init;
      if (parser.parseArgument(arguments.emplace_back()) ||
          parser.parseEqual() || parser.parseOperand(init) ||
          parser.parseColonType(arguments.back().type))
        return failure();
      state.addTypes(arguments.back().type);
      return parser.resolveOperand(init, arguments.back().type, state.operands);
    };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                       parseCarry))
      return failure();
  }
  Region *body = state.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  SerialOp::ensureTerminator(*body, parser.getBuilder(), state.location);
  return success();
}

template <typename Loop> static void printLoop(OpAsmPrinter &printer, Loop op) {
  Block &block = op.getBody().front();
  printer << ' ' << block.getArgument(0) << " in ";
  printer.printAttributeWithoutType(op.getDimAttr());
  if (!op.getInits().empty()) {
    printer << " carry(";
    llvm::interleaveComma(
        llvm::zip(block.getArguments().drop_front(), op.getInits()), printer,
        [&](auto carry) {
          auto [argument, init] = carry;
          printer << argument << " = " << init << " : " << init.getType();
        });
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), {"dim"});
  printer << ' ';
  printer.printRegion(op.getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!op.getInits().empty());
}

void SerialOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  nameArguments(region, setName, coordinateName(getDim()));
}
ParseResult SerialOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseLoop(parser, state);
}
void SerialOp::print(OpAsmPrinter &printer) { printLoop(printer, *this); }

void PipelineOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameArguments(region, setName, coordinateName(getDim()));
}
ParseResult PipelineOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseLoop(parser, state);
}
void PipelineOp::print(OpAsmPrinter &printer) { printLoop(printer, *this); }

void FoldOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  if (&region == &getBody())
    nameArguments(region, setName, coordinateName(getDim()));
}

ParseResult FoldOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument coordinate;
  StringAttr dim;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  SmallVector<Type> types;
  if (parser.parseArgument(coordinate) || parser.parseKeyword("in") ||
      parseString(parser, dim) ||
      parseEnum<Order, OrderAttr>(parser, state, "order", symbolizeOrder))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword("init") || parser.parseLParen() ||
      parser.parseOperandList(inits) || parser.parseColonTypeList(types) ||
      parser.parseRParen() ||
      parser.resolveOperands(inits, types, loc, state.operands))
    return failure();
  coordinate.type = parser.getBuilder().getIndexType();
  state.addAttribute("dim", dim);
  state.addTypes(types);
  Region *body = state.addRegion();
  Region *combine = state.addRegion();
  return failure(parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
                 parser.parseRegion(*body, {coordinate}) ||
                 parser.parseKeyword("combine") ||
                 parser.parseRegion(*combine));
}

void FoldOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getBody().front().getArgument(0) << " in ";
  printer.printAttributeWithoutType(getDimAttr());
  printer << ' ' << stringifyOrder(getOrder()) << " init(" << getInits()
          << " : " << getInits().getTypes() << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"dim", "order"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer << " combine ";
  printer.printRegion(getCombine());
}
