//===- npy_test.cpp - Tests of .npy files ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Round trips, files as NumPy writes them, hostile files, and random mutations
// of good ones.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/npy_header.h"
#include "tessera/device.h"
#include "tessera/npy.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

using namespace tessera;
namespace fs = std::filesystem;

namespace {

class Npy : public testing::Test {
protected:
  void SetUp() override {
    // In memory where possible: thousands of small files are written.
    const fs::path shared = "/dev/shm";
    const fs::path base = ::access(shared.c_str(), W_OK) == 0
                              ? shared
                              : fs::temp_directory_path();
    std::string pattern = (base / "npy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { fs::remove_all(directory); }

  std::string path(const std::string &name) const {
    return (directory / name).string();
  }
  std::string put(const std::string &bytes) const {
    const std::string file = path("in.npy");
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  static std::string get(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void expectError(const std::string &bytes, const char *code,
                   const char *text = "",
                   std::optional<DType> expected = std::nullopt) const {
    const auto result = readNpy(put(bytes), expected);
    ASSERT_FALSE(result.ok()) << code << " " << text;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_EQ(result.error().family, ErrorFamily::Usage);
    EXPECT_TRUE(result.error().message.starts_with("cannot read '" +
                                                   path("in.npy") + "': "))
        << result.error().message;
    EXPECT_NE(result.error().message.find(text), std::string::npos)
        << result.error().message;
  }
  size_t filesInDirectory() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto &entry : fs::directory_iterator(directory))
      ++count;
    return count;
  }

  fs::path directory;
};

/// A file around a dictionary, padded as NumPy does.
std::string npy(std::string dictionary, const std::string &data,
                int major = 1) {
  const size_t prefix = major == 1 ? 10 : 12;
  while ((prefix + dictionary.size() + 1) % 64 != 0)
    dictionary += ' ';
  dictionary += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dictionary.size() >> (8 * i));
  return file + dictionary + data;
}

std::string dict(const std::string &descr, const std::string &shape,
                 const char *fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }";
}

std::string counting(size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<char>(i);
  return data;
}

} // namespace

TEST_F(Npy, RoundTripsEveryTypeAndShape) {
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {0}, {1}, {7}, {2, 3}, {4, 0, 5}, {2, 3, 4, 5}};
  for (int i = 0; i <= static_cast<int>(DType::F64); ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const auto &shape : shapes) {
      auto array = Array::allocate(dtype, shape);
      ASSERT_TRUE(array.ok());
      const TensorRef view = array->view();
      const auto bytes =
          static_cast<size_t>(view.elements() * sizeInBytes(dtype));
      const std::string data = counting(bytes);
      if (bytes > 0)
        std::memcpy(view.data, data.data(), bytes);
      const std::string file = path("out.npy");
      ASSERT_TRUE(writeNpy(file, view).ok());
      EXPECT_EQ(filesInDirectory(), 1u);
      const auto back = readNpy(file, dtype);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->extents, shape);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(back->buffer.data()) % 64, 0u);
      if (bytes > 0) {
        EXPECT_EQ(std::memcmp(back->buffer.data(), data.data(), bytes), 0);
      }
      EXPECT_EQ(get(file).size() % 64, bytes % 64);
    }
  }
}

TEST_F(Npy, WritesWhatNumpyWrites) {
  float data[6] = {};
  ASSERT_TRUE(
      writeNpy(path("a.npy"), TensorRef::dense(data, DType::F32, {2, 3})).ok());
  EXPECT_EQ(get(path("a.npy")),
            npy(dict("<f4", "(2, 3)"), std::string(24, '\0')));
  ASSERT_TRUE(
      writeNpy(path("a.npy"), TensorRef::dense(data, DType::Bool, {3})).ok());
  EXPECT_EQ(get(path("a.npy")), npy(dict("|b1", "(3,)"), std::string(3, '\0')));
  ASSERT_TRUE(
      writeNpy(path("a.npy"), TensorRef::dense(data, DType::BF16, {})).ok());
  EXPECT_EQ(get(path("a.npy")), npy(dict("<V2", "()"), std::string(2, '\0')));
}

