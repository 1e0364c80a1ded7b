//===- processor.cpp - Which processor this is ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/processor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tessera {

namespace {

/// The first bytes of a file of the kernel's; empty when it cannot be read.
std::string shortFile(const std::string &path) {
  char text[256];
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return {};
  ssize_t size = ::read(file, text, sizeof text);
  ::close(file);
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

/// The digits at the beginning; 0 when there are none.
int64_t leadingNumber(std::string_view text, int base = 10) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return std::max<int64_t>(number, 0);
}

/// "48K" and "32M" in bytes.
int64_t sizeInBytes(std::string_view text) {
  int64_t size = leadingNumber(text);
  if (size > int64_t{1} << 30)
    return 0;
  if (text.find('K') != text.npos)
    return size << 10;
  if (text.find('M') != text.npos)
    return size << 20;
  return size;
}

/// How many numbers "0-3,8" lists.
int countList(std::string_view text) {
  int64_t count = 0;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    size_t dash = part.find('-');
    int64_t first = leadingNumber(part);
    int64_t last =
        dash == part.npos ? first : leadingNumber(part.substr(dash + 1));
    count += std::clamp<int64_t>(last - first + 1, 1, 1 << 20);
  }
  return static_cast<int>(std::clamp<int64_t>(count, 1, 1 << 20));
}

/// Names go into files and messages: printable, without blanks around.
[[maybe_unused]] std::string cleanName(std::string name) {
  name.resize(std::strlen(name.c_str()));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  while (!name.empty() && name.back() == ' ')
    name.pop_back();
  name.erase(0, name.find_first_not_of(' '));
  return name;
}

#if defined(__x86_64__)

Processor readProcessor() {
  Processor processor;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d))
    return processor;
  char vendor[13] = {};
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  processor.vendor = cleanName(vendor);
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15)
      model += (a >> 16 & 15) << 4;
    if (family == 15)
      family += a >> 20 & 255;
    processor.family = static_cast<int>(family);
    processor.model = static_cast<int>(model);
    processor.stepping = static_cast<int>(a & 15);
  }
  if (__get_cpuid_max(0x80000000, nullptr) >= 0x80000004) {
    unsigned words[13] = {};
    for (unsigned i = 0; i < 3; ++i) {
      unsigned *part = words + 4 * i;
      __get_cpuid(0x80000002 + i, part, part + 1, part + 2, part + 3);
    }
    processor.name = cleanName(reinterpret_cast<const char *>(words));
  }
  return processor;
}

#elif defined(__aarch64__)

Processor readProcessor() {
  Processor processor;
  std::string text =
      shortFile("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
  if (!text.starts_with("0x"))
    return processor;
  int64_t midr = leadingNumber(std::string_view(text).substr(2), 16);
  char vendor[8] = "0x";
  *std::to_chars(vendor + 2, vendor + sizeof vendor, midr >> 24 & 255, 16).ptr =
      '\0';
  processor.vendor = vendor;
  processor.model = static_cast<int>(midr >> 4 & 4095);
  processor.stepping = static_cast<int>((midr >> 20 & 15) << 4 | (midr & 15));
  return processor;
}

#else

Processor readProcessor() { return {}; }

#endif

} // namespace

std::string Processor::str() const {
  if (vendor.empty())
    return "a processor that does not say what it is";
  return (name.empty() ? "processor" : name) + " (" + vendor + " family " +
         std::to_string(family) + " model " + std::to_string(model) +
         " stepping " + std::to_string(stepping) + ")";
}

const Processor &hostProcessor() {
  static const Processor processor = readProcessor();
  return processor;
}

CacheSizes readCacheSizes(const std::string &folder) {
  CacheSizes sizes;
  // Data and instructions of the first level, the second, the third.
  for (int index = 0; index < 4; ++index) {
    std::string cache = folder + "/index" + std::to_string(index);
    int64_t level = leadingNumber(shortFile(cache + "/level"));
    if (level < 1 || level > 3 || shortFile(cache + "/type").starts_with('I'))
      continue;
    sizes.bytes[static_cast<size_t>(level - 1)] =
        sizeInBytes(shortFile(cache + "/size"));
    if (level == 3)
      sizes.sharers = countList(shortFile(cache + "/shared_cpu_list"));
  }
  return sizes;
}

CacheSizes hostCacheSizes() {
  CacheSizes sizes = readCacheSizes("/sys/devices/system/cpu/cpu0/cache");
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (sizes.bytes[0] == 0) {
    const int names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                         _SC_LEVEL3_CACHE_SIZE};
    for (size_t i = 0; i < 3; ++i)
      sizes.bytes[i] = std::max<int64_t>(::sysconf(names[i]), 0);
    sizes.sharers =
        static_cast<int>(std::max<int64_t>(::sysconf(_SC_NPROCESSORS_ONLN), 1));
  }
#endif
  return sizes;
}

} // namespace tessera
