// SPDX-License-Identifier: Apache-2.0
//
// Kahn's algorithm with a heap of positions.

#include "lib/Import/GraphOrder.h"

#include "llvm/ADT/StringMap.h"

#include <queue>

namespace otf {

std::string describe(const ::onnx::NodeProto &node) {
  if (!node.name().empty())
    return "node '" + node.name() + "' (" + node.op_type() + ")";
  for (const std::string &output : node.output())
    if (!output.empty())
      return "node " + node.op_type() + " -> '" + output + "'";
  return "node " + node.op_type();
}

static llvm::Error fail(const ::onnx::NodeProto &node, const std::string &what) {
  return llvm::createStringError(describe(node) + ": " + what);
}

/// Names that a node uses: its inputs, and what its subgraphs take from around them. (Protobuf bounds their depth.)
static void collectUses(const ::onnx::NodeProto &node, std::vector<llvm::StringRef> &names) {
  for (const std::string &input : node.input())
    if (!input.empty())
      names.push_back(input);
  for (const ::onnx::AttributeProto &attribute : node.attribute()) {
    if (!attribute.has_g())
      continue;
    const ::onnx::GraphProto &graph = attribute.g();
    llvm::StringSet<> own;
    for (const ::onnx::ValueInfoProto &input : graph.input())
      own.insert(input.name());
    for (const ::onnx::TensorProto &tensor : graph.initializer())
      own.insert(tensor.name());
    for (const ::onnx::NodeProto &inner : graph.node())
      for (const std::string &output : inner.output())
        own.insert(output);
    std::vector<llvm::StringRef> used;
    for (const ::onnx::NodeProto &inner : graph.node())
      collectUses(inner, used);
    for (const ::onnx::ValueInfoProto &output : graph.output())
      used.push_back(output.name());
    for (llvm::StringRef name : used)
      if (!own.contains(name))
        names.push_back(name);
  }
}

/// Follows unmet needs from a node until one comes twice: those are on a cycle.
static llvm::Error failOnCycle(const NodeList &nodes, const llvm::StringMap<int> &makers,
                               const std::vector<int> &needs) {
  auto unmet = [&](int node) {
    std::vector<llvm::StringRef> names;
    collectUses(nodes[node], names);
    for (llvm::StringRef input : names)
      if (auto maker = makers.find(input); maker != makers.end() && needs[maker->second] > 0)
        return maker->second;
    return node;
  };
  int at = 0;
  while (needs[at] == 0)
    ++at;
  for (std::vector<bool> seen(nodes.size()); !seen[at]; at = unmet(at))
    seen[at] = true;
  int other = unmet(at);
  if (other == at)
    return fail(nodes[at], "needs its own output (the graph has a cycle; export the model again)");
  return fail(nodes[at], "needs the output of " + describe(nodes[other]) +
                             ", which needs this node's (the graph has a cycle; export the model again)");
}

llvm::Expected<std::vector<int>> orderNodes(const NodeList &nodes, const llvm::StringSet<> &given,
                                            llvm::function_ref<bool(llvm::StringRef)> isOutside) {
  llvm::StringMap<int> makers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output()) {
      if (output.empty())
        continue;
      if (given.contains(output))
        return fail(nodes[i], "output '" + output + "' is also an input or initializer (a value needs a name of its own)");
      auto [maker, isNew] = makers.try_emplace(output, i);
      if (!isNew)
        return fail(nodes[i], "output '" + output + "' is also an output of " + describe(nodes[maker->second]) +
                                  " (a value needs a name of its own)");
    }

  std::vector<int> needs(nodes.size());
  std::vector<std::vector<int>> users(nodes.size());
  std::vector<llvm::StringRef> names;
  for (int i = 0; i < nodes.size(); ++i) {
    names.clear();
    collectUses(nodes[i], names);
    for (llvm::StringRef input : names) {
      if (given.contains(input))
        continue;
      auto maker = makers.find(input);
      if (maker == makers.end() && isOutside(input))
        continue;
      if (maker == makers.end())
        return fail(nodes[i], "input '" + input.str() + "' is not defined (no node, input or initializer has that name; the "
                                                  "model is incomplete, export it again)");
      ++needs[i];
      users[maker->second].push_back(i);
    }
  }

  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (needs[i] == 0)
      ready.push(i);
  std::vector<int> order;
  while (!ready.empty()) {
    int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int user : users[node])
      if (--needs[user] == 0)
        ready.push(user);
  }
  if (order.size() != static_cast<size_t>(nodes.size()))
    return failOnCycle(nodes, makers, needs);
  return order;
}

} // namespace otf
