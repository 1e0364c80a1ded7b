/*===- test/unit/emulation/server.c - Runs stages of another machine -------===*\
|*
|* Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Calls the stages of a compiled kernel for emulator.cpp, which
|* starts this program under an emulator and says there what the requests on
|* standard input and the answers on standard output are made of. Both sides
|* are little-endian with 8-byte pointers.
|*
|* Each block of arrays lies at the same offset in its pages as on the host,
|* between pages that nothing may touch; the rest of its own pages must stay
|* what it was.
|*
\*===----------------------------------------------------------------------===*/

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int32_t (*StageEntry)(void *const *data, const int64_t *strides,
                              const void *scalars, int64_t begin, int64_t end,
                              void *scratch);

enum { pageBytes = 4096, filler = 0xa5, maxName = 512 };

/* Memory between two guard pages. */
typedef struct {
  unsigned char *map, *pages;
  size_t mapBytes, pagesBytes;
  uint64_t offset, bytes;
} Block;

static void stop(const char *why) {
  fprintf(stderr, "emulation server: %s\n", why);
  _exit(3);
}

/* False at the end of the input. */
static int readAll(void *to, size_t bytes) {
  unsigned char *at = to;
  while (bytes > 0) {
    ssize_t count = read(STDIN_FILENO, at, bytes);
    if (count <= 0)
      return 0;
    at += count;
    bytes -= (size_t)count;
  }
  return 1;
}

static void take(void *to, size_t bytes) {
  if (!readAll(to, bytes))
    stop("the request ends early");
}

static uint64_t takeNumber(void) {
  uint64_t number;
  take(&number, sizeof number);
  return number;
}

static void takeName(char *to) {
  uint64_t length = takeNumber();
  if (length >= maxName)
    stop("a name is too long");
  take(to, length);
  to[length] = 0;
}

static void put(const void *from, size_t bytes) {
  const unsigned char *at = from;
  while (bytes > 0) {
    ssize_t count = write(STDOUT_FILENO, at, bytes);
    if (count <= 0)
      _exit(0);
    at += count;
    bytes -= (size_t)count;
  }
}

static void putNumber(uint64_t number) { put(&number, sizeof number); }

/* With room for one more. */
static void *takeArray(uint64_t count) {
  void *array = malloc(count * 8 + 8);
  if (!array)
    stop("no memory for a request");
  take(array, count * 8);
  return array;
}

static Block makeBlock(uint64_t offset, uint64_t bytes) {
  Block block;
  block.offset = offset;
  block.bytes = bytes;
  block.pagesBytes = (offset + bytes + pageBytes - 1) / pageBytes * pageBytes;
  if (block.pagesBytes == 0)
    block.pagesBytes = pageBytes;
  block.mapBytes = block.pagesBytes + 2 * pageBytes;
  block.map = mmap(NULL, block.mapBytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.map == MAP_FAILED)
    stop("no memory for an array");
  block.pages = block.map + pageBytes;
  if (mprotect(block.pages, block.pagesBytes, PROT_READ | PROT_WRITE) != 0)
    stop("no memory for an array");
  memset(block.pages, filler, block.pagesBytes);
  return block;
}

static int surroundingsIntact(const Block *block) {
  for (size_t i = 0; i < block->pagesBytes; ++i)
    if ((i < block->offset || i >= block->offset + block->bytes) &&
        block->pages[i] != filler)
      return 0;
  return 1;
}

static void freeBlock(Block *block) { munmap(block->map, block->mapBytes); }

/* Scratch as short and as little aligned as a stage may get it. */
static Block makeScratch(int64_t bytes) {
  uint64_t wanted = ((uint64_t)bytes + 63) / 64 * 64;
  uint64_t offset = (pageBytes - wanted % pageBytes) % pageBytes;
  return makeBlock(offset, wanted);
}

