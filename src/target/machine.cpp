//===- machine.cpp - Descriptions of micro-architectures ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/machine.h"

namespace tessera {

namespace {

CoreCosts core(double gigahertz, double operations, double divide,
               double squareRoot) {
  CoreCosts costs;
  costs.gigahertz = gigahertz;
  costs.operationsPerCycle = operations;
  costs.divideCycles = divide;
  costs.squareRootCycles = squareRoot;
  return costs;
}

std::vector<Machine> makeMachines() {
  std::vector<Machine> machines(3);
  Machine &zen4 = machines[0];
  zen4.name = "zen4";
  zen4.provenance = "measured on one core of a two-core guest at 3.7 GHz";
  zen4.memory = {{{32 << 10, 218, 118, 44},
                  {1 << 20, 118, 57, 44},
                  {32 << 20, 99, 48, 28},
                  {0, 24, 12, 28}}};
  zen4.core = {core(3.7, 2, 3, 5), core(3.7, 2, 5, 8), core(3.7, 1, 10, 16)};

  Machine &xeon = machines[1];
  xeon.name = "sapphire-rapids";
  xeon.provenance = "instruction tables; bandwidth measured on one core";
  xeon.memory = {{{48 << 10, 200, 100, 20},
                  {2 << 20, 100, 50, 20},
                  {32 << 20, 20, 12, 12},
                  {0, 12, 8, 12}}};
  xeon.core = {core(3.0, 3, 3, 3), core(3.0, 3, 5, 6), core(2.8, 2, 10, 12)};

  Machine &generic = machines[2];
  generic.name = "generic";
  generic.provenance = "cautious figures for an x86-64 processor";
  generic.memory = {{{32 << 10, 100, 60, 20},
                     {512 << 10, 60, 30, 20},
                     {8 << 20, 25, 15, 12},
                     {0, 12, 7, 12}}};
  generic.core = {core(3.0, 2, 4, 6), core(3.0, 2, 6, 10),
                  core(3.0, 1, 12, 20)};
  return machines;
}

} // namespace

const std::vector<Machine> &knownMachines() {
  static const std::vector<Machine> machines = makeMachines();
  return machines;
}

const Machine &genericMachine(Isa) { return knownMachines().back(); }

const Machine &hostMachine() { return knownMachines()[1]; }

} // namespace tessera
