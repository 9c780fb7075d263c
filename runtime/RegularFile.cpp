// SPDX-License-Identifier: Apache-2.0
#include "runtime/RegularFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::runtime {

Result<RegularFile> RegularFile::open(const std::string &path) {
  if (path.empty())
    return badInput("the path is empty");
  // O_NONBLOCK: opening a pipe would wait. For a regular file it means nothing.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return badInput("cannot be opened (", std::strerror(errno), ")");
  struct stat status;
  RegularFile file(fd, 0);
  if (fstat(fd, &status) != 0)
    return badInput("cannot be read (", std::strerror(errno), ")");
  if (!S_ISREG(status.st_mode))
    return badInput(S_ISDIR(status.st_mode) ? "is a folder" : "is a pipe or a device",
                    ", not a regular file");
  file.bytes = uint64_t(status.st_size);
  return file;
}

RegularFile::~RegularFile() {
  if (fd >= 0)
    ::close(fd);
}

/// Whether the system would give as much, which a vector can only find out by throwing.
static bool fitsInMemory(uint64_t bytes) {
  if (bytes > uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)))
    return false;
  void *memory = mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED && munmap(memory, std::max<uint64_t>(bytes, 1)) == 0;
}

Result<std::vector<std::byte>> RegularFile::read() const {
  // Whoever reads it keeps a copy of a part of it.
  if (bytes > INT64_MAX / 2 || !fitsInMemory(2 * bytes))
    return deviceError("its ", bytes, " bytes do not fit in memory twice");
  std::vector<std::byte> content(bytes);
  size_t done = 0;
  while (done < content.size()) {
    ssize_t n = pread(fd, content.data() + done, content.size() - done, off_t(done));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return badInput("cannot be read (", std::strerror(errno), ")");
    if (n == 0)
      break; // somebody has cut it since
    done += size_t(n);
  }
  content.resize(done);
  return content;
}

} // namespace otf::runtime
