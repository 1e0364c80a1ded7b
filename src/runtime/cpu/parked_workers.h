//===- parked_workers.h - Whether waking workers is needed ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Waking a parked worker takes tens of microseconds, a spinning one joins in a
// fraction of one. The dispatcher asks which it would be.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CPU_PARKED_WORKERS_H
#define TESSERA_RUNTIME_CPU_PARKED_WORKERS_H

#include "tessera/pool.h"

namespace tessera::runtime {

/// True when `pool` is one of Tessera's own and none of its workers is awake or
/// none has been started; the answer may be out of date at once. False for a
/// host's pool.
bool workersAreParked(const TaskPool &pool);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_CPU_PARKED_WORKERS_H
