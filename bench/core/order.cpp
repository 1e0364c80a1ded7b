//===- bench/core/order.cpp - The order in which arms take turns ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/order.h"

#include <algorithm>

namespace tessera::bench {

std::vector<std::vector<int>> balancedOrders(int arms) {
  // The first order goes 0, 1, n-1, 2, n-2, ...: its neighbours differ by every
  // amount once. Adding the same number to all gives the others.
  std::vector<int> first(arms);
  for (int i = 0; i < arms; ++i)
    first[i] = i % 2 ? (i + 1) / 2 : (arms - i / 2) % arms;
  std::vector<std::vector<int>> orders;
  for (int shift = 0; shift < arms; ++shift) {
    std::vector<int> order(first);
    for (int &arm : order)
      arm = (arm + shift) % arms;
    orders.push_back(std::move(order));
  }
  // With an odd number each order needs its mirror image too.
  if (arms % 2 && arms > 1)
    for (int shift = 0; shift < arms; ++shift)
      orders.emplace_back(orders[shift].rbegin(), orders[shift].rend());
  return orders;
}

std::vector<std::vector<int>> roundOrders(int arms, int rounds) {
  std::vector<std::vector<int>> design = balancedOrders(arms), result;
  while (!design.empty() && static_cast<int>(result.size()) < rounds)
    result.insert(result.end(), design.begin(), design.end());
  return result;
}

} // namespace tessera::bench
