// SPDX-License-Identifier: Apache-2.0
//
// The numbered files that a model's weights are in.
//
// Problem: a model names other files by paths that a stranger wrote, and weights are larger than memory.
// Approach: one function opens files, only inside one folder; they are mapped once and stay mapped as long as this
// object lives. A tensor is then (file, offset, length). Values that a model stores unpacked (float_data, …) are
// packed into memory here and counted as files too.

#ifndef OTF_LIB_IMPORT_FILESET_H
#define OTF_LIB_IMPORT_FILESET_H

#include "lib/Import/MappedFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <deque>
#include <optional>
#include <vector>

namespace otf {

class FileSet {
public:
  static llvm::Expected<FileSet> in(llvm::StringRef folder);
  /// The files that a module's `onnx.folder` and `onnx.files` name, under the same numbers.
  static llvm::Expected<FileSet> reopen(llvm::StringRef folder, llvm::ArrayRef<std::string> files);

  /// Number of the file at a location relative to the folder, mapped at the first call. An error's message is
  /// "external data '<location>': what (why, and what to try)".
  llvm::Expected<unsigned> open(llvm::StringRef location);
  /// Counts a file that is open already.
  unsigned add(llvm::StringRef name, MappedFile map);
  /// Counts the packed values of a tensor.
  unsigned addPacked(llvm::StringRef tensor, std::vector<std::byte> bytes);

  /// Counts a tensor whose file is absent and whose values are made of a seed (SyntheticValues.h).
  unsigned addSynthetic(llvm::StringRef tensor);

  /// Tensors whose files are absent get values made of `seed`.
  void synthesize(uint64_t seed) { seedOfAbsent = seed; }
  std::optional<uint64_t> syntheticSeed() const { return seedOfAbsent; }
  /// Whether a location is one in the folder, and nothing is there.
  bool isAbsent(llvm::StringRef location) const;
  bool isSynthetic(unsigned number) const { return files[number].isSynthetic; }
  size_t syntheticCount() const;

  unsigned size() const { return files.size(); }
  llvm::ArrayRef<std::byte> bytes(unsigned number) const { return files[number].bytes; }
  /// Path relative to the folder, `packed:<tensor>` or `synthetic <seed>:<tensor>`.
  llvm::StringRef name(unsigned number) const { return files[number].name; }

private:
  struct File {
    std::string name;
    llvm::ArrayRef<std::byte> bytes;
    bool isSynthetic = false;
  };

  std::string realFolder;
  std::optional<uint64_t> seedOfAbsent;
  std::vector<File> files;
  std::deque<MappedFile> maps;
  std::deque<std::vector<std::byte>> packed;
  llvm::StringMap<unsigned> byRealPath;
};

} // namespace otf

#endif
