//===- tiles.cpp - Tile registers on a host without them ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Encodings and operations are those of the Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2: ldtilecfg, tileloadd, tilestored,
// tilezero, tilerelease, tdpbssd and its like, tdpbf16ps. All have the prefix
// VEX with three bytes and the map 0F 38.
//
//===----------------------------------------------------------------------===//

#include "tiles.h"

#include "codegen/llvm/codegen.h"

#if defined(__x86_64__) && defined(__linux__)

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <mutex>
#include <ucontext.h>
#include <unistd.h>

namespace tessera::emulation {
namespace {

constexpr int registers = 8, mostRows = 16, mostBytes = 64;

struct Tile {
  int rows = 0, rowBytes = 0;
  unsigned char data[mostRows][mostBytes] = {};
};

struct State {
  bool isConfigured = false;
  Tile tiles[registers];
  uint64_t executed = 0;
};
thread_local State state;

/// What the processor would not execute either.
[[noreturn]] void refuse(const char *why) {
  constexpr const char *what = "tile instruction refused: ";
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, why, std::strlen(why));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(70);
}

void require(bool holds, const char *why) {
  if (!holds)
    refuse(why);
}

uint64_t registerOf(const ucontext_t &context, int number) {
  constexpr int places[] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.uc_mcontext.gregs[places[number]]);
}

/// One instruction, taken apart.
struct Instruction {
  /// The prefix that chooses among the instructions of an opcode: none, 66, F3,
  /// F2.
  enum Prefix { None, P66, PF3, PF2 } prefix = None;
  int opcode = 0;
  /// The fields of ModRM and VEX that name registers.
  int reg = 0, rm = 0, vvvv = 0;
  bool isMemory = false;
  /// The address without the index, and the index times its scale: for tiles
  /// that is the distance of rows.
  uint64_t base = 0, index = 0;
  bool hasSib = false;
  int length = 0;
};

