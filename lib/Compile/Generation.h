// SPDX-License-Identifier: Apache-2.0
//
// What generating text needs to know of a language model beside its graph: end tokens, context,
// chat template. Exporters leave it in JSON files beside the model, some of them or none.
#ifndef OTF_LIB_COMPILE_GENERATION_H
#define OTF_LIB_COMPILE_GENERATION_H

#include "lib/Import/ModelFile.h"

#include "llvm/Support/Error.h"

#include <string>

namespace otf {

/// {"bos", "eos": [...], "context", "chat_template"} as JSON; a key that no file knows is left out,
/// and the text is empty where there is none at all. An error is a whole sentence with its file.
llvm::Expected<std::string> generationSettings(const ModelFile::Companions &files);

/// The bytes of a file; empty for an empty path.
llvm::Expected<std::string> readWhole(const std::string &path);

} // namespace otf

#endif // OTF_LIB_COMPILE_GENERATION_H
