//===- hash.cpp - A stable 128-bit content hash ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SipHash-2-4-128 after Aumasson and Bernstein, as a streaming hasher.
//
//===----------------------------------------------------------------------===//

#include "support/hash.h"

#include <bit>
#include <cstring>

namespace tessera::support {

namespace {

void sipRound(uint64_t &v0, uint64_t &v1, uint64_t &v2, uint64_t &v3) {
  v0 += v1;
  v1 = std::rotl(v1, 13) ^ v0;
  v0 = std::rotl(v0, 32);
  v2 += v3;
  v3 = std::rotl(v3, 16) ^ v2;
  v0 += v3;
  v3 = std::rotl(v3, 21) ^ v0;
  v2 += v1;
  v1 = std::rotl(v1, 17) ^ v2;
  v2 = std::rotl(v2, 32);
}

void absorb(uint64_t word, uint64_t &v0, uint64_t &v1, uint64_t &v2,
            uint64_t &v3) {
  v3 ^= word;
  sipRound(v0, v1, v2, v3);
  sipRound(v0, v1, v2, v3);
  v0 ^= word;
}

/// Little-endian, whatever the machine's order.
uint64_t loadWord(const unsigned char *bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  if constexpr (std::endian::native == std::endian::big)
    word = __builtin_bswap64(word);
  return word;
}

} // namespace

std::string Hash128::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (uint64_t word : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4)
      text += digits[(word >> shift) & 15];
  return text;
}

Hasher::Hasher(uint64_t key0, uint64_t key1)
    : v0(key0 ^ 0x736f6d6570736575), v1(key1 ^ 0x646f72616e646f6d ^ 0xee),
      v2(key0 ^ 0x6c7967656e657261), v3(key1 ^ 0x7465646279746573) {}

Hasher &Hasher::bytes(const void *data, size_t size) {
  const auto *next = static_cast<const unsigned char *>(data);
  size_t left = size;
  while (left > 0 && (length & 7) != 0) {
    pending |= uint64_t{*next++} << (8 * (length & 7));
    ++length;
    --left;
    if ((length & 7) == 0) {
      absorb(pending, v0, v1, v2, v3);
      pending = 0;
    }
  }
  for (; left >= 8; left -= 8, next += 8, length += 8)
    absorb(loadWord(next), v0, v1, v2, v3);
  for (; left > 0; --left, ++length)
    pending |= uint64_t{*next++} << (8 * (length & 7));
  return *this;
}

Hasher &Hasher::text(std::string_view value) {
  integer(static_cast<int64_t>(value.size()));
  return bytes(value.data(), value.size());
}

Hasher &Hasher::integer(int64_t value) {
  unsigned char little[8];
  for (int i = 0; i < 8; ++i)
    little[i] =
        static_cast<unsigned char>(static_cast<uint64_t>(value) >> (8 * i));
  return bytes(little, 8);
}

Hasher &Hasher::number(double value) {
  return integer(std::bit_cast<int64_t>(value));
}

Hash128 Hasher::finish() const {
  uint64_t a = v0, b = v1, c = v2, d = v3;
  absorb(pending | (length << 56), a, b, c, d);
  c ^= 0xee;
  for (int i = 0; i < 4; ++i)
    sipRound(a, b, c, d);
  Hash128 result;
  result.high = a ^ b ^ c ^ d;
  b ^= 0xdd;
  for (int i = 0; i < 4; ++i)
    sipRound(a, b, c, d);
  result.low = a ^ b ^ c ^ d;
  return result;
}

Hash128 hashBytes(std::string_view bytes) {
  return Hasher().bytes(bytes.data(), bytes.size()).finish();
}

} // namespace tessera::support