/// False for what has another form.
bool decode(const unsigned char *code, const ucontext_t &context,
            Instruction &result) {
  if (code[0] != 0xc4)
    return false;
  // R, X, B and vvvv are stored inverted.
  const int r = (~code[1] >> 7) & 1, x = (~code[1] >> 6) & 1,
            b = (~code[1] >> 5) & 1;
  // Map 0F 38, W0, 128 bits.
  if ((code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0)
    return false;
  result.vvvv = (~code[2] >> 3) & 15;
  result.prefix = static_cast<Instruction::Prefix>(code[2] & 3);
  result.opcode = code[3];
  const int mod = code[4] >> 6, low = code[4] & 7;
  result.reg = ((code[4] >> 3) & 7) | r << 3;
  result.rm = low | b << 3;
  result.length = 5;
  result.isMemory = mod != 3;
  if (!result.isMemory)
    return true;
  bool hasBase = true;
  int base = low;
  if (low == 4) {
    const int sib = code[result.length++];
    const int index = ((sib >> 3) & 7) | x << 3;
    base = sib & 7;
    result.hasSib = true;
    if (index != 4)
      result.index = registerOf(context, index) << (sib >> 6);
  }
  int32_t far = 0;
  if (mod == 1) {
    far = static_cast<signed char>(code[result.length++]);
  } else if (mod == 2 || base == 5) {
    // Without a base where there is none, or beside the next instruction.
    hasBase = mod == 2;
    std::memcpy(&far, code + result.length, 4);
    result.length += 4;
  }
  if (hasBase)
    result.base = registerOf(context, base | b << 3);
  else if (!result.hasSib)
    result.base =
        reinterpret_cast<uint64_t>(code) + static_cast<uint64_t>(result.length);
  result.base += static_cast<uint64_t>(static_cast<int64_t>(far));
  return true;
}

Tile &tile(int number) {
  require(state.isConfigured, "no shapes are loaded");
  require(number < registers, "there are 8 tile registers");
  Tile &result = state.tiles[number];
  require(result.rows > 0 && result.rowBytes > 0, "the tile has no shape");
  return result;
}

void configure(uint64_t address) {
  unsigned char bytes[64];
  std::memcpy(bytes, reinterpret_cast<const void *>(address), sizeof bytes);
  state.isConfigured = bytes[0] != 0;
  require(bytes[0] <= 1, "there are the palettes 0 and 1");
  for (int i = 0; i < registers; ++i) {
    Tile &one = state.tiles[i];
    one = Tile();
    one.rowBytes = bytes[16 + 2 * i] | bytes[17 + 2 * i] << 8;
    one.rows = bytes[48 + i];
    require(one.rows <= mostRows && one.rowBytes <= mostBytes,
            "a tile has at most 16 rows of 64 bytes");
    require((one.rows == 0) == (one.rowBytes == 0),
            "a tile has rows without bytes, or bytes without rows");
  }
}

void load(Tile &to, const Instruction &from) {
  std::memset(to.data, 0, sizeof to.data);
  for (int row = 0; row < to.rows; ++row)
    std::memcpy(to.data[row],
                reinterpret_cast<const void *>(
                    from.base + from.index * static_cast<uint64_t>(row)),
                static_cast<size_t>(to.rowBytes));
}

void store(const Tile &from, const Instruction &to) {
  for (int row = 0; row < from.rows; ++row)
    std::memcpy(reinterpret_cast<void *>(to.base +
                                         to.index * static_cast<uint64_t>(row)),
                from.data[row], static_cast<size_t>(from.rowBytes));
}

/// Subnormal numbers count as zero.
float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Each word of the result takes the products of the groups in a row of `a` and
/// a column of `b`.
struct Product {
  Tile &result;
  const Tile &a, &b;

  Product(const Instruction &i)
      : result(tile(i.reg)), a(tile(i.rm)), b(tile(i.vvvv)) {
    require(&result != &a && &result != &b && &a != &b,
            "the operands are the same register");
    require(result.rows == a.rows && result.rowBytes == b.rowBytes &&
                a.rowBytes == 4 * b.rows,
            "the shapes of the operands do not fit");
  }

  void bytes(bool isLeftSigned, bool isRightSigned) const {
    auto element = [](unsigned char byte, bool isSigned) {
      return isSigned ? static_cast<signed char>(byte) : int(byte);
    };
    for (int m = 0; m < result.rows; ++m)
      for (int n = 0; n < result.rowBytes; n += 4) {
        uint32_t sum;
        std::memcpy(&sum, result.data[m] + n, 4);
        for (int k = 0; k < a.rowBytes; ++k)
          sum += static_cast<uint32_t>(
              element(a.data[m][k], isLeftSigned) *
              element(b.data[k / 4][n + k % 4], isRightSigned));
        std::memcpy(result.data[m] + n, &sum, 4);
      }
  }

  /// Even and odd products are summed apart, each by fused multiply-adds.
  void bf16() const {
    auto element = [](const unsigned char *at) {
      return flushed(fromBits(uint32_t(at[0]) << 16 | uint32_t(at[1]) << 24));
    };
    for (int m = 0; m < result.rows; ++m)
      for (int n = 0; n < result.rowBytes; n += 4) {
        float sums[2] = {0, 0}, word;
        for (int k = 0; k < a.rowBytes; k += 2) {
          float &sum = sums[k / 2 % 2];
          sum = flushed(std::fma(element(a.data[m] + k),
                                 element(b.data[k / 4] + n + k % 4), sum));
        }
        std::memcpy(&word, result.data[m] + n, 4);
        word = flushed(flushed(word) + flushed(sums[0] + sums[1]));
        std::memcpy(result.data[m] + n, &word, 4);
      }
  }
};

/// False for other instructions.
bool execute(const Instruction &i) {
  switch (i.opcode) {
  case 0x49:
    if (i.prefix == Instruction::None && i.isMemory)
      configure(i.base + i.index);
    else if (i.prefix == Instruction::None)
      state.isConfigured = false;
    else if (i.prefix == Instruction::PF2 && !i.isMemory)
      std::memset(tile(i.reg).data, 0, sizeof Tile::data);
    else
      return false;
    return true;
  case 0x4b:
    if (!i.isMemory || !i.hasSib)
      return false;
    if (i.prefix == Instruction::PF2 || i.prefix == Instruction::P66)
      load(tile(i.reg), i);
    else if (i.prefix == Instruction::PF3)
      store(tile(i.reg), i);
    else
      return false;
    return true;
  case 0x5c:
    if (i.isMemory || i.prefix != Instruction::PF3)
      return false;
    Product(i).bf16();
    return true;
  case 0x5e:
    if (i.isMemory)
      return false;
    // F2 both with signs, F3 and 66 the left and the right one alone.
    Product(i).bytes(
        i.prefix == Instruction::PF2 || i.prefix == Instruction::PF3,
        i.prefix == Instruction::PF2 || i.prefix == Instruction::P66);
    return true;
  default:
    return false;
  }
}

void onIllegal(int signal, siginfo_t *, void *given) {
  auto &context = *static_cast<ucontext_t *>(given);
  greg_t &next = context.uc_mcontext.gregs[REG_RIP];
  Instruction instruction;
  if (decode(reinterpret_cast<const unsigned char *>(next), context,
             instruction) &&
      execute(instruction)) {
    ++state.executed;
    next += instruction.length;
    return;
  }
  // It comes again, and ends the process as it would have.
  std::signal(signal, SIG_DFL);
}

} // namespace

bool emulatesTiles() {
  return hostRuns(Isa::Avx512Bf16) && !hostRuns(Isa::Avx512Amx);
}

Result<void> launchWithTiles(const CompiledKernel &kernel,
                             std::span<const Argument> arguments) {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = onIllegal;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, nullptr);
  });
  ExecutableInfo info = kernel.executable.info();
  Result<std::shared_ptr<LoadedObject>> code =
      loadObject(kernel.object, info.kernel, {});
  if (!code)
    return code.error();
  info.code = *code;
  for (Stage &stage : info.stages) {
    stage.entry = reinterpret_cast<StageEntry>((*code)->lookup(stage.symbol));
    if (!stage.entry)
      return Error{ErrorFamily::Internal,
                   "emulation",
                   "the object does not define '" + stage.symbol + "'",
                   {}};
  }
  LaunchOptions options;
  options.threads = 1;
  return Executable(std::move(info)).launch(arguments, options);
}

uint64_t emulatedTileInstructions() { return state.executed; }

} // namespace tessera::emulation

#else

namespace tessera::emulation {

bool emulatesTiles() { return false; }

Result<void> launchWithTiles(const CompiledKernel &,
                             std::span<const Argument>) {
  return Error{ErrorFamily::Unsupported,
               "emulation",
               "tile registers are emulated on x86-64 alone",
               {}};
}

uint64_t emulatedTileInstructions() { return 0; }

} // namespace tessera::emulation

#endif
