//===- vendor.cpp - Libraries that compute products -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/vendor.h"

#include <fmt/format.h>

namespace tessera {

std::string_view name(Vendor vendor) {
  switch (vendor) {
  case Vendor::None:
    return "none";
  case Vendor::Cblas:
    return "cblas";
  case Vendor::OneDnn:
    return "onednn";
  }
  return "";
}

Result<Vendor> parseVendor(std::string_view text) {
  for (Vendor vendor : {Vendor::None, Vendor::Cblas, Vendor::OneDnn})
    if (text == name(vendor))
      return vendor;
  return Error{ErrorFamily::Usage,
               "usage.vendor",
               fmt::format("found '{}', expected none, cblas or onednn", text),
               {}};
}

} // namespace tessera
