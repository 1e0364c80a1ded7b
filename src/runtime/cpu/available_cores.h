//===- available_cores.h - Cores this process may use -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The default size of a task pool, and how it learns that it is oversubscribed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CPU_AVAILABLE_CORES_H
#define TESSERA_RUNTIME_CPU_AVAILABLE_CORES_H

namespace tessera::runtime {

/// Cores in this process's affinity mask; at least 1.
int availableCores();

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_CPU_AVAILABLE_CORES_H
