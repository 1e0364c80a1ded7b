//===- support/vendor.h - Libraries that compute products -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_VENDOR_H
#define TESSERA_SUPPORT_VENDOR_H

#include "tessera/error.h"

#include <string_view>

namespace tessera {

/// The interface of a library that a kernel may be handed to as a whole.
enum class Vendor {
  None,
  /// OpenBLAS, BLIS or another library with the C interface of BLAS.
  Cblas,
  OneDnn,
};

/// "none", "cblas", "onednn".
std::string_view name(Vendor vendor);

/// Fails with a Usage error that lists the names.
Result<Vendor> parseVendor(std::string_view text);

} // namespace tessera

#endif // TESSERA_SUPPORT_VENDOR_H
