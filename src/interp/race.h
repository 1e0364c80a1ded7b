//===- interp/race.h - Detection of conflicting accesses --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter runs the instances of a parallel region one after another.
// Two accesses may overlap in time exactly if, where the paths that lead to
// them part, they are in different instances of one execution of one region.
// Per memory cell one writer and one reader are kept: by the argument of
// Feng and Leiserson's SP-bags, a conflict on a cell is found if there is one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_RACE_H
#define TESSERA_INTERP_RACE_H

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::interp {

/// A sparse array of T whose untouched elements are T().
template <typename T> class PagedMap {
public:
  T &operator[](int64_t index) {
    uint64_t page = static_cast<uint64_t>(index) / pageSize;
    if (page != lastPage || !last) {
      auto &entry = pages[page];
      if (!entry)
        entry = std::make_unique<Page>();
      last = entry.get();
      lastPage = page;
    }
    return (*last)[static_cast<uint64_t>(index) % pageSize];
  }
  /// Null when the page of `index` was never touched.
  T *find(int64_t index) {
    uint64_t page = static_cast<uint64_t>(index) / pageSize;
    auto entry = pages.find(page);
    return entry == pages.end()
               ? nullptr
               : &(*entry->second)[static_cast<uint64_t>(index) % pageSize];
  }

private:
  static constexpr uint64_t pageSize = 256;
  using Page = std::array<T, pageSize>;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  uint64_t lastPage = 0;
  Page *last = nullptr;
};

class RaceDetector {
public:
  RaceDetector() : nodes(1) { stack.push_back(0); }

  /// A new execution of a parallel region; its instances are entered with the
  /// number returned.
  using Names = std::shared_ptr<const std::vector<std::string>>;
  uint32_t beginRegion(Names dims, llvm::ArrayRef<int64_t> extents);
  /// Enters an instance, given by its number in row-major order.
  void enter(uint32_t region, int64_t instance);
  void leave() { stack.pop_back(); }

  struct Access {
    uint32_t node = 0;
    /// 1-based; 0 for none.
    uint32_t site = 0;
    bool writes = false;
  };
  struct Cell {
    uint32_t writerNode = 0, writerSite = 0;
    uint32_t readerNode = 0, readerSite = 0;
  };

  /// Notes an access to `cell` by the running instance and returns the earlier
  /// access that it conflicts with.
  std::optional<Access> note(Cell &cell, uint32_t site, bool writes);

  /// Where the instance of an earlier access and the running one part: the
  /// instance of each, "row=3, col=0".
  std::pair<std::string, std::string> instances(const Access &earlier) const;

private:
  struct Node {
    uint32_t parent = 0;
    uint32_t region = 0;
    uint32_t depth = 0;
    int64_t instance = 0;
  };
  struct Region {
    Names dims;
    std::vector<int64_t> extents;
  };

public:
  static constexpr int64_t bytesPerInstance = sizeof(Node) + sizeof(Region);

private:
  /// The last node on the path to `node` that the running instance is not in;
  /// nothing if there is none.
  std::optional<uint32_t> parting(uint32_t node) const;
  std::string describe(uint32_t node) const;

  /// True when an access of `node` may overlap in time with the running
  /// instance.
  bool parallel(uint32_t node) const;

  std::vector<Node> nodes;
  /// The running instance and those around it, outermost first.
  std::vector<uint32_t> stack;
  std::vector<Region> regions;
};

} // namespace tessera::interp

#endif // TESSERA_INTERP_RACE_H
