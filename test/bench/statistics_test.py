#===- test/bench/statistics_test.py - Figures by hand ----------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The definitions of bench/analysis/statistics.py on values worked by hand."""

import unittest

import synthetic  # noqa: F401  (finds the package)
from analysis import statistics


class Statistics(unittest.TestCase):
    def test_median(self):
        self.assertEqual(statistics.median([]), 0)
        self.assertEqual(statistics.median([7]), 7)
        self.assertEqual(statistics.median([9, 1, 4]), 4)
        self.assertEqual(statistics.median([9, 1, 4, 2]), 3)

    def test_quantile(self):
        values = list(range(12, 0, -1))
        self.assertEqual(statistics.quantile(values, 0.1), 2)
        self.assertEqual(statistics.quantile(values, 0.9), 11)
        self.assertEqual(statistics.quantile(values, 1), 12)
        self.assertEqual(statistics.quantile([], 0.5), 0)

    def test_noise(self):
        # Distances 0, .01, .02, .5: place floor(.9 * 4) = 3 of the sorted ones.
        self.assertAlmostEqual(statistics.noise_of([1, 0.99, 1.02, 1.5]), 0.5)
        self.assertAlmostEqual(statistics.noise_of([0.7]), 0.3)

    def test_round_medians(self):
        self.assertEqual(statistics.round_medians([[30, 10, 20], [40, 50]], 10),
                         [2, 4.5])

    def test_hash_and_random(self):
        # The published test values of FNV-1a and of SplitMix64 from 0.
        self.assertEqual(statistics.fnv1a(""), 0xCBF29CE484222325)
        self.assertEqual(statistics.fnv1a("foobar"), 0x85944171F73967E8)
        random = statistics.split_mix64(0)
        self.assertEqual(next(random), 0xE220A8397B1DCDAF)
        self.assertEqual(next(random), 0x6E789E6AA1B965F4)

    def test_bootstrap(self):
        # bench/core/statistics.cpp gives the same for these.
        self.assertEqual((0.5, 2), statistics.bootstrap_median(
            [1.5, 0.5, 1.25, 2.0, 0.75], "a/f32/rows=1/native/1/torch"))
        self.assertEqual((0.895, 1.1600000000000001), statistics.bootstrap_median(
            [0.91, 1.02, 0.97, 1.3, 0.88, 1.02], "row/arm"))
        self.assertEqual((3, 3), statistics.bootstrap_median([3, 3, 3], "x"))
        self.assertEqual((0, 0), statistics.bootstrap_median([], "x"))

    def test_geometric_mean(self):
        self.assertAlmostEqual(statistics.geometric_mean([0.5, 2, 8]), 2)
        self.assertIsNone(statistics.geometric_mean([]))

    def test_orders_are_balanced(self):
        for arms in range(1, 14):
            orders = statistics.balanced_orders(arms)
            self.assertEqual(len(orders), arms * (2 if arms % 2 and arms > 1
                                                  else 1))
            self.assertIsNone(statistics.imbalance(orders), arms)
            self.assertIsNone(statistics.imbalance(orders * 2), arms)
        self.assertEqual(statistics.balanced_orders(2), [[0, 1], [1, 0]])
        self.assertEqual(sorted(statistics.balanced_orders(3)),
                         [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0],
                          [2, 0, 1], [2, 1, 0]])

    def test_imbalance(self):
        self.assertIn("no order", statistics.imbalance([]))
        self.assertIn("positions", statistics.imbalance([[0, 1], [0, 1]]))
        self.assertIn("once", statistics.imbalance([[0, 1], [1, 1]]))
        # A Latin square, in which 1 always follows 0.
        self.assertIn("follows", statistics.imbalance(
            [[0, 1, 2], [1, 2, 0], [2, 0, 1]]))


if __name__ == "__main__":
    unittest.main()
