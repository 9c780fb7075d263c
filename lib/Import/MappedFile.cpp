// SPDX-License-Identifier: Apache-2.0
//
// Opening never waits on a pipe, and never takes a folder or a device for a file.

#include "lib/Import/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf {

llvm::Expected<MappedFile> MappedFile::open(const std::string &path, bool followLink) {
  auto fail = [](const char *what, const char *why) {
    return llvm::createStringError(std::string(what) + " (" + why + ")");
  };
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (followLink ? 0 : O_NOFOLLOW);
  int fd = ::open(path.c_str(), flags);
  if (fd < 0)
    return fail("cannot be opened", std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0) {
    int error = errno;
    ::close(fd);
    return fail("cannot be read", std::strerror(error));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail("is not a regular file", S_ISDIR(info.st_mode) ? "it is a directory" : "it is a pipe, socket or device");
  }
  size_t size = static_cast<size_t>(info.st_size);
  void *data = nullptr;
  int error = 0;
  if (size != 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    error = errno;
  }
  ::close(fd);
  if (data == MAP_FAILED)
    return fail("cannot be mapped", std::strerror(error));
  return MappedFile(static_cast<const std::byte *>(data), size);
}

MappedFile::MappedFile(MappedFile &&other) noexcept : data(other.data), size(other.size) {
  other.data = nullptr;
  other.size = 0;
}

MappedFile::~MappedFile() {
  if (data)
    munmap(const_cast<std::byte *>(data), size);
}

} // namespace otf
