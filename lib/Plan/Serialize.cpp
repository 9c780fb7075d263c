// SPDX-License-Identifier: Apache-2.0
//
// Plan metadata to FlatBuffer. Thirty layers repeat the same sizes, names and terms, so equal ones
// are written once and shared; this makes the metadata of a language model several times smaller.
#include "lib/Plan/PlanModel.h"

#include "include/otf/plan_generated.h"

#include <map>

namespace otf::plan::model {
namespace {

namespace fb = flatbuffers;
static_assert(int(ElementType::f32) == int(plan::ElementType::f32) &&
              int(ElementType::boolean) == int(plan::ElementType::boolean) &&
              int(ElementType::u2) == int(plan::ElementType::u2) &&
              int(ElementType::u2) == int(plan::ElementType::MAX));
static_assert(int(StepKind::jump) == int(plan::StepKind::jump) &&
              int(StepKind::jump) == int(plan::StepKind::MAX));
static_assert(int(Space::state) == int(plan::Space::state) &&
              int(Space::state) == int(plan::Space::MAX));

class Serializer {
public:
  std::vector<std::byte> run(const Plan &p) {
    auto symbols = list<fb::String>(p.symbols, [&](auto &s) { return string(s); });
    auto inputs = list<plan::Tensor>(p.inputs, [&](auto &t) { return tensor(t); });
    auto outputs = list<plan::Tensor>(p.outputs, [&](auto &t) { return tensor(t); });
    auto states = list<plan::State>(p.states, [&](auto &s) { return state(s); });
    auto weights = list<plan::Weight>(p.weights, [&](auto &w) {
      auto name = string(w.name), encoding = string(w.encoding);
      return CreateWeight(b, name, w.offset, w.size, encoding, w.rows,
                          w.columns, w.vocabulary);
    });
    auto programs = list<plan::Program>(p.programs, [&](auto &g) { return program(g); });
    auto code = [&](auto &c) { return CreateCode(b, string(c.level), c.offset, c.size); };
    auto objects = list<plan::Code>(p.objects, code);
    auto cubins = list<plan::Code>(p.cubins, code);
    auto producer = string(p.producer), model = string(p.model), generation = string(p.generation);
    b.Finish(CreatePlan(b, producer, model, symbols, p.past, p.capacity, inputs, outputs, states,
                        weights, programs, objects, cubins, generation),
             PlanIdentifier());
    auto *begin = reinterpret_cast<const std::byte *>(b.GetBufferPointer());
    return {begin, begin + b.GetSize()};
  }

private:
  template <typename T, typename Items, typename Make>
  fb::Offset<fb::Vector<fb::Offset<T>>> list(const Items &items, Make make) {
    std::vector<fb::Offset<T>> offsets;
    for (const auto &item : items)
      offsets.push_back(make(item));
    return b.CreateVector(offsets);
  }

  fb::Offset<fb::String> string(const std::string &s) {
    auto [it, isNew] = strings.try_emplace(s);
    if (isNew)
      it->second = b.CreateString(s);
    return it->second;
  }

  fb::Offset<plan::Term> term(const Term &t) {
    auto [it, isNew] = terms.try_emplace(t);
    if (isNew)
      it->second = CreateTerm(b, t.coefficient, b.CreateVector(t.symbols));
    return it->second;
  }

  fb::Offset<plan::Size> size(const Size &s) {
    auto [it, isNew] = sizes.try_emplace(s);
    if (isNew)
      it->second = CreateSize(b, list<plan::Term>(s.terms, [&](auto &t) { return term(t); }));
    return it->second;
  }

  auto sizeList(const std::vector<Size> &items) {
    return list<plan::Size>(items, [&](auto &s) { return size(s); });
  }

  // FlatBuffers forbids to begin a table while another is open: children come first, and C++
  // leaves the order of arguments open, so each child has a name.
  fb::Offset<plan::Tensor> tensor(const Tensor &t) {
    auto name = string(t.name);
    auto shape = sizeList(t.shape);
    return CreateTensor(b, name, plan::ElementType(t.type), shape, t.limit);
  }

  fb::Offset<plan::State> state(const State &s) {
    auto name = string(s.name), input = string(s.input), output = string(s.output);
    auto shape = sizeList(s.shape);
    auto appended = size(s.appended);
    return CreateState(b, name, input, output, plan::ElementType(s.type), shape, s.axis, appended);
  }

  fb::Offset<plan::Step> step(const Step &s) {
    auto kernel = string(s.kernel), label = string(s.label);
    auto host = s.host.empty() ? fb::Offset<fb::String>() : string(s.host);
    auto buffers = list<plan::Buffer>(s.buffers, [&](auto &x) {
      return CreateBuffer(b, plan::Space(x.space), x.index, x.offset);
    });
    auto dims = sizeList(s.dims);
    auto extent = size(s.extent);
    auto grid = sizeList(s.grid);
    auto message = s.message.empty() ? 0 : string(s.message);
    auto symbols = s.symbols.empty() ? 0 : b.CreateVector(s.symbols);
    auto results = s.results.empty() ? 0 : list<plan::Tensor>(s.results, [&](auto &t) { return tensor(t); });
    return CreateStep(b, kernel, label, buffers, dims, extent, s.grain, grid, s.block, s.shared,
                      plan::StepKind(s.kind), symbols, s.target, message, host, s.written, results);
  }

  fb::Offset<plan::Program> program(const Program &p) {
    auto target = string(p.target);
    auto slots = list<plan::Slot>(p.slots, [&](auto &s) { return CreateSlot(b, sizeList(s.sizes)); });
    auto steps = list<plan::Step>(p.steps, [&](auto &s) { return step(s); });
    return CreateProgram(b, target, slots, steps);
  }

  fb::FlatBufferBuilder b{1 << 16};
  std::map<std::string, fb::Offset<fb::String>> strings;
  std::map<Term, fb::Offset<plan::Term>> terms;
  std::map<Size, fb::Offset<plan::Size>> sizes;
};

} // namespace

std::vector<std::byte> serialize(const Plan &plan) { return Serializer().run(plan); }

} // namespace otf::plan::model
