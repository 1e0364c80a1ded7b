//===- npy.cpp - Arrays in .npy files -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// File access around the header: sizes are checked before memory is allocated,
// and a file appears under its name only when it is complete.
//
//===----------------------------------------------------------------------===//

#include "tessera/npy.h"

#include "runtime/host/npy_header.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tessera {

namespace {

/// Bytes moved by one system call; larger requests are cut by the system.
constexpr size_t transferBytes = size_t{1} << 30;
/// Elements of a strided view are gathered into a block of about this size.
constexpr int64_t gatherBytes = 256 << 10;

Error fileError(const std::string &path, std::string code,
                std::string message) {
  return {ErrorFamily::Usage, std::move(code), std::move(message),
          SourcePosition{path, 0, 0}};
}

Error systemError(const std::string &path, std::string_view action,
                  int reason) {
  return fileError(path, "npy.io",
                   fmt::format("cannot {}: {}", action, std::strerror(reason)));
}

Error atFile(Error error, const std::string &path) {
  error.where.file = path;
  return error;
}

class FileDescriptor {
public:
  explicit FileDescriptor(int number) : number(number) {}
  FileDescriptor(const FileDescriptor &) = delete;
  FileDescriptor &operator=(const FileDescriptor &) = delete;
  ~FileDescriptor() {
    if (number >= 0)
      ::close(number);
  }
  int get() const { return number; }
  /// Closes now; the close can report a write error.
  int closeNow() { return ::close(std::exchange(number, -1)); }

private:
  int number;
};

/// Reads exactly `size` bytes; 0, or the reason as an errno value, or -1 at the
/// end of the file.
int readAll(int file, void *target, size_t size) {
  auto *next = static_cast<char *>(target);
  while (size > 0) {
    const ssize_t got = ::read(file, next, std::min(size, transferBytes));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return errno;
    if (got == 0)
      return -1;
    next += got;
    size -= static_cast<size_t>(got);
  }
  return 0;
}

/// Writes all bytes; 0, or the reason as an errno value.
int writeAll(int file, const void *source, size_t size) {
  const auto *next = static_cast<const char *>(source);
  while (size > 0) {
    const ssize_t done = ::write(file, next, std::min(size, transferBytes));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return errno;
    next += done;
    size -= static_cast<size_t>(done);
  }
  return 0;
}

/// The byte count of a dense array; false when it does not fit 63 bits.
bool denseBytes(DType dtype, const std::vector<int64_t> &extents,
                int64_t &bytes) {
  bytes = 0;
  for (int64_t extent : extents)
    if (extent == 0)
      return true;
  bytes = sizeInBytes(dtype);
  for (int64_t extent : extents)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return false;
  return true;
}

/// Calls visit(address) for every element in row-major order.
template <typename Visit>
bool forEachElement(const TensorRef &tensor, Visit visit) {
  const size_t rank = tensor.extents.size();
  if (tensor.elements() == 0)
    return true;
  const int64_t size = sizeInBytes(tensor.dtype);
  std::vector<int64_t> index(rank, 0);
  const char *address = static_cast<const char *>(tensor.data);
  for (;;) {
    if (!visit(address))
      return false;
    size_t axis = rank;
    for (;;) {
      if (axis == 0)
        return true;
      --axis;
      address += tensor.strides[axis] * size;
      if (++index[axis] < tensor.extents[axis])
        break;
      address -= tensor.extents[axis] * tensor.strides[axis] * size;
      index[axis] = 0;
    }
  }
}

bool isDense(const TensorRef &tensor) {
  int64_t stride = 1;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    if (tensor.extents[axis] > 1 && tensor.strides[axis] != stride)
      return false;
    stride *= tensor.extents[axis];
  }
  return true;
}

void swapElements(void *data, int64_t bytes, int64_t size) {
  auto *next = static_cast<unsigned char *>(data);
  for (unsigned char *end = next + bytes; next != end; next += size)
    for (int64_t i = 0; i < size / 2; ++i)
      std::swap(next[i], next[size - 1 - i]);
}

