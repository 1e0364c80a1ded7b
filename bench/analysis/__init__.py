#===- bench/analysis/__init__.py - What reads result files -----------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Reads the result files of `tessera bench`: audit, comparison, report.

docs/benchmarking.md describes the file; statistics.py defines its figures.
"""
