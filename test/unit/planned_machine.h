//===- planned_machine.h - The machine that tests plan for ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that look at plans take the description of one processor, so that they
// find the same plans wherever they run.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_PLANNED_MACHINE_H
#define TESSERA_TEST_UNIT_PLANNED_MACHINE_H

#include "target/machine.h"

#include <gtest/gtest.h>

namespace tessera {

inline const Machine *plannedMachine() {
  for (const Machine &machine : knownMachines())
    if (machine.name == "sapphire-rapids")
      return &machine;
  ADD_FAILURE() << "there is no description 'sapphire-rapids'";
  return nullptr;
}

} // namespace tessera

#endif // TESSERA_TEST_UNIT_PLANNED_MACHINE_H
