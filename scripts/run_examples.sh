#!/usr/bin/env bash
#===- run_examples.sh - Runs the example operators and checks them ----------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
# usage: run_examples.sh PATH-OF-TESSERA
#
# examples/data/OP/NAME.npy is the input NAME of operator OP
# (scripts/make_example_data.py). Each operator is compiled, run on those arrays
# and compared element by element with its float64 oracle; a table line says how
# it went. The last one is a kernel from a text file.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tessera=${1:?usage: run_examples.sh PATH-OF-TESSERA}

printf '%-20s %-12s %9s %9s  %-4s %9s %6s  %s\n' \
  operator shape 'max error' bound '' time GB/s plan
passed=0
failed=0
for operator in rms_norm softmax layer_norm swiglu rope gelu_residual \
  cross_entropy my_kernel; do
  what=$operator
  [ ! -e "examples/$operator.mlir" ] || what=examples/$operator.mlir
  inputs=()
  for file in "examples/data/$operator"/*.npy; do
    [ -e "$file" ] || continue
    name=${file##*/}
    inputs+=(--input "${name%.npy}=$file")
  done
  if [ ${#inputs[@]} -eq 0 ]; then
    echo "$operator: there are no arrays in examples/data/$operator" >&2
    failed=$((failed + 1))
  elif "$tessera" run "$what" "${inputs[@]}" --verify --format line; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
