//===- contraction_atoms.cpp - Products of groups of elements -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/contraction_atoms.h"

#include <algorithm>

namespace tessera {

static constexpr ContractionAtom atoms[] = {
    {.name = "dpbusd",
     .instructions = "vpdpbusd",
     .elements = AtomElements::Int8,
     .group = 4,
     .intrinsics = {"llvm.x86.avx512.vpdpbusd.128",
                    "llvm.x86.avx512.vpdpbusd.256",
                    "llvm.x86.avx512.vpdpbusd.512"},
     .accumulates = true,
     .isFirstUnsigned = true,
     .flushesSubnormals = false},
    // Of two products of 16-bit numbers the sum is exact modulo 2^32.
    {.name = "maddw",
     .instructions = "vpmaddwd, vpaddd",
     .elements = AtomElements::Int8,
     .group = 2,
     .intrinsics = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                    "llvm.x86.avx512.pmaddw.d.512"},
     .accumulates = false,
     .isFirstUnsigned = false,
     .flushesSubnormals = false},
    {.name = "dpbf16",
     .instructions = "vdpbf16ps",
     .elements = AtomElements::BF16,
     .group = 2,
     .intrinsics = {"llvm.x86.avx512bf16.dpbf16ps.128",
                    "llvm.x86.avx512bf16.dpbf16ps.256",
                    "llvm.x86.avx512bf16.dpbf16ps.512"},
     .accumulates = true,
     .isFirstUnsigned = false,
     .flushesSubnormals = true},
    {.name = "tiles8",
     .instructions = "tdpbssd and its like",
     .elements = AtomElements::Int8,
     .group = 4,
     .intrinsics = {},
     .accumulates = true,
     .isFirstUnsigned = false,
     .flushesSubnormals = false,
     .tileIntrinsics = {"llvm.x86.tdpbssd", "llvm.x86.tdpbsud",
                        "llvm.x86.tdpbusd", "llvm.x86.tdpbuud"}},
    {.name = "tiles16",
     .instructions = "tdpbf16ps",
     .elements = AtomElements::BF16,
     .group = 2,
     .intrinsics = {},
     .accumulates = true,
     .isFirstUnsigned = false,
     .flushesSubnormals = true,
     .tileIntrinsics = {"llvm.x86.tdpbf16ps", "llvm.x86.tdpbf16ps",
                        "llvm.x86.tdpbf16ps", "llvm.x86.tdpbf16ps"}},
};

const ContractionAtom *findAtom(std::string_view name) {
  for (const ContractionAtom &atom : atoms)
    if (atom.name == name)
      return &atom;
  return nullptr;
}

const ContractionAtom *findAtomOf(std::string_view intrinsic) {
  auto isOne = [&](const char *own) { return own && own == intrinsic; };
  for (const ContractionAtom &atom : atoms)
    if (std::any_of(atom.intrinsics.begin(), atom.intrinsics.end(), isOne) ||
        std::any_of(atom.tileIntrinsics.begin(), atom.tileIntrinsics.end(),
                    isOne))
      return &atom;
  return nullptr;
}

} // namespace tessera
