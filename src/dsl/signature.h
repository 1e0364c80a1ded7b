//===- dsl/signature.h - The parameter list as text -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     signature ::= (parameter (`,` parameter)*)?
//     parameter ::= name (`=` number)?
//
// where a name is a C identifier and a number is a decimal integer or float,
// inf, -inf, nan, true or false.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_SIGNATURE_H
#define TESSERA_DSL_SIGNATURE_H

#include "tessera/dsl/options.h"

#include <string_view>

namespace tessera {

/// Whether `text` is a C identifier.
bool isName(std::string_view text);

/// Gives `parameters` their names and defaults. Returns what is wrong with the
/// signature, empty if nothing is.
std::string applySignature(std::string_view signature,
                           std::vector<ParameterInfo> &parameters);

/// `value` as the type of a scalar or constant; std::nullopt where that loses
/// information (0.5 as an integer, 2 as a bool, 300 as u8).
std::optional<Constant> convertConstant(const Constant &value, DType type);

} // namespace tessera

#endif // TESSERA_DSL_SIGNATURE_H
