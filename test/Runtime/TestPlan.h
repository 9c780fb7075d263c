/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan made by hand. x is f32 [length, 4]; the state, f32 [2, past, 4], gets the rows 2x and 4x;
 * y[i] = [1, 2, 3, 4] + the sum of all rows of the state up to the one of x[i]. With x = 1 in the
 * first row after k others of 1, y = w + 6 (k + 1).
 *
 * Plain C, because the C test includes it. */
#ifndef OTF_TEST_RUNTIME_TESTPLAN_H
#define OTF_TEST_RUNTIME_TESTPLAN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Writes it, or prints why not and returns 0. */
int otf_write_test_plan(const char *path);

#ifdef __cplusplus
}

#include "lib/Plan/PlanModel.h"

namespace otf::test {
/// Its metadata, for tests that change something; `objectSize` is that of the shared object.
plan::model::Plan testPlan(uint64_t objectSize);
/// A language model of 16 tokens (test_logits in Kernels.c says which comes next), with the inputs
/// that such models have, an end token 6, and no tokenizer.
plan::model::Plan languagePlan(uint64_t objectSize);
/// Writes `plan` with the weights and kernels of the test plan.
bool writePlan(const char *path, const plan::model::Plan &plan);
/// The shared object with the kernels.
std::vector<std::byte> testKernels();
} // namespace otf::test
#endif

#endif /* OTF_TEST_RUNTIME_TESTPLAN_H */
