//===- bench/core/subject.h - Tessera as an arm -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_SUBJECT_H
#define TESSERA_BENCH_CORE_SUBJECT_H

#include "bench/core/serve.h"

namespace tessera::bench {

/// The worker of Tessera itself: each row compiled with the default plan.
std::unique_ptr<Arm> makeSubject();

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_SUBJECT_H
