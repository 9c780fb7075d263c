// SPDX-License-Identifier: Apache-2.0
#include "test/Runtime/TestPlan.h"

#include "lib/Plan/Writer.h"

#include <cstdio>
#include <fstream>
#include <iterator>

namespace otf::test {

using namespace plan::model;

std::vector<std::byte> testKernels() {
  std::ifstream in(OTF_TEST_KERNELS, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  auto *begin = reinterpret_cast<const std::byte *>(chars.data());
  return {begin, begin + chars.size()};
}

Plan testPlan(uint64_t objectSize) {
  const uint32_t past = 0, capacity = 1, length = 2;
  const Size four = Size::constant(4), rows = Size::symbol(length);
  const Size bytes{{Term{16, {length}}}};
  Plan plan;
  plan.producer = "test";
  plan.model = "test.onnx";
  plan.symbols = {"past", "capacity", "length"};
  plan.past = past, plan.capacity = capacity;
  plan.inputs = {{"x", ElementType::f32, {rows, four}}};
  plan.outputs = {{"y", ElementType::f32, {rows, four}}};
  plan.states = {{"cache", "past.0", "present.0", ElementType::f32,
                  {Size::constant(2), Size::symbol(past), four}, 1, rows}};
  plan.weights = {{"w", 0, 16, "f32", 4, 1, false}};
  Program cpu{"cpu", {Slot{{bytes}}}, {}};
  std::vector<Size> dims = {four, Size::symbol(past), Size::symbol(capacity)};
  cpu.steps.push_back({"test_twice", "Mul", {{Space::input, 0, 0}, {Space::slot, 0, 0}}, {four},
                       rows, 1, {}, 0, 0});
  cpu.steps.push_back({"test_append", "Concat", {{Space::slot, 0, 0}, {Space::state, 0, 0}}, dims,
                       rows, 1, {}, 0, 0});
  cpu.steps.push_back({"test_sum", "ReduceSum",
                       {{Space::state, 0, 0}, {Space::weight, 0, 0}, {Space::output, 0, 0}}, dims,
                       rows, 1, {}, 0, 0});
  plan.programs = {cpu};
  plan.objects = {{"avx2", 0, objectSize}};
  return plan;
}

Plan languagePlan(uint64_t objectSize) {
  const Size one = Size::constant(1), length = Size::symbol(2), past = Size::symbol(0);
  const Size total{{Term{1, {0}}, Term{1, {2}}}};
  Plan plan = testPlan(objectSize);
  plan.inputs = {{"input_ids", ElementType::i64, {one, length}},
                 {"attention_mask", ElementType::i64, {one, total}},
                 {"position_ids", ElementType::i64, {one, length}}};
  plan.outputs = {{"logits", ElementType::f32, {one, length, Size::constant(16)}}};
  plan.states = {{"cache", "past.0", "present.0", ElementType::f32, {one, past}, 1, length}};
  Program cpu{"cpu", {}, {}};
  cpu.steps.push_back({"test_remember", "", {{Space::input, 0, 0}, {Space::state, 0, 0}}, {past},
                       length, 1, {}, 0, 0});
  cpu.steps.push_back({"test_logits", "",
                       {{Space::state, 0, 0}, {Space::input, 1, 0}, {Space::input, 2, 0},
                        {Space::output, 0, 0}},
                       {past, length}, length, 1, {}, 0, 0});
  plan.programs = {cpu};
  plan.generation = R"({"bos":null,"eos":[6],"context":2000,"chat_template":null})";
  return plan;
}

bool writePlan(const char *path, const Plan &plan) {
  const float w[4] = {1, 2, 3, 4};
  plan::Writer writer(path);
  writer.beginSection(plan::SectionKind::metadata);
  writer.append(serialize(plan));
  writer.endSection();
  writer.beginSection(plan::SectionKind::weights);
  writer.append(w, sizeof w);
  writer.endSection();
  writer.beginSection(plan::SectionKind::objects);
  writer.append(testKernels());
  writer.endSection();
  if (!plan.cubins.empty()) {
    const char nothing[64] = {};
    writer.beginSection(plan::SectionKind::cubins);
    writer.append(nothing, sizeof nothing);
    writer.endSection();
  }
  std::string error;
  if (writer.finish(error))
    return true;
  std::fprintf(stderr, "%s\n", error.c_str());
  return false;
}

} // namespace otf::test

extern "C" int otf_write_test_plan(const char *path) {
  return otf::test::writePlan(path, otf::test::testPlan(otf::test::testKernels().size()));
}
