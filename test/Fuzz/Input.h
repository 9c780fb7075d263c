// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a fuzzer as the file that the importer maps.

#ifndef OTF_TEST_FUZZ_INPUT_H
#define OTF_TEST_FUZZ_INPUT_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace otf::fuzz {

/// The path of a file with these bytes, alone in a folder of this process; the next call overwrites it.
inline std::string fileWith(const uint8_t *data, size_t size) {
  static const std::string folder = [] { // utils/fuzz removes TMPDIR
    const char *temporary = std::getenv("TMPDIR");
    std::string name = std::string(temporary ? temporary : "/tmp") + "/otf-fuzz-XXXXXX";
    if (!mkdtemp(name.data()))
      std::abort();
    return name;
  }();
  std::string path = folder + "/model.onnx";
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, data, size) != ssize_t(size) || close(file) != 0)
    std::abort();
  return path;
}

} // namespace otf::fuzz

/// LLVM's libraries are built without the sanitizer, and their allocators do not undo what its headers poison here.
extern "C" __attribute__((used, visibility("default"))) const char *__asan_default_options() { return "allow_user_poisoning=0:detect_leaks=0"; }

#endif
