// SPDX-License-Identifier: Apache-2.0
//
// lld as a library. It reads and writes files and keeps global state: calls take turns, in a
// directory of their own that is removed afterwards. (It can read a memfd but not write one, as it
// renames a temporary beside its output.)

#include "lib/Codegen/CPU/Object.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace otf::cpu {

namespace {

struct Directory {
  SmallString<128> path;
  std::error_code error = sys::fs::createUniqueDirectory("otf-link", path);
  ~Directory() {
    if (!error)
      sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const {
    SmallString<128> result(path);
    sys::path::append(result, name);
    return result.str().str();
  }
};

} // namespace

Expected<std::string> linkShared(ArrayRef<char> object) {
  static std::mutex turn;
  static bool usable = true;
  std::lock_guard<std::mutex> lock(turn);
  if (!usable)
    return createStringError("the linker failed earlier in this process and cannot run again");

  Directory directory;
  if (directory.error)
    return createStringError(directory.error, "cannot make a temporary directory");
  std::string input = directory.file("kernels.o"), output = directory.file("kernels.so");
  {
    std::error_code error;
    raw_fd_ostream stream(input, error);
    if (!error) {
      stream.write(object.data(), object.size());
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return createStringError(error, "cannot write %s", input.c_str());
  }

  // Symbols stay undefined for the loading program: no library is named, so the object loads next
  // to any libm. Kernels are bound at load, not at a first call inside a step.
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "-o",
                             output.c_str(),
                             input.c_str(),
                             "--strip-all",
                             "--gc-sections",
                             "--build-id=none",
                             "--hash-style=gnu",
                             "--threads=1",
                             "-z",
                             "now",
                             "-Bsymbolic"};
  std::string out, err;
  raw_string_ostream outStream(out), errStream(err);
  lld::Result result = lld::lldMain(arguments, outStream, errStream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (result.retCode != 0)
    return createStringError("the linker: " + err);
  auto file = MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError(file.getError(), "cannot read %s", output.c_str());
  return (*file)->getBuffer().str();
}

} // namespace otf::cpu
