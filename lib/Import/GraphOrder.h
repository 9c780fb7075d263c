// SPDX-License-Identifier: Apache-2.0
//
// An order in which each node comes after those whose results it uses.
//
// Files should be sorted but are not always. Among nodes that are ready the first in the file goes first, so a sorted
// file keeps its order. The same pass finds names given twice, names given by nobody, and cycles.

#ifndef OTF_LIB_IMPORT_GRAPHORDER_H
#define OTF_LIB_IMPORT_GRAPHORDER_H

#include "lib/Import/onnx.pb.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace otf {

using NodeList = ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

/// "node 'name' (Operator)" or, for a node without a name, "node Operator -> 'first output'".
std::string describe(const ::onnx::NodeProto &node);

/// Positions of the nodes in such an order. `given` are the names that no node has to make; `isOutside` says whether a
/// name is one of the graph around this one. A node also uses what its subgraphs do. The message of an error is
/// "<node>: what (why, and what to try)".
llvm::Expected<std::vector<int>> orderNodes(const NodeList &nodes, const llvm::StringSet<> &given,
                                            llvm::function_ref<bool(llvm::StringRef)> isOutside);

} // namespace otf

#endif
