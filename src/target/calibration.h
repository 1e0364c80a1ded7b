//===- calibration.h - The file of what was measured here -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tessera calibrate` measures a processor and keeps the result per user. The
// file is JSON: schema and version, the processor, the time, figures with their
// units, and a hash over all of it. One that is damaged, edited, implausible,
// of another version or of another processor is never used.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_CALIBRATION_H
#define TESSERA_TARGET_CALIBRATION_H

#include "target/machine.h"

#include <optional>

namespace tessera {

/// Raised when a figure changes its meaning, comes or goes.
inline constexpr int calibrationVersion = 6;

struct Calibration {
  Processor processor;
  /// When: "2026-11-30T17:00:00Z".
  std::string measured;
  Machine machine;
};

/// This user's file: what TESSERA_CALIBRATION names, else
/// tessera/calibration.json in $XDG_CONFIG_HOME or ~/.config. Empty where that
/// variable is "off", or there is no home.
std::string calibrationPath();

/// The content of a file.
std::string calibrationText(const Calibration &calibration);

/// Writes a file at once or not at all, and the last folder of its path where
/// that is missing.
Result<void> writeCalibration(const std::string &path,
                              const Calibration &calibration);

/// What the file holds for `processor`; nothing when there is no file. An error
/// says what is wrong with it, where it is and what to do.
Result<std::optional<Calibration>> readCalibration(const std::string &path,
                                                   const Processor &processor);

} // namespace tessera

#endif // TESSERA_TARGET_CALIBRATION_H
