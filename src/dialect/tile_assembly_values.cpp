//===- tile_assembly_values.cpp - Textual forms of accesses and reductions ===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_assembly.h"

using namespace mlir;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Subscripts: tile.load, tile.store, tile.scatter
//===----------------------------------------------------------------------===//

namespace {
struct Subscripts {
  SmallVector<Attribute> dims;
  SmallVector<int64_t> steps;
  SmallVector<bool> hasOffset;
  SmallVector<OpAsmParser::UnresolvedOperand> offsets;
};
} // namespace

/// subscript ::= (string (`*` integer)? (`+` operand)?) | operand
static ParseResult parseSubscripts(OpAsmParser &parser, Subscripts &result) {
  Builder &builder = parser.getBuilder();
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
        std::string dim;
        int64_t step = 0;
        bool hasOffset = true;
        if (succeeded(parser.parseOptionalString(&dim))) {
          step = 1;
          if (succeeded(parser.parseOptionalStar()) &&
              parser.parseInteger(step))
            return failure();
          hasOffset = succeeded(parser.parseOptionalPlus());
        }
        if (hasOffset && parser.parseOperand(result.offsets.emplace_back()))
          return failure();
        result.dims.push_back(builder.getStringAttr(dim));
        result.steps.push_back(step);
        result.hasOffset.push_back(hasOffset);
        return success();
      });
}

template <typename Access>
static void printSubscripts(OpAsmPrinter &printer, Access op) {
  printer << '[';
  for (unsigned axis = 0, end = op.getAxisDims().size(); axis < end; ++axis) {
    if (axis > 0)
      printer << ", ";
    Value offset = op.getAxisOffset(axis);
    if (!op.getAxisDim(axis).empty()) {
      printer.printAttributeWithoutType(op.getAxisDims()[axis]);
      if (op.getAxisStep(axis) != 1)
        printer << " * " << op.getAxisStep(axis);
      if (offset)
        printer << " + ";
    }
    if (offset)
      printer << offset;
  }
  printer << ']';
}

static void addSubscripts(OpAsmParser &parser, OperationState &state,
                          const Subscripts &subscripts) {
  Builder &builder = parser.getBuilder();
  state.addAttribute("axis_dims", builder.getArrayAttr(subscripts.dims));
  state.addAttribute("axis_steps",
                     builder.getDenseI64ArrayAttr(subscripts.steps));
  state.addAttribute("axis_has_offset",
                     builder.getDenseBoolArrayAttr(subscripts.hasOffset));
}

/// (`keyword` `(` operand `:` type `)`)?
static ParseResult parseOptionalTyped(OpAsmParser &parser, StringRef keyword,
                                      SmallVectorImpl<Value> &values) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  OpAsmParser::UnresolvedOperand operand;
  Type type;
  return failure(parser.parseLParen() || parser.parseOperand(operand) ||
                 parser.parseColonType(type) || parser.parseRParen() ||
                 parser.resolveOperand(operand, type, values));
}

static void printOptionalTyped(OpAsmPrinter &printer, StringRef keyword,
                               Value value) {
  if (value)
    printer << ' ' << keyword << '(' << value << " : " << value.getType()
            << ')';
}

/// (`at` `(` types `)`)?  The types of offsets that are not `index`.
static ParseResult parseOffsets(OpAsmParser &parser, Subscripts &subscripts,
                                SmallVectorImpl<Value> &offsets) {
  SmallVector<Type> types(subscripts.offsets.size(),
                          parser.getBuilder().getIndexType());
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("at"))) {
    types.clear();
    if (parser.parseLParen() || parser.parseTypeList(types) ||
        parser.parseRParen())
      return failure();
  }
  return parser.resolveOperands(subscripts.offsets, types, loc, offsets);
}

static void printOffsets(OpAsmPrinter &printer, ValueRange offsets) {
  if (llvm::all_of(offsets.getTypes(),
                   [](Type type) { return type.isIndex(); }))
    return;
  printer << " at(" << offsets.getTypes() << ')';
}

