//===- codegen/cpu/counting_math.h - Vector math that counts ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The builder of vector_math_support.h that emits nothing: it counts what a
// function takes in code, rare cases included, of one vector register.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_COUNTING_MATH_H
#define TESSERA_CODEGEN_CPU_COUNTING_MATH_H

#include "codegen/cpu/vector_math.h"

namespace tessera::vmath {

class CountingBuilder {
public:
  struct Value {};
  using Int = Value;
  using Mask = Value;

  CountingBuilder(bool fma, bool scalef) : hasFma(fma), scales(scalef) {}

  Value constF(double) { return {}; }
  Value add(Value, Value) { return count(); }
  Value sub(Value, Value) { return count(); }
  Value mul(Value, Value) { return count(); }
  Value div(Value, Value) { return count(); }
  bool hasFMA() const { return hasFma; }
  Value fma(Value, Value, Value) { return count(hasFma ? 1 : 2); }
  Value neg(Value) { return count(); }
  Value abs(Value) { return count(); }
  Value sqrt(Value) { return count(); }
  Value min(Value, Value) { return count(); }
  Value max(Value, Value) { return count(); }
  Mask lt(Value, Value) { return count(); }
  Mask eq(Value, Value) { return count(); }
  Value select(Mask, Value, Value) { return count(); }

  // What sees a number as bits takes nothing.
  Int toBits(Value) { return {}; }
  Value fromBits(Int) { return {}; }
  Int constI(int64_t) { return {}; }
  Int iadd(Int, Int) { return count(); }
  Int isub(Int, Int) { return count(); }
  Int imul(Int, Int) { return count(); }
  Int iand(Int, Int) { return count(); }
  Int ior(Int, Int) { return count(); }
  Int ixor(Int, Int) { return count(); }
  Int shl(Int, unsigned) { return count(); }
  Int lshr(Int, unsigned) { return count(); }
  Int shlv(Int, Int) { return count(); }
  Mask ieq(Int, Int) { return count(); }
  Int iselect(Mask, Int, Int) { return count(); }

  bool hasScalef() const { return scales; }
  Value scalef(Value, Value) { return count(); }

  template <class Then> Value ifAny(Mask, Value otherwise, Then then) {
    then();
    count(2);
    return otherwise;
  }

  int64_t instructions() const { return counted; }

private:
  Value count(int64_t more = 1) {
    counted += more;
    return {};
  }

  bool hasFma, scales;
  int64_t counted = 0;
};

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_COUNTING_MATH_H
