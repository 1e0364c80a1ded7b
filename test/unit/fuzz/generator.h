//===- fuzz/generator.h - Random Tile programs -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs are made from the results backwards: a store asks for a tile of some
// type, which is an op of further tiles, down to loads, coordinates and
// constants. Programs are valid and free of races by construction:
//
//  - Inside parallel regions a view that is written somewhere has one axis for
//    each coordinate in scope, indexed by it in every access.
//  - A store's subscripts are injective.
//  - Across grids everything goes: they run in order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_FUZZ_GENERATOR_H
#define TESSERA_TEST_UNIT_FUZZ_GENERATOR_H

#include "random_program.h"

#include <functional>

namespace tessera::fuzz {

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed) { program.seed = seed; }
  RandomProgram run();

private:
  struct Coordinate {
    std::string name;
    std::string dim;
    bool isParallel = false;
  };
  /// What is visible at the point of generation.
  struct Scope {
    std::vector<Value> values;
    std::vector<Coordinate> coordinates;
    Dims tileDims;
  };

  // generator.cpp: structure
  void declareDims();
  void grid();
  void statements(int count, int depth);
  void statement(int depth);
  void serialLoop(int depth);
  void branch(int depth);
  void nestedParallel(int depth);
  void dataDim();
  void shareMemory();
  /// Runs `fill` with `block` as the place of insertion and a scope of its own.
  Block inRegion(const std::function<void()> &fill);

  // generator_memory.cpp: views
  bool store(int depth);
  bool scatter(int depth);
  Value load(const std::string &element, const Dims &dims, int depth);
  /// A view for an access of `dims`; nullptr when none fits.
  int64_t viewFor(const std::string &element, const Dims &dims, bool writable);
  bool isActive(const ViewSpec &view) const;
  bool reusable(const ViewSpec &view, const Dims &dims, bool forWrite) const;
  /// "[...]" and " at(...)" of an access; `mustInject` for stores.
  std::string subscripts(const ViewSpec &view, const Dims &dims,
                         bool mustInject, int depth);
  Value indexScalar(int64_t extent, int depth);
  DType storageFor(const std::string &element);

  // generator_ops.cpp, generator_reductions.cpp: values
  Value get(const std::string &element, const Dims &dims, int depth);
  Value leaf(const std::string &element, const Dims &dims);
  bool tryOp(const std::string &element, const Dims &dims, int depth,
             Value &result);
  Value elementwise(const std::string &element, const Dims &dims, int depth);
  Value floatOp(const std::string &element, const Dims &dims, int depth);
  Value intOp(const std::string &element, const Dims &dims, int depth);
  Value boolOp(const Dims &dims, int depth);
  Value cast(const std::string &element, const Dims &dims, int depth);
  bool broadcast(const std::string &element, const Dims &dims, int depth,
                 Value &result);
  bool transpose(const std::string &element, const Dims &dims, int depth,
                 Value &result);
  bool reshape(const std::string &element, const Dims &dims, int depth,
               Value &result);
  bool gather(const std::string &element, const Dims &dims, int depth,
              Value &result);
  /// A sum over values that depend on an earlier reduction of them, as laws of
  /// reductions know it or nearly so.
  Value centredSum(const std::string &element, const Value &from,
                   const Dims &over, const Dims &dims);
  bool reduce(const std::string &element, const Dims &dims, int depth,
              Value &result);
  bool scan(const std::string &element, const Dims &dims, int depth,
            Value &result);
  bool argReduce(const Dims &dims, int depth, Value &result);
  bool sort(const std::string &element, const Dims &dims, int depth,
            Value &result);
  bool contract(const std::string &element, const Dims &dims, int depth,
                Value &result);
  bool fold(const std::string &element, const Dims &dims, int depth,
            Value &result);
  std::string namedCombiner(const std::string &element);
  std::string order();
  /// A region over scalars or tiles that combines `types`; lawful: associative
  /// and commutative with the identities that are returned.
  struct Combine {
    std::string header;
    Block body;
    std::vector<Value> identities;
  };
  Combine combineRegion(const std::vector<Value> &types, bool lawful);
  Value constant(const std::string &element, const std::string &literal);
  Value constantTile(const std::string &element, const Dims &dims);
  std::string literal(const std::string &element);

  Value emit(std::string head, const std::string &element, const Dims &dims);
  std::string fresh(const char *prefix) {
    return prefix + std::to_string(counter++);
  }
  Dims randomDims();
  std::string randomElement();
  int64_t elements(const Dims &dims) const;
  /// Dimensions of the scope that are not in `dims` and still fit in a tile.
  Dims furtherDims(const Dims &dims) const;
  bool isWritten(const std::string &view) const { return written.count(view); }

  Random random;
  RandomProgram program;
  Scope scope;
  Block *block = nullptr;
  std::string mainElement = "f32";
  Contents contents = Contents::Tame;
  int counter = 0;
  int budget = 0;
  Dims parallelDims, serialDims, allTileDims;
  /// Views that the present grid may write; other writable views it only reads.
  std::set<std::string> written;
  bool inGrid = false;
};

} // namespace tessera::fuzz

#endif // TESSERA_TEST_UNIT_FUZZ_GENERATOR_H
