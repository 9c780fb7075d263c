// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/ModelKey.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/FileSet.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

using namespace mlir;

namespace otf {

namespace {

/// Text is hashed as it is printed, and kept nowhere.
class HashStream : public llvm::raw_ostream {
public:
  HashStream() { XXH3_128bits_reset(&state); }
  ~HashStream() override { flush(); }

  void write_impl(const char *text, size_t size) override {
    XXH3_128bits_update(&state, text, size);
    position += size;
  }
  uint64_t current_pos() const override { return position; }
  std::string digest() {
    flush();
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return llvm::utohexstr(hash.high64, /*LowerCase=*/true, 16) + llvm::utohexstr(hash.low64, true, 16);
  }

private:
  XXH3_state_t state;
  uint64_t position = 0;
};

constexpr uint64_t kPiece = 4096;

void addPieces(HashStream &out, onnx::FileBlobAttr blob, const FileSet &files) {
  if (blob.getFile() >= files.size())
    return;
  llvm::ArrayRef<std::byte> bytes = files.bytes(unsigned(blob.getFile()));
  uint64_t begin = std::min<uint64_t>(blob.getOffset(), bytes.size()), length = std::min<uint64_t>(blob.getLength(), bytes.size() - begin);
  uint64_t piece = std::min(kPiece, length);
  for (uint64_t at : {uint64_t(0), (length - piece) / 2, length - piece})
    out.write(reinterpret_cast<const char *>(bytes.data() + begin + at), piece);
}

} // namespace

std::string modelKey(ModuleOp imported, const FileSet &files) {
  HashStream out;
  for (Operation &op : *imported.getBody()) {
    op.print(out, OpPrintingFlags().useLocalScope().assumeVerified());
    for (NamedAttribute attribute : op.getAttrs())
      if (auto blob = dyn_cast<onnx::FileBlobAttr>(attribute.getValue()))
        addPieces(out, blob, files);
  }
  return out.digest();
}

} // namespace otf