TEST_F(Npy, WritesStridedViews) {
  std::vector<int32_t> data(200000);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<int32_t>(i);
  // Transposed, reversed and with a broadcast axis.
  const TensorRef view{
      data.data() + 199999, DType::I32, {400, 2, 500}, {-1, 0, -400}};
  ASSERT_TRUE(writeNpy(path("a.npy"), view).ok());
  const auto back = readNpy(path("a.npy"));
  ASSERT_TRUE(back.ok());
  for (int64_t i = 0; i < 400; ++i)
    for (int64_t k = 0; k < 500; ++k)
      for (int64_t j = 0; j < 2; ++j)
        ASSERT_EQ(back->buffer.as<int32_t>()[(i * 2 + j) * 500 + k],
                  199999 - i - 400 * k);
}

TEST_F(Npy, ReadsVersionsOrdersAndSpellings) {
  const std::string data = counting(24);
  for (int major : {1, 2, 3}) {
    const auto array = readNpy(put(npy(dict("<i4", "(2, 3)"), data, major)));
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(std::memcmp(array->buffer.data(), data.data(), 24), 0);
  }
  // Fortran order: element (i, j) lies at i + 2 * j.
  const auto fortran = readNpy(put(npy(dict("<i4", "(2, 3)", "True"), data)));
  ASSERT_TRUE(fortran.ok());
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_EQ(std::memcmp(fortran->buffer.as<char>() + 4 * (3 * i + j),
                            data.data() + 4 * (i + 2 * j), 4),
                0);
  const auto big = readNpy(put(npy(dict(">u2", "(12,)"), data)));
  ASSERT_TRUE(big.ok());
  EXPECT_EQ(big->dtype, DType::U16);
  EXPECT_EQ(big->buffer.as<uint16_t>()[1], 0x0203);
  const auto bigDouble = readNpy(put(npy(dict(">f8", "(3,)", "True"), data)));
  ASSERT_TRUE(bigDouble.ok());
  EXPECT_EQ(bigDouble->buffer.as<uint64_t>()[0], 0x0001020304050607u);
  // Keys in any order, double quotes, no trailing comma, long integers.
  const auto odd = readNpy(put(npy(
      "{\"shape\":(2L,3L),\"fortran_order\":False,\"descr\":\"=i4\"}", data)));
  ASSERT_TRUE(odd.ok()) << odd.error().message;
  EXPECT_EQ(odd->extents, (std::vector<int64_t>{2, 3}));
}

TEST_F(Npy, NarrowFloatsOnRequest) {
  const std::string two = counting(2), one = counting(1);
  for (const char *descr : {"<u2", "<V2", "|V2", "bfloat16"}) {
    const auto array = readNpy(put(npy(dict(descr, "(1,)"), two)), DType::BF16);
    ASSERT_TRUE(array.ok()) << descr;
    EXPECT_EQ(array->dtype, DType::BF16);
  }
  for (const char *descr : {"|u1", "|V1"})
    for (DType dtype : {DType::F8E4M3, DType::F8E5M2})
      EXPECT_TRUE(readNpy(put(npy(dict(descr, "(1,)"), one)), dtype).ok());
  EXPECT_EQ(readNpy(put(npy(dict("bfloat16", "(1,)"), two)))->dtype,
            DType::BF16);
  const auto swapped = readNpy(put(npy(dict(">u2", "()"), two)), DType::BF16);
  EXPECT_EQ(swapped->buffer.as<uint16_t>()[0], 0x0001);
  expectError(npy(dict("<V2", "(1,)"), two), "npy.dtype", "ask for bf16");
  expectError(npy(dict("<V2", "(1,)"), two), "npy.dtype", "", DType::F16);
  expectError(npy(dict("<f2", "(1,)"), two), "npy.dtype",
              "the file holds f16, expected bf16", DType::BF16);
  expectError(npy(dict("<f4", "(1,)"), counting(4)), "npy.dtype",
              "the file holds f32, expected f64", DType::F64);
  EXPECT_EQ(readNpy(put(npy(dict("<u2", "(1,)"), two)), DType::U16)->dtype,
            DType::U16);
}

