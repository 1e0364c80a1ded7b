//===- repeated_reads.h - What reading again takes --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_REPEATED_READS_H
#define TESSERA_SEARCH_REPEATED_READS_H

#include "plan/plan_record.h"
#include "target/machine.h"

namespace tessera {

/// In nanoseconds: each line comes from the nearest level that still has it;
/// what the first level has takes nothing beside its loads.
double timeOf(const RepeatedRead &read, const Machine &machine);

} // namespace tessera

#endif // TESSERA_SEARCH_REPEATED_READS_H
