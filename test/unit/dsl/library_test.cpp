//===- dsl/library_test.cpp - The operator library traces -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operator of the table, for every storage type and combination of its
// constants and optional parameters, traces to valid Tile IR whose text reads
// back, and the table agrees with the kernel.
//
//===----------------------------------------------------------------------===//

#include "trace_text.h"

#include "dialect/tile_dialect.h"
#include "kernels/oracle/oracle.h"
#include "kernels/table.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <set>

namespace tessera::kernels {
namespace {

using testing::HasSubstr;
using Kind = ParameterInfo::Kind;

/// Every way to choose the constants that are flags and the optional
/// parameters.
std::vector<TraceOptions> allOptions(const Kernel &kernel, DType storage) {
  TraceOptions first;
  first.storage = storage;
  std::vector<TraceOptions> all{first};
  for (const ParameterInfo &parameter : kernel.parameters()) {
    if (parameter.kind != Kind::Constant && !parameter.optional)
      continue;
    size_t count = all.size();
    for (size_t i = 0; i < count; ++i) {
      TraceOptions more = all[i];
      if (parameter.optional)
        more.present.push_back(parameter.name);
      else
        more.constants[parameter.name] = true;
      all.push_back(more);
    }
  }
  return all;
}

TEST(Library, EveryOperatorTracesInEveryForm) {
  mlir::MLIRContext context;
  tile::loadTileDialects(context);
  for (const Operator &op : operators())
    for (DType storage : op.dtypes) {
      Kernel kernel = op.kernel();
      for (const TraceOptions &options : allOptions(kernel, storage)) {
        SCOPED_TRACE(std::string(op.name) + " " + std::string(name(storage)));
        std::string text = textOf(kernel, options);
        auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
        ASSERT_TRUE(module) << text;
        std::string again;
        llvm::raw_string_ostream stream(again);
        module->print(stream);
        EXPECT_EQ(again, text);
        EXPECT_THAT(text, HasSubstr("@" + std::string(op.name) + "("));
        EXPECT_THAT(text, HasSubstr("tile.parallel"));
      }
    }
}

TEST(Library, TheTableAgreesWithTheKernels) {
  std::set<std::string_view> names;
  for (const Operator &op : operators()) {
    SCOPED_TRACE(op.name);
    EXPECT_TRUE(names.insert(op.name).second);
    EXPECT_EQ(findOperator(op.name), &op);
    EXPECT_FALSE(op.summary.empty());
    EXPECT_EQ(op.dims.size(), op.defaultExtents.size());
    Kernel kernel = op.kernel();
    EXPECT_EQ(kernel.name(), op.name);
    EXPECT_NE(oracle::findOracle(op.oracle), nullptr);
    size_t views = 0;
    for (const ParameterInfo &parameter : kernel.parameters()) {
      if (parameter.kind != Kind::View)
        continue;
      ASSERT_LT(views, op.arrays.size());
      const ArrayInfo &array = op.arrays[views++];
      EXPECT_EQ(array.name, parameter.name);
      EXPECT_EQ(int(array.axes.size()), parameter.rank);
      if (array.content == Content::Mask)
        EXPECT_EQ(parameter.dtype, DType::Bool);
      if (array.content == Content::Index || array.content == Content::Length)
        EXPECT_TRUE(parameter.dtype && isInteger(*parameter.dtype));
    }
    EXPECT_EQ(views, op.arrays.size());
    // The dimensions of the command line are the kernel's own.
    TraceOptions options;
    std::string text = textOf(kernel, options);
    for (std::string_view dim : op.dims)
      EXPECT_THAT(text, HasSubstr("tile.dim \"" + std::string(dim) + "\""));
  }
  EXPECT_EQ(findOperator("no_such"), nullptr);
}

TEST(Library, Extents) {
  const Operator &rope = *findOperator("rope");
  Dims dims{{"rows", 3}, {"cols", 8}};
  EXPECT_TRUE(checkDims(rope, dims).ok());
  EXPECT_EQ(arrayExtents(*findArray(rope, "cos"), dims),
            (std::vector<int64_t>{3, 4}));
  const Operator &gemm = *findOperator("gemm");
  Dims mnk{{"m", 2}, {"n", 3}, {"k", 5}};
  EXPECT_EQ(arrayExtents(*findArray(gemm, "a"), mnk),
            (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(arrayExtents(*findArray(gemm, "a"), mnk, {{"trans_a", true}}),
            (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(arrayExtents(*findArray(gemm, "b"), mnk, {{"trans_a", true}}),
            (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(findArray(gemm, "d"), nullptr);
}

TEST(Library, DimsAreChecked) {
  const Operator &rope = *findOperator("rope");
  auto messageOf = [](const Operator &op, const Dims &dims) {
    Result<void> result = checkDims(op, dims);
    if (result)
      return std::string();
    EXPECT_EQ(result.error().family, ErrorFamily::Usage);
    return result.error().message;
  };
  EXPECT_THAT(messageOf(rope, {{"rows", 3}}), HasSubstr("'cols' is not given"));
  EXPECT_THAT(messageOf(rope, {{"rows", 3}, {"cols", 4}, {"n", 1}}),
              HasSubstr("no dimension 'n', expected rows, cols"));
  EXPECT_THAT(messageOf(rope, {{"rows", -3}, {"cols", 4}}),
              HasSubstr("at least 0"));
  EXPECT_THAT(messageOf(rope, {{"rows", 3}, {"cols", 5}}), HasSubstr("even"));
  Dims dims{{"b", 1}, {"hq", 5}, {"hkv", 2}, {"q", 1},
            {"k", 1}, {"d", 1},  {"dv", 1}};
  EXPECT_THAT(messageOf(*findOperator("attention"), dims),
              HasSubstr("multiple of 'hkv'"));
}

TEST(Library, Generation) {
  const Operator &op = *findOperator("embedding");
  Dims dims{{"tokens", 4}, {"vocab", 10}, {"cols", 2}};
  GenerateOptions ids = generation(*findArray(op, "ids"), DType::I64, dims, 7);
  EXPECT_EQ(ids.valueClass, ValueClass::Integers);
  EXPECT_EQ(ids.high, 10);
  EXPECT_EQ(ids.seed, 7u);
  EXPECT_EQ(
      generation(*findArray(op, "table"), DType::BF16, dims, 0).valueClass,
      ValueClass::Normal);
}

} // namespace
} // namespace tessera::kernels