TEST_F(Npy, RefusesBadFiles) {
  const std::string good = npy(dict("<f4", "(2, 3)"), counting(24));
  expectError("", "npy.truncated");
  expectError("\x93NUM", "npy.truncated");
  expectError("hello world, this is text", "npy.magic");
  expectError("PK\x03\x04", "npy.magic");
  expectError(good.substr(0, 9), "npy.truncated");
  expectError(good.substr(0, 60), "npy.truncated", "the header ends at byte");
  expectError(good.substr(0, good.size() - 1), "npy.truncated",
              "2x3 elements of f32 (24 bytes), but the file has 23");
  expectError(good + "x", "npy.trailing", "25 bytes of data");
  std::string version = good;
  version[6] = 4;
  expectError(version, "npy.version", "4.0");
  version[6] = 1;
  version[7] = 1;
  expectError(version, "npy.version", "1.1");
  std::string huge = npy(dict("<f4", "(2, 3)"), "", 2);
  huge[11] = '\x7f';
  expectError(huge, "npy.header", "expected at most 65536");
  // Lying and overflowing shapes, in small files.
  expectError(npy(dict("<f4", "(1000000000000,)"), counting(24)),
              "npy.truncated");
  expectError(npy(dict("<f8", "(4611686018427387904, 4)"), ""), "npy.shape",
              "do not fit 63 bits");
  expectError(npy(dict("<f8", "(99999999999999999999,)"), ""), "npy.header",
              "does not fit 63 bits");
  // An empty array has strides too, wherever the zero stands.
  for (const char *shape :
       {"(9223372036854775807, 0)", "(0, 9223372036854775807)",
        "(4294967296, 0, 4294967296)"})
    expectError(npy(dict("<f8", shape), ""), "npy.shape", "do not fit 63 bits");
  EXPECT_TRUE(readNpy(put(npy(dict("<f8", "(0, 1000000000000)"), ""))).ok());
  std::string manyExtents = "(";
  for (int i = 0; i < 70; ++i)
    manyExtents += "1, ";
  expectError(npy(dict("<f4", manyExtents + ")"), counting(4)), "npy.header",
              "more than 64 extents");
}

TEST_F(Npy, RefusesBadDictionaries) {
  const auto bad = [&](const std::string &dictionary, const char *text,
                       const char *code = "npy.header") {
    expectError(npy(dictionary, counting(24)), code, text);
  };
  bad("", "expected '{'");
  bad("{", "expected a quoted string");
  bad("{'descr': '<f4'}", "a key is missing");
  bad("{'descr': '<f4', 'descr': '<f4'}", "appears twice");
  bad("{'other': 1}", "unknown key 'other'");
  bad("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
      "structured element types");
  bad(dict("<f4", "(2, -3)"), "expected an extent");
  bad(dict("<f4", "(6)"), "expected a tuple");
  bad(dict("<f4", "(2 3)"), "expected ',' or ')'");
  bad(dict("<f4", "(,)"), "expected an extent");
  bad(dict("<f4", "6"), "expected '('");
  bad(dict("<f4", "(6,)", "0"), "expected True or False");
  bad(dict("<f4", "(6,)") + "{}", "text after the dictionary");
  bad("{'descr': '<f4", "a string does not end");
  bad("{'descr': '<\\x664', ", "escape");
  for (const char *descr : {"<f16", "<c8", "|O", "<U8", "f4", "<M8[ns]", "",
                            "<", "|S4", "<b2", "<f4 ", "<i3", "\x01\xff"})
    bad(dict(descr, "(6,)"), "element type", "npy.dtype");
  expectError(npy(dict("<V4", "(6,)"), counting(24)), "npy.dtype",
              "not supported", DType::BF16);
}