#if defined(__aarch64__)
static uint64_t control(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
static void setControl(uint64_t value) {
  __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory");
}
#else
static uint64_t control(void) { return 0; }
static void setControl(uint64_t value) { (void)value; }
#endif

/* Runs a stage in two tasks, as if two threads shared it. */
static int32_t runStage(StageEntry entry, int64_t programs,
                        int64_t scratchBytes, void *const *data,
                        const int64_t *strides, const void *scalars,
                        uint64_t *state, int *intact) {
  int64_t middle = programs - programs / 3;
  int32_t status = 0;
  for (int task = 0; task < 2 && status == 0; ++task) {
    int64_t begin = task == 0 ? 0 : middle;
    int64_t end = task == 0 ? middle : programs;
    if (begin == end)
      continue;
    Block scratch = makeScratch(scratchBytes);
    uint64_t before = control();
    setControl(*state);
    status = entry(data, strides, scalars, begin, end,
                   scratch.pages + scratch.offset);
    *state = control();
    setControl(before);
    *intact &= surroundingsIntact(&scratch);
    freeBlock(&scratch);
  }
  return status;
}

int main(void) {
  char loadedPath[maxName] = "", path[maxName];
  void *library = NULL;
  for (;;) {
    uint64_t length;
    if (!readAll(&length, sizeof length))
      return 0;
    if (length >= maxName)
      stop("a path is too long");
    take(path, length);
    path[length] = 0;
    if (!library || strcmp(path, loadedPath) != 0) {
      if (library)
        dlclose(library);
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (!library)
        stop(dlerror());
      strcpy(loadedPath, path);
    }

    uint64_t state = takeNumber();
    uint64_t blockCount = takeNumber();
    Block *blocks = calloc(blockCount + 1, sizeof *blocks);
    if (!blocks)
      stop("no memory for a request");
    for (uint64_t i = 0; i < blockCount; ++i) {
      uint64_t offset = takeNumber(), bytes = takeNumber();
      blocks[i] = makeBlock(offset, bytes);
      take(blocks[i].pages + offset, bytes);
    }
    uint64_t viewCount = takeNumber();
    void **data = takeArray(viewCount);
    for (uint64_t i = 0; i < viewCount; ++i) {
      uint64_t block = takeNumber();
      if (block >= blockCount)
        stop("a view lies in no block");
      /* The offset in the block becomes an address. */
      data[i] = blocks[block].pages + blocks[block].offset + (uintptr_t)data[i];
    }
    int64_t *strides = takeArray(takeNumber());
    uint64_t *scalars = takeArray(takeNumber());

    uint64_t stageCount = takeNumber();
    int32_t status = 0;
    int intact = 1;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < stageCount; ++i) {
      char symbol[maxName];
      takeName(symbol);
      int64_t programs = (int64_t)takeNumber();
      int64_t scratchBytes = (int64_t)takeNumber();
      int64_t workspaceBytes = (int64_t)takeNumber();
      int64_t zeroBytes = (int64_t)takeNumber();
      if (status != 0)
        continue;
      StageEntry entry = (StageEntry)dlsym(library, symbol);
      if (!entry)
        stop(dlerror());
      Block workspace = makeScratch(workspaceBytes);
      memset(workspace.pages + workspace.offset, 0xff, (size_t)workspaceBytes);
      memset(workspace.pages + workspace.offset, 0, (size_t)zeroBytes);
      data[viewCount] = workspace.pages + workspace.offset;
      status = runStage(entry, programs, scratchBytes, data, strides, scalars,
                        &state, &intact);
      intact &= surroundingsIntact(&workspace);
      freeBlock(&workspace);
      failed = i;
    }
    for (uint64_t i = 0; i < blockCount; ++i)
      intact &= surroundingsIntact(&blocks[i]);

    putNumber((uint64_t)(int64_t)status);
    putNumber(failed);
    putNumber((uint64_t)intact);
    putNumber(state);
    for (uint64_t i = 0; i < blockCount; ++i) {
      put(blocks[i].pages + blocks[i].offset, blocks[i].bytes);
      freeBlock(&blocks[i]);
    }
    free(blocks);
    free(data);
    free(strides);
    free(scalars);
  }
}