static ParseResult parseBounds(OpAsmParser &parser, OperationState &state) {
  if (succeeded(parser.parseOptionalKeyword("promised")))
    state.addAttribute("bounds",
                       BoundsAttr::get(parser.getContext(), Bounds::Promised));
  return success();
}

static ArrayRef<StringRef> accessAttributes() {
  static constexpr StringRef names[] = {"axis_dims",           "axis_steps",
                                        "axis_has_offset",     "bounds",
                                        "operandSegmentSizes", "combiner"};
  return names;
}

static void setSegments(OpAsmParser &parser, OperationState &state,
                        ArrayRef<int32_t> sizes) {
  state.addAttribute("operandSegmentSizes",
                     parser.getBuilder().getDenseI32ArrayAttr(sizes));
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand view;
  Subscripts subscripts;
  SmallVector<Value> offsets, fill, mask;
  Type viewType, resultType;
  if (parser.parseOperand(view) || parseSubscripts(parser, subscripts) ||
      parseOffsets(parser, subscripts, offsets) || parseBounds(parser, state) ||
      parseOptionalTyped(parser, "fill", fill) ||
      parseOptionalTyped(parser, "mask", mask) ||
      parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(viewType) || parser.parseArrow() ||
      parser.parseType(resultType) ||
      parser.resolveOperand(view, viewType, state.operands))
    return failure();
  addSubscripts(parser, state, subscripts);
  setSegments(
      parser, state,
      {1, int32_t(offsets.size()), int32_t(fill.size()), int32_t(mask.size())});
  state.addOperands(offsets);
  state.addOperands(fill);
  state.addOperands(mask);
  state.addTypes(resultType);
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getView();
  printSubscripts(printer, *this);
  printOffsets(printer, getOffsets());
  if (getBounds() == Bounds::Promised)
    printer << " promised";
  printOptionalTyped(printer, "fill", getFill());
  printOptionalTyped(printer, "mask", getMask());
  printer.printOptionalAttrDict((*this)->getAttrs(), accessAttributes());
  printer << " : " << getView().getType() << " -> " << getResult().getType();
}

static ParseResult parseWrite(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand value, view;
  Subscripts subscripts;
  SmallVector<Value> offsets, mask;
  Type valueType, viewType;
  if (parser.parseOperand(value) || parser.parseComma() ||
      parser.parseOperand(view) || parseSubscripts(parser, subscripts) ||
      parseOffsets(parser, subscripts, offsets) || parseBounds(parser, state) ||
      parseOptionalTyped(parser, "mask", mask) ||
      parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(valueType) || parser.parseComma() ||
      parser.parseType(viewType) ||
      parser.resolveOperand(value, valueType, state.operands) ||
      parser.resolveOperand(view, viewType, state.operands))
    return failure();
  addSubscripts(parser, state, subscripts);
  setSegments(parser, state,
              {1, 1, int32_t(offsets.size()), int32_t(mask.size())});
  state.addOperands(offsets);
  state.addOperands(mask);
  return success();
}

template <typename Write>
static void printWrite(OpAsmPrinter &printer, Write op) {
  printer << ' ' << op.getValue() << ", " << op.getView();
  printSubscripts(printer, op);
  printOffsets(printer, op.getOffsets());
  if (op.getBounds() == Bounds::Promised)
    printer << " promised";
  printOptionalTyped(printer, "mask", op.getMask());
  printer.printOptionalAttrDict(op->getAttrs(), accessAttributes());
  printer << " : " << op.getValue().getType() << ", " << op.getView().getType();
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseWrite(parser, state);
}
void StoreOp::print(OpAsmPrinter &printer) { printWrite(printer, *this); }

ParseResult ScatterOp::parse(OpAsmParser &parser, OperationState &state) {
  return failure(parseEnum<Combiner, CombinerAttr>(parser, state, "combiner",
                                                   symbolizeCombiner) ||
                 parseWrite(parser, state));
}
void ScatterOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyCombiner(getCombiner());
  printWrite(printer, *this);
}

