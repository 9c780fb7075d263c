// SPDX-License-Identifier: Apache-2.0
//
// A read-only mapping of a regular file that a stranger may have named.

#ifndef OTF_LIB_IMPORT_MAPPEDFILE_H
#define OTF_LIB_IMPORT_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <string>

namespace otf {

class MappedFile {
public:
  /// Opens the path as it is. The message of an error is "what (why)".
  static llvm::Expected<MappedFile> open(const std::string &path, bool followLink = true);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&) = delete;
  ~MappedFile();
  llvm::ArrayRef<std::byte> bytes() const { return {data, size}; }

private:
  MappedFile(const std::byte *data, size_t size) : data(data), size(size) {}
  const std::byte *data;
  size_t size;
};

} // namespace otf

#endif
