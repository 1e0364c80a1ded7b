//===- bench/core/order.h - The order in which arms take turns --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_ORDER_H
#define TESSERA_BENCH_CORE_ORDER_H

#include <vector>

namespace tessera::bench {

/// A Williams design for `arms` arms: a list of orders in which every arm
/// stands in every position equally often and follows every other arm equally
/// often. Two arms: AB, BA. Three: all six orders. An even number n has n
/// orders, an odd one 2n (one arm has one).
std::vector<std::vector<int>> balancedOrders(int arms);

/// The design repeated until there are at least `rounds` orders.
std::vector<std::vector<int>> roundOrders(int arms, int rounds);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_ORDER_H
