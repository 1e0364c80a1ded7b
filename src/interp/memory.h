//===- interp/memory.h - Views as the interpreter sees them -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes single elements of the arguments. In Strict mode the
// caller's memory is written, and a journal puts it back if the run fails. In
// Oracle mode nothing is written; what was stored is kept beside the memory,
// where later loads through any view of the same bytes find it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_MEMORY_H
#define TESSERA_INTERP_MEMORY_H

#include "interp/race.h"
#include "interp/tile_value.h"
#include "tessera/tensor.h"

#include <string>
#include <vector>

namespace tessera::interp {

/// The kind in which elements of a storage type are computed.
Kind computeKind(DType type);

struct View {
  std::string name;
  /// Position of the parameter.
  unsigned argument = 0;
  bool writable = false;
  TensorRef tensor;

  /// Views that may share bytes have one group, whose cells are numbered from
  /// `base`, `granule` bytes each.
  unsigned group = 0;
  /// This view's data address relative to the group's first byte.
  int64_t base = 0;
};

class Memory {
public:
  explicit Memory(Context &context) : context(context) {}

  /// Takes the views, which have been checked; false after an error.
  bool bind(std::vector<View> views);

  const View &view(unsigned index) const { return views[index]; }
  size_t size() const { return views.size(); }

  /// Element `offset` (in elements from the view's data) into element `i` of
  /// `tile`, widened.
  void load(unsigned view, int64_t offset, Tile &tile, int64_t i);

  /// Element `i` of `tile` to element `offset`, narrowed once. `certain` is
  /// false when the bounds leave open whether the store happens.
  bool store(unsigned view, int64_t offset, const Tile &tile, int64_t i,
             bool certain = true);

  /// Puts back what the run wrote.
  void rollBack();

  /// The race cells that an element covers.
  int64_t cellsPerElement(unsigned view) const;
  RaceDetector::Cell &raceCell(unsigned view, int64_t offset, int64_t k);

  /// Oracle mode: the element as the run left it.
  Bounded finalElement(unsigned view, int64_t offset);

private:
  struct Shadow {
    Bounded bounded;
    int64_t integer = 0;
    bool unknown = false;
    bool written = false;
  };
  struct Group {
    int64_t granule = 1;
    PagedMap<Shadow> shadows;
    PagedMap<RaceDetector::Cell> races;
  };
  struct Undo {
    char *address;
    uint64_t bytes;
    uint8_t size;
  };

  char *address(const View &view, int64_t offset) const;
  bool storeShadow(const View &view, int64_t offset, const Tile &tile,
                   int64_t i, bool certain);

  Context &context;
  std::vector<View> views;
  std::vector<Group> groups;
  std::vector<Undo> journal;
};

} // namespace tessera::interp

#endif // TESSERA_INTERP_MEMORY_H