/// `columnMajor` holds the elements in Fortran order.
Result<Array> toRowMajor(const Array &columnMajor) {
  Result<Array> result =
      Array::allocate(columnMajor.dtype, columnMajor.extents);
  if (!result)
    return result;
  TensorRef source = columnMajor.view();
  int64_t stride = 1;
  for (size_t axis = 0; axis < source.extents.size(); ++axis) {
    source.strides[axis] = stride;
    stride *= source.extents[axis];
  }
  const int64_t size = sizeInBytes(source.dtype);
  char *next = result->buffer.as<char>();
  forEachElement(source, [&](const char *element) {
    std::memcpy(next, element, static_cast<size_t>(size));
    next += size;
    return true;
  });
  return result;
}

/// Writes the elements of a view in row-major order; 0 or an errno value.
int writeElements(int file, const TensorRef &tensor) {
  if (tensor.elements() == 0)
    return 0;
  const int64_t size = sizeInBytes(tensor.dtype);
  if (isDense(tensor))
    return writeAll(file, tensor.data,
                    static_cast<size_t>(tensor.elements() * size));
  std::vector<char> block;
  block.reserve(static_cast<size_t>(gatherBytes));
  int reason = 0;
  const bool complete = forEachElement(tensor, [&](const char *element) {
    block.insert(block.end(), element, element + size);
    if (static_cast<int64_t>(block.size()) + size <= gatherBytes)
      return true;
    reason = writeAll(file, block.data(), block.size());
    block.clear();
    return reason == 0;
  });
  return complete ? writeAll(file, block.data(), block.size()) : reason;
}

/// The file that a rename to `path` should replace: where a link points to.
Result<std::string> resolveTarget(const std::string &path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    struct stat link;
    if (::lstat(path.c_str(), &link) == 0)
      return fileError(path, "npy.io",
                       "is a symbolic link to nowhere, expected a file");
    return path;
  }
  if (!S_ISREG(status.st_mode))
    return fileError(path, "npy.io",
                     fmt::format("is {}, expected a regular file or a new name",
                                 S_ISDIR(status.st_mode) ? "a directory"
                                                         : "a special file"));
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved)
    return systemError(path, "resolve the name", errno);
  std::string target(resolved);
  std::free(resolved);
  return target;
}

/// Makes the rename durable. Not every file system can; that is no failure.
void syncDirectoryOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const FileDescriptor file(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0)
    ::fsync(file.get());
}

} // namespace

Result<Array> Array::allocate(DType dtype, std::vector<int64_t> extents) {
  Array array;
  array.dtype = dtype;
  int64_t bytes = 0;
  if (!denseBytes(dtype, extents, bytes))
    return Error{ErrorFamily::Unsupported,
                 "memory.exhausted",
                 fmt::format("an array of extents {} does not fit 63 bits",
                             fmt::join(extents, "x")),
                 {}};
  Result<Buffer> buffer = Buffer::allocate(bytes);
  if (!buffer)
    return buffer.error();
  array.buffer = std::move(*buffer);
  array.extents = std::move(extents);
  return array;
}

