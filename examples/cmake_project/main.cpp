//===- main.cpp - A program that uses an installed Tessera ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/dtype.h"

#include <cstdio>

int main() {
  auto dtype = tessera::parseDType("f32");
  if (!dtype || tessera::sizeInBytes(*dtype) != 4) {
    std::fprintf(stderr, "f32 is not four bytes\n");
    return 1;
  }
  std::printf("tessera works: f32 has %lld bytes\n",
              static_cast<long long>(tessera::sizeInBytes(*dtype)));
  return 0;
}
