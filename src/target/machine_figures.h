//===- machine_figures.h - Every figure of a description --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The figures of a Machine by name, with their units and the range outside of
// which one is a mistake. Files, reports and tests go through these lists.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_MACHINE_FIGURES_H
#define TESSERA_TARGET_MACHINE_FIGURES_H

#include "target/machine.h"

#include <span>
#include <string_view>

namespace tessera {

template <typename Owner> struct Figure {
  std::string_view name;
  std::string_view unit;
  double Owner::*value;
  double low;
  double high;

  /// NaN is not.
  bool isPlausible(double number) const {
    return number >= low && number <= high;
  }
};

std::span<const Figure<MemoryLevel>> levelFigures();
std::span<const Figure<CoreCosts>> coreFigures();
std::span<const Figure<Machine>> machineFigures();

/// The names of the levels and of the widths, as figures' owners.
constexpr std::array<std::string_view, 4> levelNames = {"L1", "L2", "L3",
                                                        "memory"};
constexpr std::array<std::string_view, 3> widthNames = {"128", "256", "512"};

/// What is implausible in a description, named with its range; empty when
/// nothing is.
std::string implausibleFigure(const Machine &machine);

/// 32 hexadecimal digits over everything that costs depend on.
std::string contentHash(const Machine &machine);

} // namespace tessera

#endif // TESSERA_TARGET_MACHINE_FIGURES_H
