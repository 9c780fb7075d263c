// SPDX-License-Identifier: Apache-2.0
//
// Finding, scanning and parsing a model.

#include "lib/Import/ModelFile.h"

#include "lib/Import/WireScan.h"
#include "lib/Import/onnx.pb.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace otf {

/// "<file>: <message>" of an error that has no file in it yet.
static llvm::Error inFile(const std::string &file, llvm::Error error) {
  return llvm::createStringError(file + ": " + llvm::toString(std::move(error)));
}

/// The model file that a folder means.
static llvm::Expected<fs::path> modelIn(const fs::path &folder) {
  auto fail = [&](const std::string &what) { return llvm::createStringError(folder.string() + ": " + what); };
  std::error_code error;
  if (fs::exists(folder / "model.onnx", error))
    return folder / "model.onnx";
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".onnx")
      found.push_back(it->path());
  if (error)
    return fail("the folder cannot be read (" + error.message() + ")");
  if (found.empty())
    return fail("the folder holds no model (there is no *.onnx in it; name the model's file)");
  if (found.size() > 1)
    return fail("the folder holds " + std::to_string(found.size()) +
                " models (none is called model.onnx; name the file you want)");
  return found.front();
}

ModelFile::ModelFile(std::string path, std::string folder, FileSet files)
    : modelPath(std::move(path)), modelFolder(std::move(folder)), fileSet(std::move(files)),
      model(std::make_unique<::onnx::ModelProto>()) {}

ModelFile::~ModelFile() = default;

llvm::Expected<std::unique_ptr<ModelFile>> ModelFile::open(llvm::StringRef userPath) {
  fs::path path(userPath.str());
  std::error_code error;
  if (fs::is_directory(path, error)) {
    llvm::Expected<fs::path> found = modelIn(path);
    if (!found)
      return found.takeError();
    path = *found;
  }
  std::string name = path.string();
  std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  llvm::Expected<MappedFile> map = MappedFile::open(name);
  if (!map)
    return inFile(name, map.takeError());
  llvm::Expected<FileSet> files = FileSet::in(folder);
  if (!files)
    return files.takeError();
  files->add(path.filename().string(), std::move(*map));
  std::unique_ptr<ModelFile> file(new ModelFile(name, folder, std::move(*files)));

  auto fail = [&](const char *what) { return llvm::createStringError(name + ": " + what); };
  llvm::ArrayRef<std::byte> bytes = file->fileSet.bytes(0);
  llvm::StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (text.empty())
    return fail("the file is empty (is it a download that was cut off?)");
  if (text.starts_with("version https://git-lfs"))
    return fail("this is a Git LFS pointer, not the model (run git lfs pull)");
  llvm::Expected<std::string> slim = scanWire(text);
  if (!slim)
    return inFile(name, slim.takeError());
  if (!file->model->ParseFromString(*slim))
    return fail("protobuf cannot parse it (the file is corrupt or not an ONNX model)");
  if (!file->model->has_graph())
    return fail("the model has no graph (the file is truncated or not an ONNX model)");

  auto companion = [&](const char *other) {
    fs::path candidate = path.parent_path() / other;
    std::error_code ignored;
    return fs::is_regular_file(candidate, ignored) ? candidate.string() : std::string();
  };
  file->beside = {companion("tokenizer.json"), companion("config.json"), companion("generation_config.json"),
                  companion("tokenizer_config.json"), companion("chat_template.jinja")};
  return file;
}

} // namespace otf
