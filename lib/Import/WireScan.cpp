// SPDX-License-Identifier: Apache-2.0
//
// The scan walks the messages that may hold a TensorProto, by a table of (message, field) -> message; all else is
// copied as it is. Open messages are an explicit stack of bounded depth, each with its own output, because a message's
// length stands before its content and is known only at its end. Documentation strings and training graphs are dropped.

#include "lib/Import/WireScan.h"

#include "lib/Import/WireReader.h"
#include "llvm/ADT/SmallVector.h"

#include <cstring>
#include <optional>
#include <vector>

namespace otf {

namespace {

/// protobuf's own limit is 100 messages; it counts some that we do not open.
constexpr unsigned kMaxDepth = 96;
/// protobuf's limit is 2 GiB; typed data (float_data, …) beyond this would be copied several times.
constexpr uint64_t kMaxSlim = uint64_t(1) << 30;

enum class Message { Model, Graph, Function, Node, Attribute, Tensor, Sparse };

enum class Action { Copy, Drop, Open, Span };

struct Step {
  Action action = Action::Copy;
  Message message = Message::Model;
};

Step stepFor(Message in, uint32_t field) {
  auto open = [](Message message) { return Step{Action::Open, message}; };
  switch (in) {
  case Message::Model:
    if (field == 7) return open(Message::Graph);
    if (field == 25) return open(Message::Function);
    if (field == 6 || field == 20) return {Action::Drop}; // doc_string, training_info
    break;
  case Message::Graph:
    if (field == 1) return open(Message::Node);
    if (field == 5) return open(Message::Tensor);
    if (field == 15) return open(Message::Sparse);
    if (field == 10) return {Action::Drop}; // doc_string
    break;
  case Message::Function:
    if (field == 7) return open(Message::Node);
    if (field == 11) return open(Message::Attribute);
    if (field == 8) return {Action::Drop}; // doc_string
    break;
  case Message::Node:
    if (field == 5) return open(Message::Attribute);
    if (field == 6) return {Action::Drop}; // doc_string
    break;
  case Message::Attribute:
    if (field == 5 || field == 10) return open(Message::Tensor);
    if (field == 6 || field == 11) return open(Message::Graph);
    if (field == 22 || field == 23) return open(Message::Sparse);
    if (field == 13) return {Action::Drop}; // doc_string
    break;
  case Message::Sparse:
    if (field == 1 || field == 2) return open(Message::Tensor);
    break;
  case Message::Tensor:
    if (field == 9) return {Action::Span};
    if (field == 12) return {Action::Drop}; // doc_string
    break;
  }
  return {};
}

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void appendBytes(std::string &out, uint32_t field, llvm::StringRef bytes) {
  appendVarint(out, uint64_t(field) << 3 | static_cast<unsigned>(WireType::Bytes));
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

struct OpenMessage {
  Message kind;
  uint32_t fieldInParent;
  WireReader reader;
  std::string out;
};

} // namespace

RawSpan decodeSpan(llvm::StringRef rawData) {
  RawSpan span;
  if (rawData.size() == sizeof(span))
    std::memcpy(&span, rawData.data(), sizeof(span));
  return span;
}

llvm::Expected<std::string> scanWire(llvm::StringRef model) {
  auto fail = [&](const char *at, const char *what) {
    return llvm::createStringError("byte " + std::to_string(at - model.data()) + ": " + what);
  };
  std::vector<OpenMessage> stack;
  stack.push_back({Message::Model, 0, WireReader(model), {}});
  uint64_t copied = 0;
  while (true) {
    OpenMessage &top = stack.back();
    if (top.reader.atEnd()) {
      std::string done = std::move(top.out);
      uint32_t field = top.fieldInParent;
      stack.pop_back();
      if (stack.empty())
        return done;
      appendBytes(stack.back().out, field, done);
      continue;
    }
    const char *start = top.reader.position();
    WireField field;
    if (!top.reader.next(field))
      return fail(start, "no protobuf field starts here (the file is truncated, corrupt, or not an ONNX model)");
    Step step = stepFor(top.kind, field.number);
    if (step.action != Action::Copy && field.type != WireType::Bytes)
      return fail(start, "a field has another type than ONNX says (the file is corrupt or not an ONNX model)");
    switch (step.action) {
    case Action::Drop:
      break;
    case Action::Open:
      if (stack.size() == kMaxDepth)
        return fail(start, "messages are nested too deeply (more than 96 levels; flatten the model's subgraphs)");
      stack.push_back({step.message, field.number, WireReader(field.payload), {}});
      break;
    case Action::Span: {
      RawSpan span{static_cast<uint64_t>(field.payload.data() - model.data()), field.payload.size()};
      appendBytes(top.out, field.number, llvm::StringRef(reinterpret_cast<const char *>(&span), sizeof(span)));
      break;
    }
    case Action::Copy:
      copied += top.reader.position() - start;
      if (copied > kMaxSlim)
        return fail(start, "more than 1 GiB lies outside raw_data (store the weights as raw_data or external data)");
      top.out.append(start, top.reader.position() - start);
      break;
    }
  }
}

} // namespace otf
