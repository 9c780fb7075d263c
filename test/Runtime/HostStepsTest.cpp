// SPDX-License-Identifier: Apache-2.0
//
// A GPU's program some of whose steps are the host's, on a driver that is no GPU (FakeDriver.c).
#include "runtime/Session.h"
#include "test/Runtime/TestPlan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <unistd.h>

using namespace otf::runtime;
namespace model = otf::plan::model;

namespace {

/// The test plan for a GPU: the first step runs there unless `allOnHost`, the other two on the host.
model::Plan gpuPlan(bool allOnHost) {
  model::Plan plan = otf::test::testPlan(otf::test::testKernels().size());
  model::Program &program = plan.programs[0];
  program.target = "cuda";
  for (model::Step &step : program.steps)
    step.host = "it is a test", step.written = 1;
  program.steps[1].written = 0; // an append writes a state and nothing else
  if (!allOnHost) {
    program.steps[0].host.clear();
    program.steps[0].grid = {model::Size::symbol(2)};
    program.steps[0].block = 32;
  }
  plan.cubins = {{"sm_90", 0, 64}};
  return plan;
}

Result<std::unique_ptr<PlanFile>> open(const model::Plan &plan) {
  char path[] = "/tmp/otf-host-steps-XXXXXX";
  close(mkstemp(path));
  EXPECT_TRUE(otf::test::writePlan(path, plan));
  auto file = PlanFile::open(path);
  unlink(path);
  return file;
}

class HostSteps : public testing::TestWithParam<bool> {};

TEST_P(HostSteps, GiveWhatTheCpuGives) {
  setenv("OTF_CUDA_DRIVER", OTF_FAKE_DRIVER, 1);
  auto file = open(gpuPlan(GetParam()));
  ASSERT_TRUE(file.ok()) << file.status().message();
  auto device = makeDevice(*file.value(), "cuda");
  ASSERT_TRUE(device.ok()) << device.status().message();
  auto session = Session::create(*file.value(), *device.value(), {.threads = 2, .capacity = 64});
  ASSERT_TRUE(session.ok()) << session.status().message();
  // A prompt, then single rows, of which the third and later ones replay a graph; then more rows than
  // mirrors have room for.
  int64_t length = 0;
  for (int64_t rows : {5, 1, 1, 1, 1, 30}) {
    std::vector<float> x(size_t(rows) * 4, 1);
    std::vector<int64_t> shape = {rows, 4};
    ASSERT_TRUE(session.value()->setInput("x", {ElementType::f32, shape, x.data()}).ok());
    Status status = session.value()->run();
    ASSERT_TRUE(status.ok()) << status.message();
    auto y = session.value()->output(0);
    ASSERT_TRUE(y.ok()) << y.status().message();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < 4; ++c)
        EXPECT_EQ(static_cast<const float *>(y.value().data)[i * 4 + c], float(c + 1) + 6 * float(length + i + 1));
    length += rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, HostSteps, testing::Bool(),
                         [](const auto &info) { return info.param ? "All" : "Some"; });

TEST(HostStepsPlan, AStepCannotWriteMoreBuffersThanItHas) {
  model::Plan plan = gpuPlan(true);
  plan.programs[0].steps[0].written = 3;
  EXPECT_EQ(open(plan).status().message(),
            "damaged plan: step 'test_twice' writes 3 of 2 buffers (compile the model again)");
}

TEST(HostStepsPlan, AGpusStepNeedsAGridAndTheHostsDoesNot) {
  model::Plan plan = gpuPlan(false);
  plan.programs[0].steps[0].grid.clear();
  EXPECT_EQ(open(plan).status().message(), "damaged plan: step 'test_twice' has a grid of 0 axes and blocks of "
                                           "32 (compile the model again)");
}

} // namespace
