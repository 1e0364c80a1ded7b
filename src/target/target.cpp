//===- target.cpp - Target descriptions -----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/target.h"

#include "support/env.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace tessera {

/// MXCSR. The lower six bits are exception flags.
static const FloatControl mxcsr = {.read = "llvm.x86.sse.stmxcsr",
                                   .write = "llvm.x86.sse.ldmxcsr",
                                   .throughMemory = true,
                                   .bits = 32,
                                   .standard = 0x1f80,
                                   .mask = 0xffc0};

/// FPCR. Zero also means that NaNs propagate and that f16 is IEEE's. The flags
/// are in another register.
static const FloatControl fpcr = {.read = "llvm.aarch64.get.fpcr",
                                  .write = "llvm.aarch64.set.fpcr",
                                  .throughMemory = false,
                                  .bits = 64,
                                  .standard = 0,
                                  .mask = -1};

/// PREFETCHW. Processors of these levels that lack it take it for no operation.
static const char *const prefetchForStores = "+prfchw";

static const Target avx512 = {.isa = Isa::Avx512,
                              .name = "avx512",
                              .architecture = Architecture::X86_64,
                              .level = 2,
                              .triple = "x86_64-unknown-linux-gnu",
                              .cpu = "x86-64-v4",
                              .features = prefetchForStores,
                              .vectorBits = 512,
                              .vectorRegisters = 32,
                              .generalRegisters = 15,
                              .hasFma = true,
                              .hasF16c = true,
                              .hasMaskedAccess = true,
                              .hasMaskedByteAccess = true,
                              .hasScalef = true,
                              .broadcastsOperands = true,
                              .roundsInt64ToF32Once = true,
                              .hasExactExtrema = false,
                              .atoms = {"maddw"},
                              .floatControl = mxcsr};

/// A level that has more instructions than avx512, for atoms alone.
static Target avx512With(Isa isa, std::string name, int level,
                         const std::string &features,
                         std::vector<std::string> atoms) {
  Target target = avx512;
  target.isa = isa;
  target.name = std::move(name);
  target.level = level;
  target.features += features;
  target.hasBf16Conversion = features.find("avx512bf16") != std::string::npos;
  target.atoms = std::move(atoms);
  return target;
}

/// By Isa; the levels of an architecture stand together, lowest first.
static const std::array<Target, 7> targets = {{
    {.isa = Isa::X86_64,
     .name = "x86-64",
     .architecture = Architecture::X86_64,
     .level = 0,
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "x86-64",
     .features = "",
     .vectorBits = 128,
     .vectorRegisters = 16,
     .generalRegisters = 15,
     .hasFma = false,
     .hasF16c = false,
     .hasMaskedAccess = false,
     .hasMaskedByteAccess = false,
     .hasScalef = false,
     .broadcastsOperands = false,
     .roundsInt64ToF32Once = true,
     .hasExactExtrema = false,
     .atoms = {"maddw"},
     .floatControl = mxcsr},
    {.isa = Isa::Avx2,
     .name = "avx2",
     .architecture = Architecture::X86_64,
     .level = 1,
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "x86-64-v3",
     .features = prefetchForStores,
     .vectorBits = 256,
     .vectorRegisters = 16,
     .generalRegisters = 15,
     .hasFma = true,
     .hasF16c = true,
     .hasMaskedAccess = true,
     .hasMaskedByteAccess = false,
     .hasScalef = false,
     .broadcastsOperands = false,
     .roundsInt64ToF32Once = true,
     .hasExactExtrema = false,
     .atoms = {"maddw"},
     .floatControl = mxcsr},
    avx512,
    avx512With(Isa::Avx512Vnni, "avx512-vnni", 3, ",+avx512vnni",
               {"dpbusd", "maddw"}),
    avx512With(Isa::Avx512Bf16, "avx512-bf16", 4, ",+avx512vnni,+avx512bf16",
               {"dpbusd", "maddw", "dpbf16"}),
    avx512With(Isa::Avx512Amx, "avx512-amx", 5,
               ",+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16",
               {"tiles8", "dpbusd", "maddw", "tiles16", "dpbf16"}),
    {.isa = Isa::Neon,
     .name = "neon",
     .architecture = Architecture::AArch64,
     .level = 0,
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .features = "",
     .vectorBits = 128,
     .vectorRegisters = 32,
     .generalRegisters = 28,
     .hasFma = true,
     .hasF16c = true,
     .hasMaskedAccess = false,
     .hasMaskedByteAccess = false,
     .hasScalef = false,
     .broadcastsOperands = false,
     .roundsInt64ToF32Once = false,
     .hasExactExtrema = true,
     .atoms = {},
     .floatControl = fpcr},
}};

std::string_view name(Architecture architecture) {
  switch (architecture) {
  case Architecture::X86_64:
    return "x86-64";
  case Architecture::AArch64:
    return "AArch64";
  }
  return "";
}

const Target &getTarget(Isa isa) { return targets[static_cast<size_t>(isa)]; }

std::string_view name(Isa isa) { return getTarget(isa).name; }

#if defined(__x86_64__)

/// Whether the processor has tile registers for integers and bf16, and the
/// system lets this process use them: it has to be asked before the first use,
/// for all threads.
static bool mayUseTiles() {
  static const bool may = [] {
    constexpr unsigned bf16 = 1u << 22, tiles = 1u << 24, integers = 1u << 25;
    constexpr unsigned all = bf16 | tiles | integers;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & all) != all)
      return false;
#if defined(__linux__)
    // ARCH_REQ_XCOMP_PERM, for the state of tile data.
    constexpr long request = 0x1023, tileData = 18;
    return syscall(SYS_arch_prctl, request, tileData) == 0;
#else
    return false;
#endif
  }();
  return may;
}

#endif

Isa hostIsa() {
#if defined(__aarch64__)
  return Isa::Neon;
#else
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) {
    if (!__builtin_cpu_supports("avx512vnni"))
      return Isa::Avx512;
    if (!__builtin_cpu_supports("avx512bf16"))
      return Isa::Avx512Vnni;
    return mayUseTiles() ? Isa::Avx512Amx : Isa::Avx512Bf16;
  }
  if (__builtin_cpu_supports("x86-64-v3"))
    return Isa::Avx2;
#endif
  return Isa::X86_64;
#endif
}

bool hostRuns(Isa isa) {
  const Target &target = getTarget(isa), &host = getTarget(hostIsa());
  return target.architecture == host.architecture && target.level <= host.level;
}

std::vector<Isa> hostIsas() {
  std::vector<Isa> isas;
  for (const Target &target : targets)
    if (hostRuns(target.isa))
      isas.push_back(target.isa);
  return isas;
}

Isa defaultIsa() {
  std::optional<std::string> wanted =
      support::envText(support::EnvVariable::Isa);
  if (wanted)
    for (const Target &target : targets)
      if (target.name == *wanted && hostRuns(target.isa))
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
    if (!forOtherHost && !hostRuns(target.isa))
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
