//===- tile_ops.cpp - Definitions generated from the ODS records ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_dialect.h"

#define GET_OP_CLASSES
#include "tile_ops.cpp.inc"
