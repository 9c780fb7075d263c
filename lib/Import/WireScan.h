// SPDX-License-Identifier: Apache-2.0
//
// Makes a model's message small enough for protobuf.
//
// Problem: protobuf copies every byte it parses and stops at 2 GiB, but nearly all bytes of a model are weights in
// TensorProto.raw_data.
// Approach: one pass over the mapped file on the wire copies everything but raw_data and leaves in its place where the
// bytes are. Every raw_data is replaced, the short ones too: so 16 bytes there are always a span, never a tensor.

#ifndef OTF_LIB_IMPORT_WIRESCAN_H
#define OTF_LIB_IMPORT_WIRESCAN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace otf {

/// Where in the model file the bytes of a raw_data are.
struct RawSpan {
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// The slim copy of a serialized ModelProto. The message of an error is "byte 123: what (why)".
llvm::Expected<std::string> scanWire(llvm::StringRef model);

/// The span that a slim message has as its raw_data.
RawSpan decodeSpan(llvm::StringRef rawData);

} // namespace otf

#endif
