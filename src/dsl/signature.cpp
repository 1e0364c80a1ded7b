//===- dsl/signature.cpp - The parameter list as text ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dsl/signature.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace tessera {

namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos)
    return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<Constant> parseNumber(std::string_view text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "true")
    return true;
  if (text == "false")
    return false;
  if (text == "inf")
    return infinity;
  if (text == "-inf")
    return -infinity;
  if (text == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  const char *end = text.data() + text.size();
  int64_t integer = 0;
  if (auto [rest, fault] = std::from_chars(text.data(), end, integer);
      fault == std::errc() && rest == end)
    return integer;
  double real = 0;
  if (auto [rest, fault] = std::from_chars(text.data(), end, real);
      fault == std::errc() && rest == end)
    return real;
  return std::nullopt;
}

} // namespace

bool isName(std::string_view text) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !letter(text[0]))
    return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9'))
      return false;
  return true;
}

std::optional<Constant> convertConstant(const Constant &value, DType type) {
  if (isFloat(type))
    return std::visit([](auto number) { return double(number); }, value);
  if (type == DType::Bool) {
    if (auto *boolean = std::get_if<bool>(&value))
      return *boolean;
    double number = std::visit([](auto v) { return double(v); }, value);
    if (number == 0 || number == 1)
      return number == 1;
    return std::nullopt;
  }
  int64_t integer = 0;
  if (auto *real = std::get_if<double>(&value)) {
    if (!(*real >= -0x1p62 && *real <= 0x1p62) || *real != std::trunc(*real))
      return std::nullopt;
    integer = int64_t(*real);
  } else {
    integer = std::visit([](auto v) { return int64_t(v); }, value);
  }
  int bits = 8 * int(sizeInBytes(type));
  if (bits < 64) {
    int64_t low = isUnsigned(type) ? 0 : -(int64_t(1) << (bits - 1));
    int64_t high = int64_t(1) << (isUnsigned(type) ? bits : bits - 1);
    if (integer < low || integer >= high)
      return std::nullopt;
  } else if (isUnsigned(type) && integer < 0) {
    return std::nullopt;
  }
  return integer;
}

std::string applySignature(std::string_view signature,
                           std::vector<ParameterInfo> &parameters) {
  std::vector<std::string_view> items;
  for (std::string_view rest = signature; !trim(signature).empty();) {
    size_t comma = rest.find(',');
    items.push_back(trim(rest.substr(0, comma)));
    if (comma == rest.npos)
      break;
    rest.remove_prefix(comma + 1);
  }
  if (items.size() != parameters.size())
    return "the signature names " + std::to_string(items.size()) +
           " parameters, the function takes " +
           std::to_string(parameters.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ParameterInfo &parameter = parameters[i];
    size_t equals = items[i].find('=');
    std::string name(trim(items[i].substr(0, equals)));
    if (!isName(name))
      return "parameter " + std::to_string(i + 1) + " is named '" + name +
             "', expected a letter or _, then letters, digits and _";
    for (size_t j = 0; j < i; ++j)
      if (parameters[j].name == name)
        return "two parameters are named '" + name + "'";
    parameter.name = name;
    if (equals == items[i].npos)
      continue;
    std::string text(trim(items[i].substr(equals + 1)));
    if (parameter.kind == ParameterInfo::Kind::View)
      return "view '" + name + "' has the default '" + text +
             "', expected one only for scalars and constants";
    if (parameter.optional)
      return "optional scalar '" + name + "' has the default '" + text +
             "', expected none: the kernel asks present()";
    std::optional<Constant> value = parseNumber(text);
    if (value)
      value = convertConstant(*value, parameter.dtype.value_or(DType::F32));
    if (!value)
      return "the default of '" + name + "' is '" + text + "', expected " +
             (parameter.dtype ? std::string(tessera::name(*parameter.dtype))
                              : std::string("a number"));
    parameter.defaultValue = value;
  }
  return "";
}

} // namespace tessera
