//===- target.cpp - Target descriptions -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/target.h"

#include "support/env.h"

#include <array>

namespace tessera {

static const std::array<Target, 3> targets = {{
    {.isa = Isa::X86_64,
     .name = "x86-64",
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "x86-64",
     .features = "",
     .vectorBits = 128,
     .vectorRegisters = 16,
     .hasFma = false,
     .hasF16c = false,
     .hasMaskedAccess = false,
     .hasMaskedByteAccess = false,
     .hasScalef = false},
    {.isa = Isa::Avx2,
     .name = "avx2",
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "x86-64-v3",
     .features = "",
     .vectorBits = 256,
     .vectorRegisters = 16,
     .hasFma = true,
     .hasF16c = true,
     .hasMaskedAccess = true,
     .hasMaskedByteAccess = false,
     .hasScalef = false},
    {.isa = Isa::Avx512,
     .name = "avx512",
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "x86-64-v4",
     .features = "",
     .vectorBits = 512,
     .vectorRegisters = 32,
     .hasFma = true,
     .hasF16c = true,
     .hasMaskedAccess = true,
     .hasMaskedByteAccess = true,
     .hasScalef = true},
}};

const Target &getTarget(Isa isa) { return targets[static_cast<size_t>(isa)]; }

std::string_view name(Isa isa) { return getTarget(isa).name; }

Isa hostIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return Isa::Avx512;
  if (__builtin_cpu_supports("x86-64-v3"))
    return Isa::Avx2;
#endif
  return Isa::X86_64;
}

std::vector<Isa> hostIsas() {
  std::vector<Isa> isas;
  for (const Target &target : targets)
    if (target.isa <= hostIsa())
      isas.push_back(target.isa);
  return isas;
}

Isa defaultIsa() {
  std::optional<std::string> wanted =
      support::envText(support::EnvVariable::Isa);
  if (wanted)
    for (const Target &target : targets)
      if (target.name == *wanted && target.isa <= hostIsa())
        return target.isa;
  return hostIsa();
}

Result<Isa> parseIsa(std::string_view text, bool forOtherHost) {
  if (text == "native")
    return defaultIsa();
  std::string known = "native";
  for (const Target &target : targets) {
    known += ", " + target.name;
    if (target.name != text)
      continue;
    if (!forOtherHost && target.isa > hostIsa())
      return Error{ErrorFamily::Unsupported,
                   "target.isa",
                   "this machine cannot run " + target.name +
                       " code; its highest level is " +
                       std::string(name(hostIsa())),
                   {}};
    return target.isa;
  }
  return Error{ErrorFamily::Usage,
               "usage.isa",
               "unknown instruction set '" + std::string(text) +
                   "'; expected one of " + known,
               {}};
}

} // namespace tessera
