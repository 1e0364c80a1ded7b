//===- npy_header.cpp - The header of an .npy file ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strict parser: the dictionary must have exactly the three keys of the
// format, each once, with literals of the right kind.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/npy_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <limits>

namespace tessera::runtime {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

Error fileError(std::string code, std::string message) {
  return {ErrorFamily::Usage, std::move(code), std::move(message), {}};
}

/// Text from a file as it may appear in a message: short and printable.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 32))
    out += c >= 0x20 && c < 0x7f ? c : '?';
  if (text.size() > 32)
    out += "...";
  return out + "'";
}

/// A cursor over the dictionary's text. A method that fails leaves a message
/// and returns false.
class DictionaryParser {
public:
  explicit DictionaryParser(std::string_view text) : text(text) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    if (!parseDictionary(header))
      return fileError("npy.header",
                       fmt::format("bad header at byte {} of its dictionary: "
                                   "{}",
                                   position, problem));
    return header;
  }

private:
  bool parseDictionary(NpyHeader &header) {
    bool haveDescr = false, haveOrder = false, haveShape = false;
    if (!expect('{'))
      return false;
    while (!accept('}')) {
      std::string key;
      if (!parseString(key) || !expect(':'))
        return false;
      bool *have = key == "descr"           ? &haveDescr
                   : key == "fortran_order" ? &haveOrder
                   : key == "shape"         ? &haveShape
                                            : nullptr;
      if (!have)
        return fail(fmt::format("unknown key {}, expected 'descr', "
                                "'fortran_order' and 'shape'",
                                quoted(key)));
      if (*have)
        return fail(fmt::format("key {} appears twice", quoted(key)));
      *have = true;
      const bool good = have == &haveDescr   ? parseDescr(header.descr)
                        : have == &haveOrder ? parseBool(header.fortranOrder)
                                             : parseShape(header.extents);
      if (!good)
        return false;
      if (!accept(',')) {
        if (!expect('}'))
          return false;
        break;
      }
    }
    if (!haveDescr || !haveOrder || !haveShape)
      return fail("a key is missing, expected 'descr', 'fortran_order' and "
                  "'shape'");
    skipSpace();
    if (position != text.size())
      return fail("text after the dictionary");
    return true;
  }

  bool parseDescr(std::string &descr) {
    skipSpace();
    if (position < text.size() &&
        (text[position] == '[' || text[position] == '('))
      return fail("structured element types are not supported, save each "
                  "field as an array of its own");
    return parseString(descr);
  }

  bool parseString(std::string &value) {
    skipSpace();
    if (position >= text.size() ||
        (text[position] != '\'' && text[position] != '"'))
      return fail("expected a quoted string");
    const size_t end = text.find(text[position], position + 1);
    if (end == std::string_view::npos)
      return fail("a string does not end");
    const std::string_view inside =
        text.substr(position + 1, end - position - 1);
    if (inside.find_first_of("\\\n") != std::string_view::npos)
      return fail("a string has an escape or a line break");
    value = inside;
    position = end + 1;
    return true;
  }

  bool parseBool(bool &value) {
    skipSpace();
    for (bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text.substr(position).starts_with(word)) {
        position += word.size();
        value = candidate;
        return true;
      }
    }
    return fail("expected True or False");
  }

  bool parseShape(std::vector<int64_t> &extents) {
    if (!expect('('))
      return false;
    bool lastHadComma = true;
    while (!accept(')')) {
      if (!lastHadComma)
        return fail("expected ',' or ')' in the shape");
      int64_t extent = 0;
      if (!parseInteger(extent))
        return false;
      if (extents.size() == maxNpyRank)
        return fail(
            fmt::format("the shape has more than {} extents", maxNpyRank));
      extents.push_back(extent);
      lastHadComma = accept(',');
    }
    // "(3)" is a number in the language the header is written in.
    if (extents.size() == 1 && !lastHadComma)
      return fail("the shape is a number, expected a tuple");
    return true;
  }

  bool parseInteger(int64_t &value) {
    skipSpace();
    const size_t start = position;
    value = 0;
    while (position < text.size() && text[position] >= '0' &&
           text[position] <= '9') {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text[position] - '0'}, &value))
        return fail("an extent does not fit 63 bits");
      ++position;
    }
    if (position == start)
      return fail("expected an extent, a decimal number of at least 0");
    if (position < text.size() && text[position] == 'L')
      ++position; // Written by Python 2.
    return true;
  }

  void skipSpace() {
    while (position < text.size() &&
           (text[position] == ' ' || text[position] == '\t' ||
            text[position] == '\n' || text[position] == '\r'))
      ++position;
  }

  bool accept(char c) {
    skipSpace();
    if (position >= text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  bool expect(char c) {
    if (accept(c))
      return true;
    return fail(fmt::format("expected '{}'", c));
  }

  bool fail(std::string message) {
    problem = std::move(message);
    return false;
  }

  std::string_view text;
  size_t position = 0;
  std::string problem;
};

/// How an element type is written, after the byte-order character.
struct TypeRow {
  std::string_view code;
  DType dtype;
};

constexpr std::array<TypeRow, 12> nativeTypes = {{
    {"b1", DType::Bool},
    {"i1", DType::I8},
    {"i2", DType::I16},
    {"i4", DType::I32},
    {"i8", DType::I64},
    {"u1", DType::U8},
    {"u2", DType::U16},
    {"u4", DType::U32},
    {"u8", DType::U64},
    {"f2", DType::F16},
    {"f4", DType::F32},
    {"f8", DType::F64},
}};

/// Spellings of types that NumPy itself does not have.
constexpr std::array<TypeRow, 3> namedTypes = {{
    {"bfloat16", DType::BF16},
    {"float8_e4m3fn", DType::F8E4M3},
    {"float8_e5m2", DType::F8E5M2},
}};

bool isBeyondNumpy(DType dtype) {
  return dtype == DType::BF16 || dtype == DType::F8E4M3 ||
         dtype == DType::F8E5M2;
}

std::string spelling(DType dtype) {
  if (isBeyondNumpy(dtype))
    return dtype == DType::BF16 ? "<V2" : "|V1";
  for (const TypeRow &row : nativeTypes)
    if (row.dtype == dtype)
      return (sizeInBytes(dtype) == 1 ? "|" : "<") + std::string(row.code);
  return "|V1";
}

} // namespace

