//===- pins.cpp - The parts of a plan that the author fixed ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"
#include "support/json_scan.h"

#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>

using namespace mlir;

namespace tessera {

/// The value of an integer that 64 bits hold; truth values are none.
static std::optional<int64_t> wholeOf(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  if (!number || number.getType().isInteger(1) ||
      number.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return number.getValue().getSExtValue();
}

/// The attribute as it is written, its type included.
static std::string shown(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return support::excerpt(text);
}

Result<Pins> readPins(tile::KernelOp kernel, const Target &target) {
  Pins pins;
  auto schedule = kernel->getAttrOfType<DictionaryAttr>("tile.schedule");
  if (!schedule)
    return pins;
  auto refuse = [&](StringRef pin, const Twine &why) {
    SourcePosition where;
    if (auto loc = dyn_cast<FileLineColLoc>(kernel.getLoc()))
      where = {loc.getFilename().str(), loc.getLine(), loc.getColumn()};
    // Authors of C++ know these by their fields in Schedule.
    StringRef field = pin == "vector_axis"  ? " (vectorAxis in C++)"
                      : pin == "tile_sizes" ? " (tileSizes in C++)"
                                            : "";
    return Error{
        ErrorFamily::Unsupported, "unsupported.pin",
        ("schedule pin '" + pin + "'" + field + " cannot be honoured: " + why)
            .str(),
        where};
  };
  for (NamedAttribute entry : schedule) {
    StringRef name = entry.getName().getValue();
    const bool isText = name == "vector_axis" || name == "tail";
    if (!isText && name != "lanes" && name != "unroll" && name != "partials")
      return refuse(name, "the CPU back end does not decide it, but "
                          "vector_axis, lanes, unroll (or partials) and tail");
    auto text = dyn_cast<StringAttr>(entry.getValue());
    const std::optional<int64_t> number = wholeOf(entry.getValue());
    if (isText ? !text : !number)
      return refuse(
          name, "found " + shown(entry.getValue()) + ", expected " +
                    (isText ? "a string, such as " : "an integer, such as ") +
                    (name == "tail"          ? "\"mask\""
                     : name == "vector_axis" ? "\"cols\""
                                             : "16 : i64"));
    if (name == "vector_axis") {
      if (!tile::findDim(kernel, text.getValue()))
        return refuse(name,
                      "the kernel has no dimension '" + text.getValue() + "'");
      pins.vectorAxis = text.getValue().str();
    } else if (name == "lanes") {
      pins.lanes = *number;
      bool isPowerOfTwo =
          pins.lanes > 0 && (pins.lanes & (pins.lanes - 1)) == 0;
      if (!isPowerOfTwo || pins.lanes < 2 || pins.lanes > 64)
        return refuse(name, "found " + Twine(pins.lanes) +
                                ", expected a power of two from 2 to 64");
      if (target.hasScalef && pins.lanes < target.lanes32())
        return refuse(name, "found " + Twine(pins.lanes) +
                                ", expected at least " +
                                Twine(target.lanes32()) + " on " + target.name);
    } else if (name == "unroll" || name == "partials") {
      int64_t count = *number;
      if (count < 1 || count > 16)
        return refuse(name, "found " + Twine(count) + ", expected 1 to 16");
      if (pins.unroll != 0 && pins.unroll != count)
        return refuse(name, "unroll and partials are one decision on this "
                            "target and must agree");
      pins.unroll = count;
    } else {
      if (text.getValue() != "mask" && text.getValue() != "scalar" &&
          text.getValue() != "overlap")
        return refuse(name, "found '" + text.getValue() +
                                "', expected 'mask', 'scalar' or 'overlap'");
      pins.tail = text.getValue().str();
    }
  }
  return pins;
}

} // namespace tessera
