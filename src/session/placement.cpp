//===- session/placement.cpp - Arrays as allocators place them ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/placement.h"

#include <algorithm>
#include <cstring>

namespace tessera::session {

static constexpr size_t page = 4096, step = 1088;

namespace {

struct Piece {
  const char *from;
  size_t size, to;
};

} // namespace

Placement::Placement(const std::vector<Argument> &originals)
    : placed(originals) {
  std::vector<Piece> pieces;
  size_t bytes = page;
  for (const Argument &argument : originals) {
    const auto *view = std::get_if<TensorRef>(&argument);
    if (!view)
      continue;
    std::optional<ByteRange> range = reachableBytes(*view);
    auto *from = static_cast<char *>(view->data) + (range ? range->begin : 0);
    // Arrays that share memory go on sharing it.
    auto shared =
        std::find_if(pieces.begin(), pieces.end(), [&](const Piece &piece) {
          return from >= piece.from && from < piece.from + piece.size;
        });
    if (shared != pieces.end()) {
      pieces.push_back(
          {from, 0, shared->to + static_cast<size_t>(from - shared->from)});
      continue;
    }
    size_t size = range ? static_cast<size_t>(range->end - range->begin) : 0;
    bytes = (bytes + page - 1) / page * page + pieces.size() * step % page;
    pieces.push_back({from, size, bytes});
    bytes += size + page;
  }
  memory.resize(bytes + page);
  size_t misfit = reinterpret_cast<uintptr_t>(memory.data()) % page;
  char *start = memory.data() + (misfit ? page - misfit : 0);
  size_t number = 0;
  for (Argument &argument : placed) {
    auto *view = std::get_if<TensorRef>(&argument);
    if (!view)
      continue;
    const Piece &piece = pieces[number++];
    std::memcpy(start + piece.to, piece.from, piece.size);
    view->data =
        start + piece.to + (static_cast<char *>(view->data) - piece.from);
  }
}

Result<std::vector<Argument>> packedArguments(const Executable &executable,
                                              std::vector<Argument> arguments,
                                              const LaunchOptions &options) {
  for (const PackedParameter &pack : executable.info().packs) {
    const auto &view =
        std::get<ViewParameter>(executable.info().parameters[pack.parameter]);
    Result<Packed> packed = executable.pack(
        view.name, std::get<TensorRef>(arguments[pack.parameter]), options);
    if (!packed)
      return packed.error();
    arguments[pack.parameter] = std::move(*packed);
  }
  return arguments;
}

} // namespace tessera::session
