// SPDX-License-Identifier: Apache-2.0
//
// From a planned module to the metadata of a plan: buffers, sizes, states, and what is refused.

#include "test/EndToEnd/PlannedModule.h"

#include "lib/Compile/PlanAssembly.h"

using namespace otf;
namespace model = otf::plan::model;

namespace {

// An append and an attention over one cache, then a norm; sizes are b, s and past + s.
const char *const decoder = R"(
module {
  otf.weight @g : tensor<8xf32> = #otf.blob<file = 0, offset = 0, length = 32, type = f32>
  otf.cache @k : !otf.state<2x4xf32> {input = "past.k", output = "present.k"}
  plan.kernel @append_0(%s: !otf.state<2x4xf32>, %x: tensor<?x2x?x4xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x4xf32> {
    %0 = otf.append %s, %x : (!otf.state<2x4xf32>, tensor<?x2x?x4xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x4xf32>
    plan.return %0 : !otf.state<2x4xf32>
  }
  plan.kernel @norm_0(%x: tensor<?x8xf32, #otf.dims<"d0">>, %g: tensor<8xf32>) -> tensor<?x8xf32, #otf.dims<"d0">> {
    %0 = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<?x8xf32, #otf.dims<"d0">>, tensor<8xf32>) -> tensor<?x8xf32, #otf.dims<"d0">>
    plan.return %0 : tensor<?x8xf32, #otf.dims<"d0">>
  }
  func.func @main() {
    %x = plan.input "x" : !plan.buffer<tensor<?x2x?x4xf32, #otf.dims<"b", "s">>>
    %y = plan.output "y" : !plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>
    %k = plan.state @k : !plan.buffer<!otf.state<2x4xf32>>
    %g = plan.weight @g : !plan.buffer<tensor<8xf32>>
    %t = plan.alloc {slot = 0 : i64} : !plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>
    %v = plan.view %x : !plan.buffer<tensor<?x2x?x4xf32, #otf.dims<"b", "s">>> -> !plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>
    plan.launch @append_0(%k, %x) outs() sizes ["b", "s", "past", "capacity", "b"] {extent = "2*b*s", grain = 1 : i64}
        : (!plan.buffer<!otf.state<2x4xf32>>, !plan.buffer<tensor<?x2x?x4xf32, #otf.dims<"b", "s">>>)
    plan.launch @norm_0(%v, %g) outs(%t) sizes ["b*s"] {extent = "b*s", grain = 1 : i64}
        : (!plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>, !plan.buffer<tensor<8xf32>>) outs(!plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>)
    plan.launch @norm_0(%t, %g) outs(%y) sizes ["b*s"] {extent = "b*s", grain = 1 : i64}
        : (!plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>, !plan.buffer<tensor<8xf32>>) outs(!plan.buffer<tensor<?x8xf32, #otf.dims<"b*s">>>)
    return
  }
})";

struct Assembled {
  explicit Assembled(const std::string &text, AssemblyOptions options = {}) : planned(text) {
    auto weights = StreamEncoder::plan(*planned.module);
    EXPECT_TRUE(succeeded(weights)) << planned.errors;
    auto result = assemblePlan(*planned.module, *weights, options);
    if (succeeded(result))
      plan = std::move(*result);
  }
  std::string text(const model::Size &size) const {
    std::string out;
    for (const model::Term &term : size.terms) {
      out += (out.empty() ? "" : " + ") + std::to_string(term.coefficient);
      for (uint32_t symbol : term.symbols)
        out += "*" + plan.symbols[symbol];
    }
    return out;
  }
  PlannedModule planned;
  model::Plan plan;
};

TEST(PlanAssembly, StepsPointAtWhatOperandsMean) {
  Assembled a(decoder);
  ASSERT_EQ(a.plan.programs.size(), 1u) << a.planned.errors;
  const std::vector<model::Step> &steps = a.plan.programs[0].steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].buffers[0].space, model::Space::state);
  EXPECT_EQ(steps[0].buffers[1].space, model::Space::input);
  EXPECT_EQ(steps[1].buffers[0].space, model::Space::input); // through the view
  EXPECT_EQ(steps[1].buffers[1].space, model::Space::weight);
  EXPECT_EQ(steps[1].buffers[2].space, model::Space::slot);
  EXPECT_EQ(steps[2].buffers[2].space, model::Space::output);
  EXPECT_EQ(a.text(steps[1].extent), "1*b*s");
}

TEST(PlanAssembly, AKernelWithStatesEndsItsSizesWithPastCapacityBatch) {
  Assembled a(decoder);
  ASSERT_EQ(a.plan.programs.size(), 1u) << a.planned.errors;
  const std::vector<model::Size> &dims = a.plan.programs[0].steps[0].dims;
  ASSERT_EQ(dims.size(), 5u);
  EXPECT_EQ(a.text(dims[2]), "1*past");
  EXPECT_EQ(a.text(dims[3]), "1*capacity");
  EXPECT_EQ(a.text(dims[4]), "1*b");
}

TEST(PlanAssembly, AStateKnowsItsBatchAndWhatAStepAppends) {
  Assembled a(decoder);
  ASSERT_EQ(a.plan.states.size(), 1u) << a.planned.errors;
  const model::State &state = a.plan.states[0];
  EXPECT_EQ(state.input, "past.k");
  EXPECT_EQ(state.output, "present.k");
  EXPECT_EQ(state.axis, 2u);
  EXPECT_EQ(a.text(state.shape[0]), "1*b");
  EXPECT_EQ(a.text(state.shape[2]), "1*past");
  EXPECT_EQ(a.text(state.appended), "1*s");
}

TEST(PlanAssembly, ASlotIsAsLargeAsItsBuffersInBytes) {
  Assembled a(decoder);
  ASSERT_EQ(a.plan.programs.size(), 1u) << a.planned.errors;
  ASSERT_EQ(a.plan.programs[0].slots.size(), 1u);
  ASSERT_EQ(a.plan.programs[0].slots[0].sizes.size(), 1u);
  EXPECT_EQ(a.text(a.plan.programs[0].slots[0].sizes[0]), "32*b*s");
}

TEST(PlanAssembly, CudaStepsHaveTheirGridInTheSizesOfTheLaunch) {
  AssemblyOptions options;
  options.cuda = true;
  options.geometry["append_0"] = {{Size::symbol("d1"), Size::symbol("batch"), 1}, 64, 0};
  options.geometry["norm_0"] = {{Size::symbol("d0"), 1, 1}, 128, 512};
  Assembled a(decoder, options);
  ASSERT_EQ(a.plan.programs.size(), 2u) << a.planned.errors;
  const std::vector<model::Step> &steps = a.plan.programs[1].steps;
  EXPECT_EQ(a.plan.programs[1].target, "cuda");
  EXPECT_EQ(a.text(steps[0].grid[0]), "1*s");
  EXPECT_EQ(a.text(steps[0].grid[1]), "1*b");
  EXPECT_EQ(a.text(steps[1].grid[0]), "1*b*s");
  EXPECT_EQ(steps[1].block, 128u);
  EXPECT_EQ(steps[1].shared, 512u);
  EXPECT_TRUE(a.plan.programs[0].steps[0].grid.empty());
}

// Ids through a view, ids of the smaller table, and ids that are no input.
TEST(PlanAssembly, IdsOfAnEmbeddingAreLimitedToItsRows) {
  Assembled a(R"(
module {
  otf.weight @t : tensor<10x4xf32> = #otf.blob<file = 0, offset = 0, length = 160, type = f32>
  otf.weight @u : tensor<7x4xf32> = #otf.blob<file = 0, offset = 0, length = 112, type = f32>
  plan.kernel @embedding_0(%i: tensor<3xi64>, %t: !otf.matrix<10x4, #otf.encoding<f32>>) -> tensor<3x4xf32> {
    %0 = otf.embedding %i, %t : (tensor<3xi64>, !otf.matrix<10x4, #otf.encoding<f32>>) -> tensor<3x4xf32>
    plan.return %0 : tensor<3x4xf32>
  }
  plan.kernel @embedding_1(%i: tensor<3xi64>, %t: !otf.matrix<7x4, #otf.encoding<f32>>) -> tensor<3x4xf32> {
    %0 = otf.embedding %i, %t : (tensor<3xi64>, !otf.matrix<7x4, #otf.encoding<f32>>) -> tensor<3x4xf32>
    plan.return %0 : tensor<3x4xf32>
  }
  func.func @main() {
    %a = plan.input "a" : !plan.buffer<tensor<1x3xi64>>
    %b = plan.input "b" : !plan.buffer<tensor<3xi64>>
    %c = plan.input "c" : !plan.buffer<tensor<3xi64>>
    %y = plan.output "y" : !plan.buffer<tensor<3x4xf32>>
    %t = plan.weight @t : !plan.buffer<!otf.matrix<10x4, #otf.encoding<f32>>>
    %u = plan.weight @u : !plan.buffer<!otf.matrix<7x4, #otf.encoding<f32>>>
    %v = plan.view %a : !plan.buffer<tensor<1x3xi64>> -> !plan.buffer<tensor<3xi64>>
    plan.launch @embedding_0(%v, %t) outs(%y) sizes [] {extent = "3", grain = 1 : i64}
        : (!plan.buffer<tensor<3xi64>>, !plan.buffer<!otf.matrix<10x4, #otf.encoding<f32>>>) outs(!plan.buffer<tensor<3x4xf32>>)
    plan.launch @embedding_1(%b, %u) outs(%y) sizes [] {extent = "3", grain = 1 : i64}
        : (!plan.buffer<tensor<3xi64>>, !plan.buffer<!otf.matrix<7x4, #otf.encoding<f32>>>) outs(!plan.buffer<tensor<3x4xf32>>)
    plan.launch @embedding_0(%b, %t) outs(%y) sizes [] {extent = "3", grain = 1 : i64}
        : (!plan.buffer<tensor<3xi64>>, !plan.buffer<!otf.matrix<10x4, #otf.encoding<f32>>>) outs(!plan.buffer<tensor<3x4xf32>>)
    return
  }
})");
  ASSERT_EQ(a.plan.inputs.size(), 3u) << a.planned.errors;
  EXPECT_EQ(a.plan.inputs[0].limit, 10);
  EXPECT_EQ(a.plan.inputs[1].limit, 7);
  EXPECT_EQ(a.plan.inputs[2].limit, 0);
}

TEST(PlanAssembly, AnAllocWithoutASlotIsRefused) {
  std::string text = decoder;
  text.replace(text.find(" {slot = 0 : i64}"), 17, "");
  Assembled a(text);
  EXPECT_NE(a.planned.errors.find("otf-schedule"), std::string::npos) << a.planned.errors;
}

} // namespace
