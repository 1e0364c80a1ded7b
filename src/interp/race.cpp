//===- race.cpp - Detection of conflicting accesses -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/race.h"

namespace tessera::interp {

void RaceDetector::enter(uint32_t region) {
  nodes.push_back({stack.back(), region, static_cast<uint32_t>(stack.size())});
  stack.push_back(static_cast<uint32_t>(nodes.size() - 1));
}

bool RaceDetector::parallel(uint32_t node) const {
  uint32_t child = node;
  while (nodes[node].depth >= stack.size() ||
         stack[nodes[node].depth] != node) {
    child = node;
    node = nodes[node].parent;
  }
  // `node` is the innermost common instance. Its own accesses, and those before
  // a region began, are ordered.
  size_t depth = nodes[node].depth + 1;
  return child != node && depth < stack.size() &&
         nodes[stack[depth]].region == nodes[child].region;
}

std::optional<RaceDetector::Access>
RaceDetector::note(Cell &cell, uint32_t site, bool writes) {
  std::optional<Access> conflict;
  if (cell.writerSite != 0 && parallel(cell.writerNode))
    conflict = Access{cell.writerNode, cell.writerSite, true};
  bool readerParallel = cell.readerSite != 0 && parallel(cell.readerNode);
  if (writes) {
    if (!conflict && readerParallel)
      conflict = Access{cell.readerNode, cell.readerSite, false};
    cell.writerNode = stack.back();
    cell.writerSite = site;
  } else if (!readerParallel) {
    cell.readerNode = stack.back();
    cell.readerSite = site;
  }
  return conflict;
}

} // namespace tessera::interp
