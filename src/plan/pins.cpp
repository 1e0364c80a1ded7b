//===- pins.cpp - The parts of a plan that the author fixed ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

using namespace mlir;

namespace tessera {

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
    auto text = dyn_cast<StringAttr>(entry.getValue());
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    if (name == "vector_axis" && text) {
      if (!tile::findDim(kernel, text.getValue()))
        return refuse(name,
                      "the kernel has no dimension '" + text.getValue() + "'");
      pins.vectorAxis = text.getValue().str();
    } else if (name == "lanes" && number) {
      pins.lanes = number.getInt();
      bool isPowerOfTwo =
          pins.lanes > 0 && (pins.lanes & (pins.lanes - 1)) == 0;
      if (!isPowerOfTwo || pins.lanes < 2 || pins.lanes > 64)
        return refuse(name, "found " + Twine(pins.lanes) +
                                ", expected a power of two from 2 to 64");
      if (target.hasScalef && pins.lanes < target.lanes32())
        return refuse(name, "found " + Twine(pins.lanes) +
                                ", expected at least " +
                                Twine(target.lanes32()) + " on " + target.name);
    } else if ((name == "unroll" || name == "partials") && number) {
      int64_t count = number.getInt();
      if (count < 1 || count > 16)
        return refuse(name, "found " + Twine(count) + ", expected 1 to 16");
      if (pins.unroll != 0 && pins.unroll != count)
        return refuse(name, "unroll and partials are one decision on this "
                            "target and must agree");
      pins.unroll = count;
    } else if (name == "tail" && text) {
      if (text.getValue() != "mask" && text.getValue() != "peel" &&
          text.getValue() != "overlap")
        return refuse(name, "found '" + text.getValue() +
                                "', expected 'mask', 'peel' or 'overlap'");
      pins.tail = text.getValue().str();
    } else {
      return refuse(name, "the CPU back end does not decide it");
    }
  }
  return pins;
}

} // namespace tessera
