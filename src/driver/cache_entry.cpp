//===- cache_entry.cpp - Executables as files -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One list of fields serves both directions: `visit` gives every field of a
// value to a Writer or to a Reader.
//
//===----------------------------------------------------------------------===//

#include "driver/cache_entry.h"

#include "support/hash.h"

#include "fmt/format.h"

#include <bit>
#include <concepts>
#include <type_traits>

namespace tessera {

namespace {

constexpr std::string_view mark = "TESSERAX";
constexpr size_t headBytes = 8 + 8 + 8 + 16;

template <typename T> struct IsVector : std::false_type {};
template <typename T> struct IsVector<std::vector<T>> : std::true_type {};
template <typename T> struct IsPair : std::false_type {};
template <typename A, typename B>
struct IsPair<std::pair<A, B>> : std::true_type {};

class Writer {
public:
  std::string bytes;

  template <typename... Ts> void operator()(Ts &...fields) {
    (add(fields), ...);
  }
  void addInteger(uint64_t value) {
    for (int i = 0; i < 8; ++i)
      bytes += static_cast<char>(value >> (8 * i));
  }

private:
  template <typename T> void add(const T &field);
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : left(bytes) {}

  bool isGood = true;
  std::string_view left;

  template <typename... Ts> void operator()(Ts &...fields) {
    (add(fields), ...);
  }
  uint64_t integer() {
    uint64_t value = 0;
    if (left.size() < 8) {
      isGood = false;
      return 0;
    }
    for (int i = 0; i < 8; ++i)
      value |= uint64_t{static_cast<unsigned char>(left[size_t(i)])} << (8 * i);
    left.remove_prefix(8);
    return value;
  }

private:
  template <typename T> void add(T &field);
};

//===----------------------------------------------------------------------===//
// The fields
//===----------------------------------------------------------------------===//

template <typename Visitor> void visit(Visitor &to, CacheKey::Part &part) {
  to(part.name, part.value);
}
template <typename Visitor> void visit(Visitor &to, SummationPlan &plan) {
  to(plan.partials, plan.extraDepth, plan.shifted, plan.aboutReference,
     plan.flushesContractions);
}
template <typename Visitor> void visit(Visitor &to, WorkEstimate &work) {
  to(work.bytesRead, work.bytesWritten, work.flops);
}
template <typename Visitor> void visit(Visitor &to, Stage &stage) {
  to(stage.symbol, stage.programs, stage.scratchBytes,
     stage.nanosecondsPerProgram, stage.workspaceBytes,
     stage.workspaceZeroBytes);
}
template <typename Visitor> void visit(Visitor &to, PackedParameter &pack) {
  to(pack.parameter, pack.stage, pack.panels, pack.panelBytes, pack.tag);
}
template <typename Visitor> void visit(Visitor &to, Error &error) {
  to(error.family, error.code, error.message, error.where.file,
     error.where.line, error.where.column);
}
template <typename Visitor> void visit(Visitor &to, CachedExecutable &entry) {
  to(entry.key.parts, entry.extents, entry.tunedKey, entry.tunedPlan,
     entry.chosen, entry.chosenIr, entry.planSource, entry.planSummary,
     entry.summation, entry.work, entry.stages, entry.packs, entry.checks,
     entry.report, entry.object);
}

//===----------------------------------------------------------------------===//
// Both directions
//===----------------------------------------------------------------------===//

template <typename T> void Writer::add(const T &field) {
  if constexpr (std::is_enum_v<T> || std::integral<T>) {
    addInteger(static_cast<uint64_t>(field));
  } else if constexpr (std::is_same_v<T, double>) {
    addInteger(std::bit_cast<uint64_t>(field));
  } else if constexpr (std::is_same_v<T, std::string>) {
    addInteger(field.size());
    bytes += field;
  } else if constexpr (IsVector<T>::value) {
    addInteger(field.size());
    for (const auto &item : field)
      add(item);
  } else if constexpr (IsPair<T>::value) {
    add(field.first);
    add(field.second);
  } else {
    // A visit takes fields that a Reader may change; this one changes nothing.
    visit(*this, const_cast<T &>(field));
  }
}

template <typename T> void Reader::add(T &field) {
  if constexpr (std::is_same_v<T, double>) {
    field = std::bit_cast<double>(integer());
  } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
    field = static_cast<T>(integer());
  } else if constexpr (std::is_same_v<T, std::string>) {
    const uint64_t size = integer();
    isGood &= size <= left.size();
    if (!isGood)
      return;
    field = left.substr(0, size);
    left.remove_prefix(size);
  } else if constexpr (IsVector<T>::value) {
    // Every item takes at least eight bytes.
    const uint64_t size = integer();
    isGood &= size <= left.size() / 8;
    for (uint64_t i = 0; isGood && i < size; ++i)
      add(field.emplace_back());
  } else if constexpr (IsPair<T>::value) {
    add(field.first);
    add(field.second);
  } else {
    visit(*this, field);
  }
}

Error damaged(std::string what) {
  return {ErrorFamily::Internal, "cache.damaged", std::move(what), {}};
}

} // namespace

std::string encodeEntry(const CachedExecutable &entry) {
  Writer content;
  content(entry);
  const support::Hash128 hash = support::hashBytes(content.bytes);
  Writer file;
  file.bytes = mark;
  file.addInteger(cacheEntryVersion);
  file.addInteger(content.bytes.size());
  file.addInteger(hash.high);
  file.addInteger(hash.low);
  return file.bytes + content.bytes;
}

Result<CachedExecutable> decodeEntry(std::string_view bytes) {
  if (bytes.size() < headBytes || !bytes.starts_with(mark))
    return damaged("found no executable of Tessera's");
  Reader head(bytes.substr(mark.size()));
  const uint64_t version = head.integer(), size = head.integer();
  support::Hash128 hash;
  hash.high = head.integer();
  hash.low = head.integer();
  if (version != cacheEntryVersion)
    return damaged(fmt::format("found version {} of its form, expected {}",
                               version, cacheEntryVersion));
  if (size != head.left.size())
    return damaged(fmt::format("found {} bytes of content, expected {}",
                               head.left.size(), size));
  if (support::hashBytes(head.left) != hash)
    return damaged("found content that is not what its hash says");
  Reader reader(head.left);
  CachedExecutable entry;
  reader(entry);
  if (!reader.isGood || !reader.left.empty())
    return damaged("found content of another form");
  return entry;
}

} // namespace tessera
