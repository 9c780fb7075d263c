// SPDX-License-Identifier: Apache-2.0
//
// From FlatBuffer to plain arrays. The FlatBuffers verifier proves that the metadata can be read;
// this file proves that it means something: each index, range and enum is checked where it is
// copied, and nothing after it looks at the FlatBuffer again.
#include "runtime/PlanFile.h"

#include "include/otf/plan_generated.h"
#include "lib/Encoding/CacheRow.h"

#include <algorithm>

namespace otf::runtime {

static_assert(unsigned(plan::ElementType::MAX) + 1 == kElementTypes &&
              unsigned(plan::ElementType::u2) == unsigned(ElementType::u2));
static_assert(unsigned(plan::Space::MAX) == unsigned(Space::state));

// A term of higher degree is not a size; the limit keeps a small hostile file from costing more
// time than a large honest one.
static constexpr size_t kMostFactors = 16;

namespace fb = flatbuffers;
template <typename T> using Tables = const fb::Vector<fb::Offset<T>> *;

static std::string_view view(const fb::String *s) {
  return s ? std::string_view(s->c_str(), s->size()) : std::string_view();
}
template <typename T> static size_t count(const T *vector) { return vector ? vector->size() : 0; }

template <typename... Args> static Status bad(const Args &...args) {
  return badInput("damaged plan: ", args..., " (compile the model again)");
}

struct MetadataReader {
  PlanFile &plan;

  Status size(const plan::Size *from, std::string_view what, SizeId &to) {
    if (!from)
      return bad(what, " has no size");
    Polynomial polynomial;
    for (size_t i = 0; i < count(from->terms()); ++i) {
      const plan::Term *term = from->terms()->Get(fb::uoffset_t(i));
      if (count(term->symbols()) > kMostFactors)
        return bad(what, " has a size of degree ", count(term->symbols()));
      SizeTerm &copy = polynomial.emplace_back(term->coefficient(), std::vector<uint32_t>());
      for (size_t s = 0; s < count(term->symbols()); ++s) {
        copy.symbols.push_back(term->symbols()->Get(fb::uoffset_t(s)));
        if (copy.symbols.back() >= plan.symbols.size())
          return bad(what, " uses symbol ", copy.symbols.back(), " of ", plan.symbols.size());
      }
    }
    to = plan.sizes.intern(std::move(polynomial));
    return {};
  }

  Status sizes(Tables<plan::Size> from, std::string_view what, std::vector<SizeId> &to) {
    for (size_t i = 0; i < count(from); ++i)
      OTF_TRY(size(from->Get(fb::uoffset_t(i)), what, to.emplace_back()));
    return {};
  }

  Status type(plan::ElementType from, std::string_view what, ElementType &to) {
    if (unsigned(from) >= kElementTypes)
      return bad(what, " has unknown element type ", unsigned(from));
    to = ElementType(from);
    return {};
  }

  Status tensors(Tables<plan::Tensor> from, std::vector<TensorInfo> &to) {
    for (const plan::Tensor *t : *from) {
      TensorInfo &info = to.emplace_back();
      info.name = view(t->name());
      OTF_TRY(type(t->type(), info.name, info.type));
      OTF_TRY(sizes(t->shape(), info.name, info.shape));
      info.limit = t->limit();
      bool isIndex = info.type == ElementType::i64 || info.type == ElementType::i32;
      if (info.limit < 0 || (info.limit != 0 && !isIndex))
        return bad("'", info.name, "' of type ", elementName(info.type), " has the limit ", info.limit);
    }
    return {};
  }

  bool mentionsPast(SizeId id) const {
    for (const SizeTerm &term : plan.sizes[id])
      if (std::find(term.symbols.begin(), term.symbols.end(), plan.past) != term.symbols.end())
        return true;
    return false;
  }

  Status state(const plan::State &from) {
    StateInfo &info = plan.states.emplace_back();
    info.name = view(from.name());
    info.input = view(from.input());
    info.output = view(from.output());
    OTF_TRY(type(from.type(), info.name, info.type));
    OTF_TRY(sizes(from.shape(), info.name, info.shape));
    OTF_TRY(size(from.appended(), info.name, info.appended));
    info.axis = from.axis();
    if (info.axis >= info.shape.size())
      return bad("state '", info.name, "' grows along axis ", info.axis, " of ", info.shape.size());
    for (size_t i = 0; i < info.shape.size(); ++i) {
      const Polynomial past = {{1, {plan.past}}};
      bool good = i == info.axis ? plan.sizes[info.shape[i]] == past : !mentionsPast(info.shape[i]);
      if (!good)
        return bad("axis ", i, " of state '", info.name, "' must ",
                   i == info.axis ? "be" : "not depend on", " the past");
    }
    if (info.type != ElementType::i8)
      return {};
    const Polynomial &row = plan.sizes[info.shape.back()];
    info.width = row.size() == 1 && row[0].symbols.empty() && row[0].coefficient > kCacheScaleBytes ? row[0].coefficient - kCacheScaleBytes : 0;
    if (info.axis + 1 == info.shape.size() || info.width < 1)
      return bad("rows of state '", info.name, "' have no room for a scale");
    return {};
  }