Result<NpyPrefix> parseNpyPrefix(std::string_view bytes) {
  if (bytes.size() < magic.size() + 4 && magic.starts_with(bytes.substr(0, 6)))
    return fileError("npy.truncated",
                     fmt::format("the file ends after {} bytes, inside its "
                                 "header",
                                 bytes.size()));
  if (!bytes.starts_with(magic))
    return fileError("npy.magic",
                     "not an .npy file: it does not begin with \\x93NUMPY");
  const auto byteAt = [&](size_t index) -> uint64_t {
    return static_cast<unsigned char>(bytes[index]);
  };
  const uint64_t major = byteAt(6), minor = byteAt(7);
  if (major < 1 || major > 3 || minor != 0)
    return fileError("npy.version",
                     fmt::format("format version {}.{}, expected 1.0, 2.0 or "
                                 "3.0",
                                 major, minor));
  NpyPrefix prefix;
  uint64_t length = byteAt(8) | byteAt(9) << 8;
  prefix.dictionaryOffset = 10;
  if (major >= 2) {
    if (bytes.size() < npyPrefixBytes)
      return fileError("npy.truncated", "the file ends inside its header");
    length |= byteAt(10) << 16 | byteAt(11) << 24;
    prefix.dictionaryOffset = npyPrefixBytes;
  }
  if (length > maxNpyHeaderBytes)
    return fileError("npy.header",
                     fmt::format("the header claims {} bytes, expected at most "
                                 "{}",
                                 length, maxNpyHeaderBytes));
  prefix.dataOffset = prefix.dictionaryOffset + length;
  return prefix;
}

Result<NpyHeader> parseNpyDictionary(std::string_view text) {
  return DictionaryParser(text).parse();
}

Result<NpyType> resolveNpyType(std::string_view descr,
                               std::optional<DType> expected) {
  std::string_view code = descr;
  bool swap = false;
  bool orderGiven = false;
  if (!code.empty() &&
      std::string_view("<>=|").find(code[0]) != std::string_view::npos) {
    const char fileOrder = code[0];
    orderGiven = true;
    swap =
        fileOrder == (std::endian::native == std::endian::little ? '>' : '<');
    code.remove_prefix(1);
  }

  std::optional<DType> found;
  for (const TypeRow &row : nativeTypes)
    if (orderGiven && row.code == code)
      found = row.dtype;
  for (const TypeRow &row : namedTypes)
    if (row.code == code)
      found = row.dtype;
  if (expected && isBeyondNumpy(*expected)) {
    const bool two = *expected == DType::BF16;
    if (orderGiven &&
        (code == (two ? "u2" : "u1") || code == (two ? "V2" : "V1")))
      found = expected;
  }
  if (!found && orderGiven && (code == "V2" || code == "V1"))
    return fileError("npy.dtype",
                     fmt::format("element type {} is raw bytes, ask for {} to "
                                 "read it as that",
                                 quoted(descr),
                                 code == "V2" ? "bf16" : "f8e4m3 or f8e5m2"));
  if (!found)
    return fileError("npy.dtype",
                     fmt::format("element type {} is not supported, expected "
                                 "b1, i1 to i8, u1 to u8, f2, f4 or f8",
                                 quoted(descr)));
  if (expected && *found != *expected)
    return fileError("npy.dtype", fmt::format("the file holds {}, expected {}",
                                              name(*found), name(*expected)));
  return NpyType{*found, swap && sizeInBytes(*found) > 1};
}

std::string printNpyHeader(DType dtype, const std::vector<int64_t> &extents) {
  std::string shape = "(";
  for (int64_t extent : extents)
    shape += fmt::format("{}{}", shape.size() > 1 ? " " : "", extent) + ",";
  if (extents.size() > 1)
    shape.pop_back();
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}",
                  spelling(dtype), shape);
  constexpr size_t prefix = 10;
  const size_t total = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.resize(total - prefix - 1, ' ');
  dictionary += '\n';
  std::string header(magic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

} // namespace tessera::runtime
