//===- race.cpp - Detection of conflicting accesses -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/race.h"

namespace tessera::interp {

uint32_t RaceDetector::beginRegion(Names dims,
                                   llvm::ArrayRef<int64_t> extents) {
  regions.push_back({std::move(dims), extents.vec()});
  return static_cast<uint32_t>(regions.size());
}

void RaceDetector::enter(uint32_t region, int64_t instance) {
  nodes.push_back(
      {stack.back(), region, static_cast<uint32_t>(stack.size()), instance});
  stack.push_back(static_cast<uint32_t>(nodes.size() - 1));
}

std::optional<uint32_t> RaceDetector::parting(uint32_t node) const {
  uint32_t child = node;
  while (nodes[node].depth >= stack.size() ||
         stack[nodes[node].depth] != node) {
    child = node;
    node = nodes[node].parent;
  }
  if (child == node)
    return std::nullopt;
  return child;
}

bool RaceDetector::parallel(uint32_t node) const {
  // The parent is the innermost common instance. Its own accesses, and those
  // before a region began, are ordered.
  std::optional<uint32_t> child = parting(node);
  if (!child)
    return false;
  size_t depth = nodes[*child].depth;
  return depth < stack.size() &&
         nodes[stack[depth]].region == nodes[*child].region;
}

std::string RaceDetector::describe(uint32_t node) const {
  const Region &region = regions[nodes[node].region - 1];
  int64_t rest = nodes[node].instance;
  std::string text;
  for (size_t axis = region.extents.size(); axis-- > 0;) {
    text = (*region.dims)[axis] + "=" +
           std::to_string(rest % region.extents[axis]) +
           (text.empty() ? "" : ", ") + text;
    rest /= region.extents[axis];
  }
  return text;
}

std::pair<std::string, std::string>
RaceDetector::instances(const Access &earlier) const {
  std::optional<uint32_t> child = parting(earlier.node);
  if (!child)
    return {};
  return {describe(*child), describe(stack[nodes[*child].depth])};
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
