//===- plan_product.h - Kernels that are one matrix product -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Proves that a whole kernel is a product of matrices that a library offers:
// every element of one output is the sum over one dimension of products of
// elements of two inputs, whose positions are those that the library reads. The
// proof goes by what is computed from what and by the values of subscripts,
// never by names.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_PRODUCT_H
#define TESSERA_PLAN_PLAN_PRODUCT_H

#include "plan/plan.h"

namespace tessera {

/// The call that does what the specialized kernel says. Where it cannot be
/// proved to, an Unsupported error (vendor.not_a_product) names the first thing
/// that does not fit.
Result<VendorCall> proveProduct(const KernelAnalysis &analysis, Vendor vendor);

} // namespace tessera

#endif // TESSERA_PLAN_PLAN_PRODUCT_H