Result<Array> readNpy(const std::string &path, std::optional<DType> expected) {
  // Without O_NONBLOCK a named pipe would be waited for before it is refused.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return systemError(path, "open the file", errno);
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return systemError(path, "read the file's size", errno);
  if (!S_ISREG(status.st_mode))
    return fileError(path, "npy.io",
                     fmt::format("is {}, expected a regular file",
                                 S_ISDIR(status.st_mode) ? "a directory"
                                                         : "a special file"));
  const auto fileBytes = static_cast<uint64_t>(status.st_size);

  const auto readInto = [&](void *target, size_t size) -> Result<void> {
    const int reason = readAll(file.get(), target, size);
    if (reason > 0)
      return systemError(path, "read the file", reason);
    if (reason < 0)
      return fileError(path, "npy.truncated",
                       "the file became shorter while it was read");
    return {};
  };

  std::string head(std::min<uint64_t>(fileBytes, runtime::npyPrefixBytes),
                   '\0');
  if (Result<void> result = readInto(head.data(), head.size()); !result)
    return result.error();
  Result<runtime::NpyPrefix> prefix = runtime::parseNpyPrefix(head);
  if (!prefix)
    return atFile(prefix.error(), path);
  if (prefix->dataOffset > fileBytes)
    return fileError(path, "npy.truncated",
                     fmt::format("the header ends at byte {}, but the file has "
                                 "{} bytes",
                                 prefix->dataOffset, fileBytes));
  // The prefix of version 1.0 is shorter than what was read.
  const size_t already = head.size();
  head.resize(std::max<size_t>(prefix->dataOffset, already));
  if (head.size() > already)
    if (Result<void> result =
            readInto(head.data() + already, head.size() - already);
        !result)
      return result.error();
  Result<runtime::NpyHeader> header =
      runtime::parseNpyDictionary(std::string_view(head).substr(
          prefix->dictionaryOffset,
          prefix->dataOffset - prefix->dictionaryOffset));
  if (!header)
    return atFile(header.error(), path);
  Result<runtime::NpyType> type =
      runtime::resolveNpyType(header->descr, expected);
  if (!type)
    return atFile(type.error(), path);

  int64_t bytes = 0;
  const uint64_t present = fileBytes - prefix->dataOffset;
  const bool fits = denseBytes(type->dtype, header->extents, bytes);
  if (!fits || static_cast<uint64_t>(bytes) != present)
    return fileError(
        path,
        fits && static_cast<uint64_t>(bytes) < present ? "npy.trailing"
                                                       : "npy.truncated",
        fmt::format("the header promises {} elements of {} ({} bytes), but the "
                    "file has {} bytes of data",
                    header->extents.empty()
                        ? std::string("1")
                        : fmt::format("{}", fmt::join(header->extents, "x")),
                    name(type->dtype),
                    fits ? std::to_string(bytes) : "more than 2^63", present));

  Result<Array> array = Array::allocate(type->dtype, header->extents);
  if (!array)
    return atFile(array.error(), path);
  // head may hold the first data bytes of a very short header; read again from
  // the right place.
  if (::lseek(file.get(), static_cast<off_t>(prefix->dataOffset), SEEK_SET) < 0)
    return systemError(path, "read the file", errno);
  if (Result<void> result =
          readInto(array->buffer.data(), static_cast<size_t>(bytes));
      !result)
    return result.error();
  if (type->swapBytes)
    swapElements(array->buffer.data(), bytes, sizeInBytes(type->dtype));
  if (header->fortranOrder && header->extents.size() > 1 && bytes > 0) {
    Result<Array> rowMajor = toRowMajor(*array);
    if (!rowMajor)
      return atFile(rowMajor.error(), path);
    return rowMajor;
  }
  return array;
}

Result<void> writeNpy(const std::string &path, const TensorRef &tensor) {
  int64_t bytes = 0;
  const bool sound = tensor.strides.size() == tensor.extents.size() &&
                     tensor.extents.size() <= runtime::maxNpyRank &&
                     denseBytes(tensor.dtype, tensor.extents, bytes) &&
                     reachableBytes(tensor) && (tensor.data || bytes == 0);
  if (!sound)
    return fileError(path, "npy.view",
                     fmt::format("cannot write a view of extents {} with "
                                 "strides {}: it is not one of memory",
                                 fmt::join(tensor.extents, "x"),
                                 fmt::join(tensor.strides, ",")));
  Result<std::string> target = resolveTarget(path);
  if (!target)
    return target.error();

  static std::atomic<unsigned> counter{0};
  const std::string temporary =
      fmt::format("{}.{}-{}.tmp", *target, ::getpid(), counter.fetch_add(1));
  FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0)
    return systemError(path, fmt::format("create '{}'", temporary), errno);

  const std::string header =
      runtime::printNpyHeader(tensor.dtype, tensor.extents);
  int reason = writeAll(file.get(), header.data(), header.size());
  if (reason == 0)
    reason = writeElements(file.get(), tensor);
  if (reason == 0 && ::fsync(file.get()) != 0)
    reason = errno;
  if (file.closeNow() != 0 && reason == 0)
    reason = errno;
  if (reason == 0 && ::rename(temporary.c_str(), target->c_str()) != 0)
    reason = errno;
  if (reason != 0) {
    ::unlink(temporary.c_str());
    return systemError(path, "write the file", reason);
  }
  syncDirectoryOf(*target);
  return {};
}

} // namespace tessera