  Status weight(const plan::Weight &from) {
    WeightInfo &info = plan.weights.emplace_back();
    info = {view(from.name()), view(from.encoding()), from.offset(), from.size(),
            from.rows(),       from.columns(),        from.vocabulary()};
    size_t section = plan.weightBytes().size();
    if (info.offset > section || info.size > section - info.offset)
      return bad("weight '", info.name, "' lies outside the weight section");
    if (info.offset % plan::kWeightAlignment != 0)
      return bad("weight '", info.name, "' is not aligned");
    return {};
  }

  Status code(Tables<plan::Code> from, plan::SectionKind kind, std::vector<CodeInfo> &to) {
    Bytes section = plan.section(kind);
    for (size_t i = 0; i < count(from); ++i) {
      const plan::Code *c = from->Get(fb::uoffset_t(i));
      if (c->offset() > section.size() || c->size() > section.size() - c->offset())
        return bad("code for '", view(c->level()), "' lies outside its section");
      to.push_back({view(c->level()), section.subspan(c->offset(), c->size())});
    }
    return {};
  }

  Status buffer(const plan::Buffer &from, const ProgramInfo &program, std::string_view kernel,
                BufferInfo &to) {
    if (unsigned(from.space()) > unsigned(Space::state))
      return bad("step '", kernel, "' has a buffer in unknown space ", unsigned(from.space()));
    to = {Space(from.space()), from.index(), from.offset()};
    if (to.space == Space::weight) {
      if (to.offset > plan.weightBytes().size())
        return bad("step '", kernel, "' reads a weight outside the weight section");
      return {};
    }
    size_t limit = to.space == Space::input    ? plan.inputs.size()
                   : to.space == Space::output ? plan.outputs.size()
                   : to.space == Space::slot   ? program.slots.size()
                                               : plan.states.size();
    if (to.index >= limit || to.offset != 0)
      return bad("step '", kernel, "' has a buffer with index ", to.index, " of ", limit,
                 " and offset ", to.offset);
    return {};
  }

  /// What a step that is no launch says.
  Status control(const plan::Step &from, ProgramInfo &program, StepInfo &info) {
    const size_t number = program.steps.size() - 1;
    info.target = from.target();
    info.firstSymbol = uint32_t(program.symbols.size());
    info.symbolCount = uint32_t(count(from.symbols()));
    for (size_t i = 0; i < info.symbolCount; ++i) {
      uint32_t symbol = from.symbols()->Get(fb::uoffset_t(i));
      if (symbol >= plan.symbols.size())
        return bad("step ", number, " binds symbol ", symbol, " of ", plan.symbols.size());
      program.symbols.push_back(symbol);
      plan.late[symbol] = 1;
    }
    bool reads = info.kind == StepKind::bind || info.kind == StepKind::branch;
    if (info.kind != StepKind::launch && info.bufferCount != reads)
      return bad("step ", number, " has ", info.bufferCount, " buffers, expected ", int(reads));
    if ((info.kind == StepKind::bind) != (info.symbolCount != 0))
      return bad("step ", number, " has ", info.symbolCount, " symbols");
    return {};
  }

