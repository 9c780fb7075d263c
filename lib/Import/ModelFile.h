// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model on disk: its message without weights, and the files that its weights are in.

#ifndef OTF_LIB_IMPORT_MODELFILE_H
#define OTF_LIB_IMPORT_MODELFILE_H

#include "lib/Import/FileSet.h"

#include <memory>

namespace onnx {
class ModelProto;
}

namespace otf {

class ModelFile {
public:
  /// Files that exporters put beside a model; empty where there is none.
  struct Companions {
    std::string tokenizer, config, generationConfig, tokenizerConfig, chatTemplate;
  };

  /// Opens a model file, or a folder with a `model.onnx` or just one `*.onnx`. An error's message is whole:
  /// "<file>: <what> (<why, and what to try>)".
  static llvm::Expected<std::unique_ptr<ModelFile>> open(llvm::StringRef path);
  ~ModelFile();

  /// The message, in which every raw_data is a RawSpan (WireScan.h) into file 0.
  const ::onnx::ModelProto &proto() const { return *model; }
  /// The model's file as the user called it, and its folder ("." for none).
  llvm::StringRef path() const { return modelPath; }
  llvm::StringRef folder() const { return modelFolder; }
  const Companions &companions() const { return beside; }
  /// File 0 is the model. Importing adds the others.
  FileSet &files() { return fileSet; }
  const FileSet &files() const { return fileSet; }

private:
  ModelFile(std::string path, std::string folder, FileSet files);

  std::string modelPath, modelFolder;
  FileSet fileSet;
  Companions beside;
  std::unique_ptr<::onnx::ModelProto> model;
};

} // namespace otf

#endif