//===----------------------------------------------------------------------===//
// tile.reduce and tile.scan
//===----------------------------------------------------------------------===//

/// combiner order inputs (`identity` `(` values `:` types `)`)?
static ParseResult
parseCombination(OpAsmParser &parser, OperationState &state,
                 SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inputs,
                 SmallVectorImpl<Value> &identities) {
  if (parseEnum<Combiner, CombinerAttr>(parser, state, "combiner",
                                        symbolizeCombiner) ||
      parseEnum<Order, OrderAttr>(parser, state, "order", symbolizeOrder) ||
      parser.parseOperandList(inputs))
    return failure();
  if (failed(parser.parseOptionalKeyword("identity")))
    return success();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  return failure(parser.parseLParen() || parser.parseOperandList(operands) ||
                 parser.parseColonTypeList(types) || parser.parseRParen() ||
                 parser.resolveOperands(operands, types, loc, identities));
}

static ParseResult
finishCombination(OpAsmParser &parser, OperationState &state,
                  ArrayRef<OpAsmParser::UnresolvedOperand> inputs,
                  ArrayRef<Value> identities) {
  SmallVector<Type> inputTypes, resultTypes;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon() ||
      parser.parseTypeList(inputTypes) || parser.parseArrow() ||
      parser.parseTypeList(resultTypes) ||
      parser.resolveOperands(inputs, inputTypes, loc, state.operands))
    return failure();
  state.addOperands(identities);
  state.addTypes(resultTypes);
  setSegments(parser, state,
              {int32_t(inputs.size()), int32_t(identities.size())});
  Region *region = state.addRegion();
  if (succeeded(parser.parseOptionalKeyword("combine")))
    return parser.parseRegion(*region);
  return success();
}

template <typename Op>
static void printCombination(OpAsmPrinter &printer, Op op) {
  printer << ' ' << stringifyCombiner(op.getCombiner()) << ' '
          << stringifyOrder(op.getOrder()) << ' ' << op.getInputs();
  if (!op.getIdentities().empty())
    printer << " identity(" << op.getIdentities() << " : "
            << op.getIdentities().getTypes() << ')';
}

template <typename Op>
static void printCombinationEnd(OpAsmPrinter &printer, Op op,
                                ArrayRef<StringRef> elided) {
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " : " << op.getInputs().getTypes() << " -> "
          << op.getResults().getTypes();
  if (!op.getRegion().empty()) {
    printer << " combine ";
    printer.printRegion(op.getRegion());
  }
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Value> identities;
  ArrayAttr over;
  if (parseCombination(parser, state, inputs, identities) ||
      parser.parseKeyword("over") || parseStringList(parser, over))
    return failure();
  state.addAttribute("over", over);
  return finishCombination(parser, state, inputs, identities);
}

void ReduceOp::print(OpAsmPrinter &printer) {
  printCombination(printer, *this);
  printer << " over ";
  printStringList(printer, getOver());
  printCombinationEnd(printer, *this,
                      {"combiner", "order", "over", "operandSegmentSizes"});
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SmallVector<Value> identities;
  StringAttr along;
  if (parseCombination(parser, state, inputs, identities) ||
      parser.parseKeyword("along") || parseString(parser, along))
    return failure();
  state.addAttribute("along", along);
  for (StringRef flag : {"exclusive", "reverse"})
    if (succeeded(parser.parseOptionalKeyword(flag)))
      state.addAttribute(flag, parser.getBuilder().getUnitAttr());
  return finishCombination(parser, state, inputs, identities);
}

void ScanOp::print(OpAsmPrinter &printer) {
  printCombination(printer, *this);
  printer << " along ";
  printer.printAttributeWithoutType(getAlongAttr());
  if (getExclusive())
    printer << " exclusive";
  if (getReverse())
    printer << " reverse";
  printCombinationEnd(printer, *this,
                      {"combiner", "order", "along", "exclusive", "reverse",
                       "operandSegmentSizes"});
}
