// SPDX-License-Identifier: Apache-2.0
//
// The one door to files beside a model. A location is first judged as text (relative, no `..` past the folder), then
// its real path is compared with the folder's, component by component, and that real path is opened without following
// a further link.

#include "lib/Import/FileSet.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace otf {

static bool isWithin(const fs::path &path, const fs::path &folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

llvm::Expected<FileSet> FileSet::in(llvm::StringRef folder) {
  std::error_code error;
  fs::path real = fs::canonical(folder.str(), error);
  if (error)
    return llvm::createStringError(folder.str() + ": the folder cannot be read (" + error.message() + ")");
  FileSet set;
  set.realFolder = real.string();
  return set;
}

llvm::Expected<FileSet> FileSet::reopen(llvm::StringRef folder, llvm::ArrayRef<std::string> files) {
  llvm::Expected<FileSet> set = in(folder);
  if (!set)
    return set.takeError();
  for (auto [i, name] : llvm::enumerate(files)) {
    if (llvm::StringRef(name).starts_with("synthetic "))
      return llvm::createStringError(name + ": these values are in no file (compile the model itself)");
    if (llvm::StringRef(name).starts_with("packed:"))
      return llvm::createStringError(name + ": these values were only in memory (import the model again)");
    llvm::Expected<unsigned> number = set->open(name);
    if (!number)
      return number.takeError();
    if (*number != i)
      return llvm::createStringError(name + ": the file is listed twice in onnx.files (list each file once)");
  }
  return set;
}

llvm::Expected<unsigned> FileSet::open(llvm::StringRef location) {
  auto fail = [&](const std::string &what) {
    return llvm::createStringError("external data '" + location.str() + "': " + what);
  };
  if (location.empty())
    return fail("no location is given (export the model again)");
  if (location.contains('\0'))
    return fail("the location holds a zero byte (the file is corrupt)");
  fs::path relative(location.str());
  if (relative.is_absolute())
    return fail("the path is absolute (a model may only read files in its own folder; make the location relative)");
  fs::path normal = relative.lexically_normal();
  if (*normal.begin() == "..")
    return fail("the path leads outside the model's folder (move the file beside the model)");
  std::error_code error;
  fs::path real = fs::canonical(fs::path(realFolder) / normal, error);
  if (error)
    return fail("the file cannot be found (" + error.message() + "; it belongs beside the model, or --synthetic-weights=SEED makes values up)");
  if (!isWithin(real, realFolder))
    return fail("a symlink leads outside the model's folder (put the file itself beside the model)");
  if (auto known = byRealPath.find(real.string()); known != byRealPath.end())
    return known->second;
  llvm::Expected<MappedFile> map = MappedFile::open(real.string(), /*followLink=*/false);
  if (!map)
    return fail("the file " + llvm::toString(map.takeError()));
  return byRealPath[real.string()] = add(normal.string(), std::move(*map));
}

unsigned FileSet::add(llvm::StringRef name, MappedFile map) {
  maps.push_back(std::move(map));
  files.push_back({name.str(), maps.back().bytes()});
  return files.size() - 1;
}

unsigned FileSet::addPacked(llvm::StringRef tensor, std::vector<std::byte> bytes) {
  packed.push_back(std::move(bytes));
  files.push_back({"packed:" + tensor.str(), packed.back()});
  return files.size() - 1;
}

unsigned FileSet::addSynthetic(llvm::StringRef tensor) {
  files.push_back({"synthetic " + std::to_string(*seedOfAbsent) + ":" + tensor.str(), {}, true});
  return files.size() - 1;
}

bool FileSet::isAbsent(llvm::StringRef location) const {
  fs::path relative(location.str());
  if (location.empty() || location.contains('\0') || relative.is_absolute() || *relative.lexically_normal().begin() == "..")
    return false;
  std::error_code error;
  return fs::symlink_status(fs::path(realFolder) / relative, error).type() == fs::file_type::not_found;
}

size_t FileSet::syntheticCount() const {
  return llvm::count_if(files, [](const File &file) { return file.isSynthetic; });
}

} // namespace otf
