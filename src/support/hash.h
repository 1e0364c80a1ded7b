//===- support/hash.h - A stable 128-bit content hash -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SipHash-2-4 with a 128-bit result and a fixed key: the same input gives the
// same hash in every run, on every machine and in every build. It names content
// (cache keys, stored results); it is no protection against someone who looks
// for collisions on purpose.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_HASH_H
#define TESSERA_SUPPORT_HASH_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::support {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Hash128 &) const = default;

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
};

/// Hashes a sequence of fields. text() and number() are self-delimiting, so
/// ("ab", "c") and ("a", "bc") differ; bytes() adds raw bytes and nothing else.
class Hasher {
public:
  /// The default key is Tessera's; another one gives an unrelated function.
  explicit Hasher(uint64_t key0 = 0x7465737365726121,
                  uint64_t key1 = 0x74696c6520686173);

  Hasher &bytes(const void *data, size_t size);
  Hasher &text(std::string_view value);
  Hasher &integer(int64_t value);
  /// By its bits: -0.0 and 0.0 differ, and NaNs by their payload.
  Hasher &number(double value);

  /// The hash of everything added so far; more may be added afterwards.
  Hash128 finish() const;

private:
  uint64_t v0, v1, v2, v3;
  /// Bytes not yet absorbed, at the low end, and how many bytes came in all.
  uint64_t pending = 0;
  uint64_t length = 0;
};

/// The hash of one string of bytes.
Hash128 hashBytes(std::string_view bytes);

} // namespace tessera::support

#endif // TESSERA_SUPPORT_HASH_H
