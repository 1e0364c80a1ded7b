#===- entries.py - Compiled entries, called from the one timer ----------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Problems for compiled functions that take only pointers."""

import ctypes

from python.problem import Problem


class Entries(Problem):
    """Calls (function address, argument addresses) in their order, from
    libtessera_bench_timer.so. `keep` lives as long as the problem."""

    def __init__(self, timer, calls, keep):
        super().__init__()
        self.timer, self.keep = timer, keep
        self.bound = []
        for function, arguments in calls:
            array = (ctypes.c_void_p * len(arguments))(*arguments)
            handle = timer.tessera_bench_bind(function, array, len(arguments))
            if not handle:
                raise RuntimeError(f"an entry has {len(arguments)} arguments")
            self.bound.append(handle)
        if len(self.bound) == 1:
            self.native = (address(timer.tessera_bench_run_bound),
                           self.bound[0])
        else:
            self.list = (ctypes.c_void_p * (len(calls) + 1))(*self.bound, None)
            self.native = (address(timer.tessera_bench_run_all),
                           ctypes.addressof(self.list))

    def release(self):
        for handle in self.bound:
            self.timer.tessera_bench_unbind(handle)
        self.bound = []


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value