TEST_F(Npy, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(readNpy(path("missing.npy")).error().code, "npy.io");
  EXPECT_EQ(readNpy(path("missing.npy")).error().message,
            "cannot read '" + path("missing.npy") +
                "': No such file or directory");
  const float one = 1;
  EXPECT_EQ(
      writeNpy(path("none/a.npy"),
               TensorRef::dense(const_cast<float *>(&one), DType::F32, {}))
          .error()
          .message,
      "cannot write '" + path("none/a.npy") + "': No such file or directory");
  const auto onDirectory = readNpy(directory.string());
  EXPECT_NE(onDirectory.error().message.find("directory"), std::string::npos);
  EXPECT_EQ(readNpy("/dev/null").error().code, "npy.io");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(readNpy(path("pipe")).error().code, "npy.io");

  float value = 1;
  const TensorRef view = TensorRef::dense(&value, DType::F32, {});
  EXPECT_FALSE(writeNpy(directory.string(), view).ok());
  EXPECT_FALSE(writeNpy(path("pipe"), view).ok());
  EXPECT_FALSE(writeNpy(path("none/a.npy"), view).ok());
  EXPECT_FALSE(writeNpy("", view).ok());
  EXPECT_FALSE(writeNpy(path("a.npy"), {nullptr, DType::F32, {3}, {1}}).ok());
  EXPECT_FALSE(writeNpy(path("a.npy"), {&value, DType::F32, {1}, {}}).ok());
  EXPECT_FALSE(writeNpy(path("a.npy"), {&value, DType::F32, {-1}, {1}}).ok());
  EXPECT_EQ(filesInDirectory(), 1u) << "only the pipe";
}

TEST_F(Npy, WriteReplacesTheTargetOfALink) {
  float value = 1;
  const TensorRef view = TensorRef::dense(&value, DType::F32, {});
  ASSERT_TRUE(writeNpy(path("real.npy"), view).ok());
  fs::create_symlink(path("real.npy"), path("link.npy"));
  value = 2;
  ASSERT_TRUE(writeNpy(path("link.npy"), view).ok());
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_EQ(readNpy(path("real.npy"))->buffer.as<float>()[0], 2);
  fs::create_symlink(path("nowhere"), path("dangling.npy"));
  EXPECT_FALSE(writeNpy(path("dangling.npy"), view).ok());
}

TEST_F(Npy, RandomMutationsNeverCrash) {
  std::mt19937 random(5);
  const std::string seeds[] = {
      npy(dict("<f4", "(2, 3)"), counting(24)),
      npy(dict(">i2", "(3, 1, 4)", "True"), counting(24), 2),
      npy(dict("|u1", "()"), counting(1), 3)};
  const char alphabet[] = "{}()[]',:\"\\ 0123456789LTFabcdefu<>|=-\n";
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = seeds[random() % 3];
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes && !bytes.empty(); ++i) {
      const size_t at =
          random() %
          (round % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 90));
      const char c = random() % 2 ? alphabet[random() % (sizeof alphabet - 1)]
                                  : static_cast<char>(random());
      switch (random() % 5) {
      case 0:
        bytes.erase(at, 1 + random() % 3);
        break;
      case 1:
        bytes.insert(at, 1, c);
        break;
      case 2:
        bytes.resize(random() % (bytes.size() + 1));
        break;
      default:
        bytes[at] = c;
      }
    }
    const std::optional<DType> expected =
        random() % 3 == 0 ? std::optional(DType::BF16) : std::nullopt;
    const auto result = readNpy(put(bytes), expected);
    if (!result.ok()) {
      ASSERT_FALSE(result.error().message.empty());
      ASSERT_EQ(result.error().family, ErrorFamily::Usage);
      continue;
    }
    ++accepted;
    const TensorRef view = result->view();
    ASSERT_EQ(result->buffer.size(), view.elements() * sizeInBytes(view.dtype));
  }
  EXPECT_GT(accepted, 20);
}

TEST(Buffer, AllocatesAndMoves) {
  auto empty = Buffer::allocate(0);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size(), 0);
  auto buffer = Buffer::allocate(100);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->size(), 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
  std::memset(buffer->data(), 1, 100);
  Buffer moved = std::move(*buffer);
  EXPECT_EQ(moved.as<char>()[99], 1);
  moved = Buffer();
  EXPECT_EQ(moved.data(), nullptr);
  EXPECT_EQ(Buffer::allocate(-1).error().code, "memory.exhausted");
  EXPECT_EQ(Buffer::allocate(INT64_MAX).error().family,
            ErrorFamily::Unsupported);
}

TEST(Device, KnowsTheProcessor) {
  const DeviceInfo device = cpuDevice();
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_FALSE(device.name.empty());
  EXPECT_GE(device.threads, 1);
  EXPECT_GT(device.memoryBytes, 0);
}
