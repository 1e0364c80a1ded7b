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
# examples/data/OP/NAME.npy is the input NAME of operator OP. Each operator is
# compiled, run on those arrays and compared with its float64 oracle.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tessera=${1:?usage: run_examples.sh PATH-OF-TESSERA}

passed=0
failed=0
for operator in rms_norm softmax layer_norm swiglu; do
  inputs=()
  for file in "examples/data/$operator"/*.npy; do
    [ -e "$file" ] || continue
    name=${file##*/}
    inputs+=(--input "${name%.npy}=$file")
  done
  if "$tessera" run "$operator" "${inputs[@]}" --verify; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$passed operators passed, $failed failed"
[ "$failed" -eq 0 ]
