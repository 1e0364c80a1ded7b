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
#include "support/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tessera {

namespace {

/// Bytes moved by one system call; larger requests are cut by the system.
constexpr size_t transferBytes = size_t{1} << 30;
/// Elements of a strided view are gathered into a block of about this size.
constexpr int64_t gatherBytes = 256 << 10;

Error readError(const std::string &path, std::string code,
                const std::string &why) {
  return {ErrorFamily::Usage,
          std::move(code),
          fmt::format("cannot read '{}': {}", path, why),
          {}};
}

Error systemError(const std::string &path, int reason) {
  return readError(path, "npy.io", std::strerror(reason));
}

/// Puts the file's name before what is wrong with it.
Error atFile(Error error, const std::string &path) {
  error.message = fmt::format("cannot read '{}': {}", path, error.message);
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

/// The byte count of a dense array. False when the product of its extents that
/// are not zero does not fit 63 bits, even if the array has no elements: its
/// strides would not fit either.
bool denseBytes(DType dtype, const std::vector<int64_t> &extents,
                int64_t &bytes) {
  bytes = sizeInBytes(dtype);
  bool isEmpty = false;
  for (int64_t extent : extents) {
    isEmpty |= extent == 0;
    if (extent < 0 ||
        (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)))
      return false;
  }
  if (isEmpty)
    bytes = 0;
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

/// Writes the elements of a view in row-major order.
Result<void> writeElements(support::AtomicFile &file, const TensorRef &tensor) {
  if (tensor.elements() == 0)
    return {};
  const int64_t size = sizeInBytes(tensor.dtype);
  if (isDense(tensor))
    return file.write(tensor.data,
                      static_cast<size_t>(tensor.elements() * size));
  std::vector<char> block;
  block.reserve(static_cast<size_t>(gatherBytes));
  Result<void> status;
  forEachElement(tensor, [&](const char *element) {
    block.insert(block.end(), element, element + size);
    if (static_cast<int64_t>(block.size()) + size <= gatherBytes)
      return true;
    status = file.write(block.data(), block.size());
    block.clear();
    return status.ok();
  });
  return status ? file.write(block.data(), block.size()) : status;
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
    return systemError(path, errno);
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return systemError(path, errno);
  if (!S_ISREG(status.st_mode))
    return readError(path, "npy.io",
                     fmt::format("it is {}, expected a regular file",
                                 S_ISDIR(status.st_mode) ? "a directory"
                                                         : "a special file"));
  const auto fileBytes = static_cast<uint64_t>(status.st_size);

  const auto readInto = [&](void *target, size_t size) -> Result<void> {
    const int reason = readAll(file.get(), target, size);
    if (reason > 0)
      return systemError(path, reason);
    if (reason < 0)
      return readError(path, "npy.truncated",
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
    return readError(path, "npy.truncated",
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
  const std::string shape =
      header->extents.empty()
          ? std::string("1")
          : fmt::format("{}", fmt::join(header->extents, "x"));
  if (!denseBytes(type->dtype, header->extents, bytes))
    return readError(path, "npy.shape",
                     fmt::format("the header promises {} elements of {}, whose "
                                 "strides do not fit 63 bits",
                                 shape, name(type->dtype)));
  if (static_cast<uint64_t>(bytes) != present)
    return readError(
        path,
        static_cast<uint64_t>(bytes) < present ? "npy.trailing"
                                               : "npy.truncated",
        fmt::format("the header promises {} elements of {} ({} bytes), but the "
                    "file has {} bytes of data",
                    shape, name(type->dtype), bytes, present));

  Result<Array> array = Array::allocate(type->dtype, header->extents);
  if (!array)
    return atFile(array.error(), path);
  // head may hold the first data bytes of a very short header; read again from
  // the right place.
  if (::lseek(file.get(), static_cast<off_t>(prefix->dataOffset), SEEK_SET) < 0)
    return systemError(path, errno);
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
    return Error{ErrorFamily::Usage,
                 "npy.view",
                 fmt::format("cannot write '{}': a view of extents {} with "
                             "strides {} is not one of memory",
                             path, fmt::join(tensor.extents, "x"),
                             fmt::join(tensor.strides, ",")),
                 {}};
  const auto asNpy = [](Error error) {
    error.code = "npy.io";
    return error;
  };
  Result<support::AtomicFile> file = support::AtomicFile::create(path);
  if (!file)
    return asNpy(file.error());
  const std::string header =
      runtime::printNpyHeader(tensor.dtype, tensor.extents);
  if (Result<void> status = file->write(header.data(), header.size()); !status)
    return asNpy(status.error());
  if (Result<void> status = writeElements(*file, tensor); !status)
    return asNpy(status.error());
  if (Result<void> status = file->commit(); !status)
    return asNpy(status.error());
  return {};
}

} // namespace tessera
