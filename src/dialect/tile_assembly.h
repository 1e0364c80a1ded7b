//===- tile_assembly.h - What the textual forms share -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_TILE_ASSEMBLY_H
#define TESSERA_DIALECT_TILE_ASSEMBLY_H

#include "dialect/tile_dialect.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera::tile {

template <typename Enum, typename Attr>
mlir::ParseResult parseEnum(mlir::OpAsmParser &parser,
                            mlir::OperationState &state,
                            llvm::StringRef attribute,
                            std::optional<Enum> (*symbolize)(llvm::StringRef),
                            Enum *parsed = nullptr) {
  llvm::StringRef keyword;
  llvm::SMLoc loc = parser.getCurrentLocation();
  bool isGiven = succeeded(parser.parseOptionalKeyword(&keyword));
  std::optional<Enum> value =
      isGiven ? symbolize(keyword) : std::optional<Enum>();
  if (!value) {
    std::string known;
    for (unsigned i = 0; !stringifyEnum(static_cast<Enum>(i)).empty(); ++i)
      known += (i ? ", " : "") + stringifyEnum(static_cast<Enum>(i)).str();
    std::string found =
        isGiven ? "unknown " + attribute.str() + " '" + keyword.str() + "'"
                : "the " + attribute.str() + " is missing";
    return parser.emitError(loc) << found << ", expected one of " << known;
  }
  if (parsed)
    *parsed = *value;
  state.addAttribute(attribute, Attr::get(parser.getContext(), *value));
  return mlir::success();
}

inline mlir::ParseResult parseString(mlir::OpAsmParser &parser,
                                     mlir::StringAttr &text) {
  return parser.parseAttribute(text, mlir::NoneType::get(parser.getContext()));
}

inline mlir::ParseResult parseStringList(mlir::OpAsmParser &parser,
                                         mlir::ArrayAttr &list) {
  llvm::SmallVector<mlir::Attribute> items;
  if (parser.parseCommaSeparatedList(mlir::OpAsmParser::Delimiter::Square,
                                     [&]() -> mlir::ParseResult {
                                       mlir::StringAttr item;
                                       if (parseString(parser, item))
                                         return mlir::failure();
                                       items.push_back(item);
                                       return mlir::success();
                                     }))
    return mlir::failure();
  list = parser.getBuilder().getArrayAttr(items);
  return mlir::success();
}

inline void printStringList(mlir::OpAsmPrinter &printer, mlir::ArrayAttr list) {
  printer << '[';
  llvm::interleaveComma(list, printer,
                        [&](mlir::Attribute item) { printer << item; });
  printer << ']';
}

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_ASSEMBLY_H
