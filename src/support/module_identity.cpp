//===- module_identity.cpp - Which build of code runs ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/module_identity.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

namespace tessera::support {

namespace {

/// The build identifier in a segment of notes, or an empty text.
std::string buildIdIn(const unsigned char *notes, size_t size, size_t align) {
  const auto padded = [&](size_t bytes) {
    return (bytes + align - 1) / align * align;
  };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = sizeof note;
    const size_t content = name + padded(note.n_namesz);
    const size_t next = content + padded(note.n_descsz);
    if (content > size || note.n_descsz > size - content)
      return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string digits;
      for (size_t i = 0; i < note.n_descsz; ++i)
        digits += fmt::format("{:02x}", notes[content + i]);
      return digits;
    }
    if (next >= size)
      return {};
    notes += next;
    size -= next;
  }
  return {};
}

std::string fileIdentity(const std::string &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0)
    return {};
  return fmt::format("file {} of {} bytes, changed {}.{:09}", path,
                     status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

struct Search {
  /// None for the program itself, which comes first.
  const void *address;
  std::string identity;
};

bool holds(const dl_phdr_info &module, const void *address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < module.dlpi_phnum; ++i) {
    const auto &segment = module.dlpi_phdr[i];
    const uintptr_t begin = module.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && wanted >= begin &&
        wanted < begin + segment.p_memsz)
      return true;
  }
  return false;
}

int visit(dl_phdr_info *module, size_t, void *context) {
  auto &search = *static_cast<Search *>(context);
  if (search.address && !holds(*module, search.address))
    return 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto &segment = module->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const auto *notes = reinterpret_cast<const unsigned char *>(
        module->dlpi_addr + segment.p_vaddr);
    const std::string digits =
        buildIdIn(notes, segment.p_memsz, segment.p_align == 8 ? 8 : 4);
    if (!digits.empty()) {
      search.identity = "build " + digits;
      return 1;
    }
  }
  const bool isProgram = !module->dlpi_name || !*module->dlpi_name;
  search.identity =
      fileIdentity(isProgram ? "/proc/self/exe" : module->dlpi_name);
  return 1;
}

} // namespace

std::string moduleIdentity(const void *address) {
  if (!address)
    return {};
  Search search{address, {}};
  ::dl_iterate_phdr(visit, &search);
  return search.identity;
}

std::string programIdentity() {
  Search search{nullptr, {}};
  ::dl_iterate_phdr(visit, &search);
  return search.identity;
}

} // namespace tessera::support
