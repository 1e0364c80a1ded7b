#!/usr/bin/env python3
#===- test/bench/run.py - Runs the tests of the benchmark's Python ----------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Runs every *_test.py of this folder, or those named, and prints in GoogleTest's
form, which scripts/run_tests.py follows. Exit status 0 when all passed."""

import os
import pathlib
import sys
import traceback
import unittest

HERE = pathlib.Path(__file__).resolve().parent
# What the user calibrated is none of the tests' business.
os.environ["TESSERA_CALIBRATION"] = "off"
os.environ["TESSERA_CACHE_DIR"] = "off"


class Lines(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.failed = False
        print(f"[ RUN      ] {test.id()}", flush=True)

    def stopTest(self, test):
        if self.failed:
            print(f"[  FAILED  ] {test.id()}", flush=True)
        super().stopTest(test)

    def fail(self, error):
        self.failed = True
        # A compared page or document would drown the reason.
        for line in "".join(traceback.format_exception(*error)).splitlines():
            print(line if len(line) < 600 else line[:600] + " ...")

    def addSuccess(self, test):
        if not self.failed:
            print(f"[       OK ] {test.id()}", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"[  SKIPPED ] {test.id()}: {reason}", flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.fail(error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            print(subtest.id())
            self.fail(error)


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(sys.argv[1:]) if sys.argv[1:] else \
        loader.discover(str(HERE), "*_test.py")
    print(f"[==========] Running {suite.countTestCases()} tests", flush=True)
    result = Lines()
    suite.run(result)
    # An error outside a test, in setUpClass say, has no test to stand under.
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
