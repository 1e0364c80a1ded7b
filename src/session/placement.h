//===- session/placement.h - Arrays as allocators place them ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_PLACEMENT_H
#define TESSERA_SESSION_PLACEMENT_H

#include "tessera/executable.h"

#include <vector>

namespace tessera::session {

/// Copies of arrays for timing. An array that ends at a guard page begins
/// anywhere, and all end at equal places in a page: a core takes a load for one
/// from a store to the other whose address differs in its upper bits alone. The
/// copies begin at multiples of 64 bytes, at different places in their pages.
class Placement {
public:
  explicit Placement(const std::vector<Argument> &originals);

  const std::vector<Argument> &arguments() const { return placed; }

private:
  std::vector<Argument> placed;
  std::vector<char> memory;
};

/// The arguments of a launch, with what the executable takes packed packed.
Result<std::vector<Argument>> packedArguments(const Executable &executable,
                                              std::vector<Argument> arguments,
                                              const LaunchOptions &options);

} // namespace tessera::session

#endif // TESSERA_SESSION_PLACEMENT_H