  Status step(const plan::Step &from, ProgramInfo &program) {
    StepInfo &info = program.steps.emplace_back();
    info.kernel = from.kernel()->c_str();
    info.label = view(from.label());
    info.message = view(from.message());
    if (unsigned(from.kind()) > unsigned(StepKind::jump))
      return bad("step ", program.steps.size() - 1, " is of unknown kind ", unsigned(from.kind()));
    info.kind = StepKind(from.kind());
    if (info.kind == StepKind::launch && !*info.kernel)
      return bad("step ", program.steps.size() - 1, " names no kernel");
    info.firstBuffer = uint32_t(program.buffers.size());
    info.bufferCount = uint32_t(count(from.buffers()));
    for (const plan::Buffer *b : *from.buffers())
      OTF_TRY(buffer(*b, program, info.kernel, program.buffers.emplace_back()));
    OTF_TRY(control(from, program, info));
    info.firstDim = uint32_t(program.dims.size());
    info.dimCount = uint32_t(count(from.dims()));
    OTF_TRY(sizes(from.dims(), info.kernel, program.dims));
    OTF_TRY(size(from.extent(), info.kernel, info.extent));
    info.grain = from.grain();
    info.block = from.block();
    info.shared = from.shared();
    if (info.grain == 0)
      return bad("step '", info.kernel, "' has grain 0");
    size_t axes = count(from.grid());
    info.host = view(from.host());
    info.written = from.written();
    if (info.written > info.bufferCount)
      return bad("step '", info.kernel, "' writes ", info.written, " of ", info.bufferCount, " buffers");
    info.firstResult = uint32_t(program.results.size());
    info.resultCount = uint32_t(count(from.results()));
    if (info.resultCount != 0 && info.resultCount != info.written)
      return bad("step '", info.kernel, "' writes ", info.written, " buffers and names ", info.resultCount);
    if (info.resultCount != 0)
      OTF_TRY(tensors(from.results(), program.results));
    bool isLaunch = info.kind == StepKind::launch;
    if (!info.host.empty() && (!isLaunch || program.target != "cuda"))
      return bad("step '", info.kernel, "' is no launch of a GPU's program, and is placed on the host");
    if (!info.message.empty() && info.kind != StepKind::bind)
      return bad("step ", program.steps.size() - 1, " binds nothing, and has a message");
    for (uint32_t i = info.bufferCount - info.written; i < info.bufferCount; ++i)
      if (Space space = program.buffers[info.firstBuffer + i].space; space == Space::input || space == Space::weight)
        return bad("step '", info.kernel, "' writes an input or a weight");
    bool needsGrid = program.target == "cuda" && isLaunch && info.host.empty();
    if (axes > 3 || info.block > 1024 || (needsGrid && axes == 0))
      return bad("step '", info.kernel, "' has a grid of ", axes, " axes and blocks of ",
                 info.block);
    for (SizeId &id : info.grid)
      id = plan.sizes.intern({{1, {}}});
    for (size_t i = 0; i < axes; ++i)
      OTF_TRY(size(from.grid()->Get(fb::uoffset_t(i)), info.kernel, info.grid[i]));
    return {};
  }

  Status program(const plan::Program &from) {
    if (plan.program(view(from.target())))
      return bad("two programs for '", view(from.target()), "'");
    ProgramInfo &info = plan.programs.emplace_back();
    info.target = view(from.target());
    for (size_t i = 0; i < count(from.slots()); ++i)
      OTF_TRY(sizes(from.slots()->Get(fb::uoffset_t(i))->sizes(), "a slot",
                    info.slots.emplace_back()));
    for (size_t i = 0; i < count(from.steps()); ++i)
      OTF_TRY(step(*from.steps()->Get(fb::uoffset_t(i)), info));
    for (const StepInfo &step : info.steps)
      if (step.target > info.steps.size())
        return bad("a step goes on at step ", step.target, " of ", info.steps.size());
    return {};
  }

  Status run(const plan::Plan &from) {
    plan.producer = view(from.producer());
    plan.model = view(from.model());
    plan.generation = view(from.generation());
    for (const fb::String *s : *from.symbols())
      plan.symbols.push_back(view(s));
    plan.late.assign(plan.symbols.size(), 0);
    plan.past = from.past();
    plan.capacity = from.capacity();
    if (count(from.states()) && (plan.past >= plan.symbols.size() || plan.past == plan.capacity ||
                                 plan.capacity >= plan.symbols.size()))
      return bad("it has states and no symbols for their length and capacity");
    OTF_TRY(tensors(from.inputs(), plan.inputs));
    OTF_TRY(tensors(from.outputs(), plan.outputs));
    for (size_t i = 0; i < count(from.states()); ++i)
      OTF_TRY(state(*from.states()->Get(fb::uoffset_t(i))));
    for (size_t i = 0; i < count(from.weights()); ++i)
      OTF_TRY(weight(*from.weights()->Get(fb::uoffset_t(i))));
    for (const plan::Program *p : *from.programs())
      OTF_TRY(program(*p));
    OTF_TRY(code(from.objects(), plan::SectionKind::objects, plan.objects));
    return code(from.cubins(), plan::SectionKind::cubins, plan.cubins);
  }
};

Status PlanFile::readMetadata(Bytes metadata) {
  // Tables may be shared, so visiting them can cost more than the bytes say; our writer's plans
  // stay below one visit for two bytes.
  size_t mostTables = std::min<size_t>(metadata.size() * 2, UINT32_MAX);
  auto *bytes = reinterpret_cast<const uint8_t *>(metadata.data());
  if (metadata.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return bad("its metadata is larger than 2 GiB");
  fb::Verifier verifier(bytes, metadata.size(), 16, fb::uoffset_t(mostTables));
  if (metadata.size() < 8 || !plan::VerifyPlanBuffer(verifier))
    return bad("its metadata cannot be read");
  return MetadataReader{*this}.run(*plan::GetPlan(bytes));
}

} // namespace otf::runtime
