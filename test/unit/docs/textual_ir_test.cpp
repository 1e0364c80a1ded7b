//===- docs/textual_ir_test.cpp - The blocks of docs/textual-ir.md --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every block parses, verifies, and reads back what it prints; together they
// show every operation that a kernel may have.
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "dialect/tile_op_lists.h"
#include "driver/text.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <set>

using namespace mlir;

namespace tessera {
namespace {

constexpr const char *page = "docs/textual-ir.md";
constexpr const char *place = "    // here\n";

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

/// The blocks as whole files.
std::vector<docs::CodeBlock> modules() {
  std::vector<docs::CodeBlock> blocks = docs::codeBlocks(page, "mlir");
  std::string frame;
  for (docs::CodeBlock &block : blocks) {
    if (block.text.find("module") != std::string::npos) {
      if (block.text.find(place) != std::string::npos)
        frame = block.text;
      continue;
    }
    size_t at = frame.find(place);
    EXPECT_NE(at, std::string::npos) << "no block before has the comment";
    block.text =
        std::string(frame).replace(at, std::string(place).size(), block.text);
  }
  return blocks;
}

TEST(TextualIrPage, BlocksParseAndRoundTrip) {
  for (const docs::CodeBlock &block : modules()) {
    std::string where = std::string(page) + ":" + std::to_string(block.line);
    MLIRContext context;
    tile::loadTileDialects(context);
    Result<OwningOpRef<ModuleOp>> first =
        parseTileText(block.text, where, context);
    ASSERT_TRUE(first.ok()) << where << ": " << first.error().str();
    std::string text = printed(**first);
    Result<OwningOpRef<ModuleOp>> second = parseTileText(text, where, context);
    ASSERT_TRUE(second.ok()) << where << ": " << second.error().str();
    EXPECT_EQ(printed(**second), text) << where;
  }
}

template <typename... Ops>
void addNames(std::set<std::string> &names, tile::OpList<Ops...>) {
  (names.insert(Ops::getOperationName().str()), ...);
}

TEST(TextualIrPage, ShowsEveryOperation) {
  std::set<std::string> wanted, shown;
  addNames(wanted, tile::TileOps{});
  addNames(wanted, tile::UpstreamOps{});
  for (const docs::CodeBlock &block : modules()) {
    MLIRContext context;
    tile::loadTileDialects(context);
    Result<OwningOpRef<ModuleOp>> module =
        parseTileText(block.text, page, context);
    ASSERT_TRUE(module.ok());
    (*module)->walk([&](Operation *op) {
      shown.insert(op->getName().getStringRef().str());
    });
  }
  for (const std::string &name : wanted)
    EXPECT_TRUE(shown.contains(name)) << page << " has no example of " << name;
}

TEST(TextualIrPage, NamesTheVersion) {
  EXPECT_NE(docs::readSource(page).find("This is version " +
                                        std::to_string(tile::textVersion)),
            std::string::npos);
}

} // namespace
} // namespace tessera
