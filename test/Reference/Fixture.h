// SPDX-License-Identifier: Apache-2.0
//
// Stored inputs and outputs of the models in test/EndToEnd/fixtures, and comparison of tensors.
#ifndef OTF_TEST_REFERENCE_FIXTURE_H
#define OTF_TEST_REFERENCE_FIXTURE_H

#include "lib/Reference/Tensor.h"

#include <map>
#include <string>

namespace otf::reference::test {

/// All arrays of <fixture>/io/<part>, by file name.
std::map<std::string, Tensor> loadArrays(const std::string &fixture, const std::string &part);

/// The largest |a − b|; infinite where shapes differ. Where `mask` [batch, total] is given, only
/// positions at which it is 1 count: those of logits [batch, sequence, …], or of caches
/// [batch, heads, total, …].
double distance(const Tensor &a, const Tensor &b, const Tensor *mask = nullptr);

/// The largest |x|.
double magnitude(const Tensor &x);

} // namespace otf::reference::test

#endif // OTF_TEST_REFERENCE_FIXTURE_H
