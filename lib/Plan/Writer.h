// SPDX-License-Identifier: Apache-2.0
//
// Writes a plan file section by section, so that weights stream through one small buffer. A
// reader never sees half a plan: bytes go to an unnamed or temporary file in the target's folder,
// which takes the target's name only when all of it is on disk. Until finish() has succeeded an
// older file of that name stays as it is, and a Writer that goes away without it leaves nothing.
//
//   Writer writer("model.plan");
//   writer.beginSection(SectionKind::weights);
//   writer.append(bytes);                       // any number of times
//   writer.endSection();
//   if (std::string error; !writer.finish(error)) ...
//
// The first failure is kept and the calls after it do nothing, so only finish() must be checked;
// ok() lets long work stop early.
#ifndef OTF_LIB_PLAN_WRITER_H
#define OTF_LIB_PLAN_WRITER_H

#include "include/otf/PlanFormat.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace otf::plan {

class Writer {
public:
  explicit Writer(std::string path);
  /// Bytes go to the file `unfinished` in the same folder, which is there from the beginning, keeps what it holds, and is left
  /// behind without finish(): so that a later Writer can go on. Only one at a time.
  Writer(std::string path, std::string unfinished);
  ~Writer();
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  void beginSection(SectionKind kind);
  void append(std::span<const std::byte> bytes);
  void append(const void *data, size_t size) {
    append({static_cast<const std::byte *>(data), size});
  }
  /// Zeros up to a multiple of `alignment` from the section's start.
  void align(uint64_t alignment);
  /// Goes on after `bytes` of the current section that the unfinished file holds already; only at the section's beginning.
  void adopt(uint64_t bytes);
  /// What has been appended is in the file.
  void flush();
  /// Bytes in the current section so far: where the next append goes.
  uint64_t position() const;
  void endSection();

  bool ok() const { return error_.empty(); }
  /// Writes the header, flushes to disk and gives the file its name. On failure `error` is one
  /// sentence.
  [[nodiscard]] bool finish(std::string &error);

private:
  void fail(const char *what);
  void put(const void *data, size_t size);
  void close();

  std::string path_, folder_, temporary_; // temporary_ is empty while the file has no name
  bool keeps_ = false;                    // temporary_ is an unfinished file
  std::string error_;
  int file_ = -1;
  uint64_t offset_ = 0; // of the next byte in the file
  std::vector<std::byte> buffer_;
  std::vector<SectionEntry> table_;
  bool inSection_ = false;
  struct Hash;
  std::unique_ptr<Hash> hash_;
};

} // namespace otf::plan

#endif // OTF_LIB_PLAN_WRITER_H
