// SPDX-License-Identifier: Apache-2.0
//
// A plan that uses every table of plan.fbs once or twice, and its bytes.
#ifndef OTF_TEST_PLAN_SMALLPLAN_H
#define OTF_TEST_PLAN_SMALLPLAN_H

#include "lib/Plan/PlanModel.h"
#include "lib/Plan/Writer.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

namespace otf::test {

/// A folder that goes away with its content.
struct Folder {
  Folder() {
    char name[] = "/tmp/otf-plan-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  size_t files() const {
    return size_t(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::string path;
};

inline plan::model::Plan smallPlan() {
  using namespace plan::model;
  const Size length = Size::symbol(2), eight = Size::constant(8);
  Plan p;
  p.producer = "otf", p.model = "small.onnx";
  p.symbols = {"past", "capacity", "length"};
  p.past = 0, p.capacity = 1;
  p.inputs = {{"ids", ElementType::i64, {Size::constant(1), length}},
              {"mask", ElementType::i64, {Size::constant(1), Size{{Term{1, {0}}, Term{1, {2}}}}}}};
  p.outputs = {{"logits", ElementType::f16, {Size::constant(1), length, eight}}};
  p.states = {{"key0", "past.0.key", "present.0.key", ElementType::f32,
               {Size::constant(1), Size::constant(2), Size::symbol(0), eight}, 2, length}};
  p.weights = {{"embedding", 0, 64, "int8", 8, 8, true}, {"w", 64, 32, "int4", 8, 8, false}};
  for (const char *target : {"cpu", "cuda"}) {
    Program program{target, {Slot{{Size{{Term{32, {2}}}}, Size::constant(64)}}}, {}};
    program.steps.push_back({"k0", "Gather_0",
                             {{Space::input, 0, 0}, {Space::weight, 0, 64}, {Space::slot, 0, 0}},
                             {length, eight}, length, 1, {length}, 128, 0});
    program.steps.push_back({"k1", "MatMul_1",
                             {{Space::slot, 0, 0}, {Space::state, 0, 0}, {Space::output, 0, 0}},
                             {length, Size::symbol(0), Size::symbol(1)}, Size{{Term{8, {2}}}}, 8,
                             {length, eight, Size::constant(1)}, 256, 1024});
    p.programs.push_back(program);
  }
  p.objects = {{"avx2", 0, 100}, {"avx512vnni", 100, 28}};
  p.cubins = {{"sm_90", 0, 16}};
  p.generation = R"({"bos":1,"eos":[2],"context":128,"chat_template":""})";
  return p;
}

inline bool writeSmall(const std::string &path, const plan::model::Plan &p, std::string &error) {
  using plan::SectionKind;
  plan::Writer writer(path);
  auto section = [&](SectionKind kind, const std::vector<std::byte> &bytes) {
    writer.beginSection(kind);
    writer.append(bytes);
    writer.endSection();
  };
  section(SectionKind::weights, std::vector<std::byte>(96, std::byte(7)));
  section(SectionKind::objects, std::vector<std::byte>(128, std::byte(9)));
  section(SectionKind::cubins, std::vector<std::byte>(16, std::byte(3)));
  section(SectionKind::metadata, serialize(p));
  return writer.finish(error);
}

inline std::vector<std::byte> bytesOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  auto *begin = reinterpret_cast<const std::byte *>(chars.data());
  return {begin, begin + chars.size()};
}

} // namespace otf::test

#endif // OTF_TEST_PLAN_SMALLPLAN_H
