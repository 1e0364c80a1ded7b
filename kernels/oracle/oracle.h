//===- kernels/oracle/oracle.h - What each operator should give -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library operators written a second time, independently of their kernels:
// on long double, from the mathematical formula (exact maxima, two-pass
// statistics), with the radius that a legal execution may be off. An oracle
// reads the inputs as they are stored and rounds its floating results to the
// storage type; docs/semantics.md says what happens at the edges.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_ORACLE_H
#define TESSERA_KERNELS_ORACLE_ORACLE_H

#include "support/bounded.h"
#include "tessera/error.h"
#include "tessera/pool.h"
#include "tessera/tensor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::oracle {

/// How sums of products are made. The choice is for tests: the results are the
/// same up to roundings of the radii.
enum class ProductLoops : uint8_t {
  /// The widest vectors of this host.
  Widest,
  /// Vectors of 4.
  Narrow,
  /// Every product on its own, on long double.
  OneByOne,
};

struct OracleArgs {
  /// By parameter name; an optional input is present or not.
  std::map<std::string, TensorRef, std::less<>> inputs;
  /// By parameter name; flags are 0 or 1. Absent ones take the operator's
  /// default.
  std::map<std::string, double, std::less<>> scalars;
  /// Extents by dimension; needed where no input has the dimension.
  std::map<std::string, int64_t, std::less<>> dims;
  /// The storage type of the floating inputs and outputs.
  DType dtype = DType::F32;
  /// How the execution under test may compute.
  Arithmetic arithmetic = Arithmetic::forTier(DType::F32);
  /// Where contractions may run; null for the calling thread alone.
  TaskPool *pool = nullptr;
  /// 0 means all of the pool.
  int threads = 0;
  ProductLoops products = ProductLoops::Widest;
};

/// One output in row-major order: `values` for a floating type, `integers` for
/// I64. The other vector is empty.
struct OracleOutput {
  DType dtype = DType::F32;
  std::vector<int64_t> extents;
  std::vector<Bounded> values;
  std::vector<int64_t> integers;
};

/// By output name. Optional outputs are always there.
using OracleResult = std::map<std::string, OracleOutput, std::less<>>;

/// Fails (family Launch) where an input is missing or has an unexpected rank,
/// type or extent.
using OracleFunction = Result<OracleResult> (*)(const OracleArgs &args);

/// The oracle of a library operator; nullptr for an unknown name.
OracleFunction findOracle(std::string_view op);

/// The operators that have an oracle, in alphabetical order.
std::vector<std::string_view> oracleNames();

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_ORACLE_H
