// SPDX-License-Identifier: Apache-2.0
//
// A file opened for reading, of which its size is all there will ever be to read. A pipe would make
// us wait for a writer, and a device may have no end, so both are refused before they are read.
#ifndef OTF_RUNTIME_REGULARFILE_H
#define OTF_RUNTIME_REGULARFILE_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace otf::runtime {

class RegularFile {
public:
  static Result<RegularFile> open(const std::string &path);
  RegularFile(RegularFile &&other) noexcept
      : fd(std::exchange(other.fd, -1)), bytes(other.bytes) {}
  RegularFile &operator=(RegularFile &&) = delete;
  ~RegularFile();

  int descriptor() const { return fd; }
  uint64_t size() const { return bytes; }
  /// The whole content. A file for which there is no memory is refused: a size costs its author
  /// nothing, because a file may have holes.
  Result<std::vector<std::byte>> read() const;

private:
  RegularFile(int fd, uint64_t bytes) : fd(fd), bytes(bytes) {}
  int fd;
  uint64_t bytes;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_REGULARFILE_H
