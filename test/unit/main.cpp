//===- main.cpp - The main function of the unit tests ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <gmock/gmock.h>

int main(int argc, char **argv) {
  // What the user calibrated is none of the tests' business.
  ::setenv("TESSERA_CALIBRATION", "off", 1);
  // What is tested is what the compiler makes now.
  ::setenv("TESSERA_CACHE_DIR", "off", 1);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
