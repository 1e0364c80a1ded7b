//===- dtype_error_test.cpp - Tests of dtypes and errors ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names and sizes of element types; the text and exit status of errors.
//
//===----------------------------------------------------------------------===//

#include "tessera/dtype.h"
#include "tessera/error.h"

#include <gtest/gtest.h>

using namespace tessera;

TEST(DTypeTest, NoEnumeratorIsNoType) {
  const auto none = static_cast<DType>(99);
  EXPECT_EQ(name(none), "an unknown type");
  EXPECT_EQ(sizeInBytes(none), 1);
  EXPECT_FALSE(isFloat(none));
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::F64); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(parseDType(name(type)), type);
    EXPECT_GE(sizeInBytes(type), 1);
    EXPECT_EQ(sizeInBytes(computeType(type)) >= 4,
              isFloat(type) || sizeInBytes(type) >= 4);
    EXPECT_FALSE(isFloat(type) && isInteger(type));
    EXPECT_TRUE(!isUnsigned(type) || isInteger(type));
  }
  EXPECT_EQ(parseDType("float"), std::nullopt);
  EXPECT_EQ(parseDType(""), std::nullopt);
  EXPECT_EQ(parseDType("F32"), std::nullopt);
}

TEST(DType, Properties) {
  EXPECT_EQ(name(DType::F8E4M3), "f8e4m3");
  EXPECT_EQ(name(DType::BF16), "bf16");
  EXPECT_EQ(sizeInBytes(DType::Bool), 1);
  EXPECT_EQ(sizeInBytes(DType::F16), 2);
  EXPECT_EQ(sizeInBytes(DType::U64), 8);
  EXPECT_EQ(computeType(DType::F8E5M2), DType::F32);
  EXPECT_EQ(computeType(DType::F64), DType::F64);
  EXPECT_EQ(computeType(DType::I8), DType::I8);
  EXPECT_FALSE(isInteger(DType::Bool));
  EXPECT_FALSE(isUnsigned(DType::Bool));
  EXPECT_TRUE(isInteger(DType::I64));
}

TEST(Error, Text) {
  Error error{ErrorFamily::Usage, "npy.magic", "not an array", {}};
  EXPECT_EQ(error.str(), "error: not an array [npy.magic]");
  error.where.file = "a.npy";
  EXPECT_EQ(error.str(), "a.npy: error: not an array [npy.magic]");
  error.where.line = 3;
  EXPECT_EQ(error.str(), "a.npy:3: error: not an array [npy.magic]");
  error.where.column = 7;
  error.code.clear();
  EXPECT_EQ(error.str(), "a.npy:3:7: error: not an array");
}

TEST(Error, ExitCodes) {
  EXPECT_EQ(exitCode(ErrorFamily::Diagnostic), 2);
  EXPECT_EQ(exitCode(ErrorFamily::Launch), 2);
  EXPECT_EQ(exitCode(ErrorFamily::Usage), 2);
  EXPECT_EQ(exitCode(ErrorFamily::Unsupported), 3);
  EXPECT_EQ(exitCode(ErrorFamily::Internal), 4);
}

TEST(Error, ResultHoldsOneOfTwo) {
  Result<std::string> good(std::string("yes"));
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, "yes");
  EXPECT_EQ(good->size(), 3u);
  Result<std::string> bad(Error{ErrorFamily::Usage, "c", "m", {}});
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().code, "c");
  EXPECT_TRUE(Result<void>().ok());
}
