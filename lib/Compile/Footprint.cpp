// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/Footprint.h"

#include "lib/Compile/PlanTypes.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace otf {

namespace model = plan::model;

namespace {

class Sizes {
public:
  Sizes(const model::Plan &plan, int64_t context) : values(plan.symbols.size(), 1) {
    if (plan.states.empty())
      return;
    values[plan.past] = context - 1;
    values[plan.capacity] = context;
  }

  /// Clears `fits` where the value does not fit.
  uint64_t operator()(const model::Size &size, uint64_t scale = 1) {
    int64_t sum = 0;
    for (const model::Term &term : size.terms) {
      int64_t product = term.coefficient;
      for (uint32_t symbol : term.symbols)
        fits = fits && !__builtin_mul_overflow(product, values[symbol], &product);
      fits = fits && !__builtin_add_overflow(sum, product, &sum);
    }
    uint64_t scaled = 0;
    fits = fits && sum >= 0 && !__builtin_mul_overflow(uint64_t(sum), scale, &scaled);
    return fits ? scaled : 0;
  }
  uint64_t bytes(model::ElementType type, const std::vector<model::Size> &shape) {
    auto product = uint64_t(elementBytes(type));
    for (const model::Size &extent : shape)
      product = (*this)(extent, product);
    return product;
  }
  void add(uint64_t &to, uint64_t bytes) { fits = fits && !__builtin_add_overflow(to, bytes, &to); }

  bool fits = true;

private:
  std::vector<int64_t> values;
};

} // namespace

std::optional<Footprint> footprintOf(const model::Plan &plan, int64_t context) {
  Footprint footprint;
  Sizes sizes(plan, context);
  for (const model::State &state : plan.states) {
    // `past` at the axis is what is filled; memory has the capacity there.
    std::vector<model::Size> shape = state.shape;
    shape[state.axis] = model::Size::symbol(plan.capacity);
    sizes.add(footprint.states, sizes.bytes(state.type, shape));
  }
  for (const model::Tensor &output : plan.outputs)
    sizes.add(footprint.scratch, sizes.bytes(output.type, output.shape));
  if (plan.programs.empty())
    return footprint;
  const model::Program &program = plan.programs.front();
  for (const model::Slot &slot : program.slots) {
    uint64_t most = 0;
    for (const model::Size &bytes : slot.sizes)
      most = std::max(most, sizes(bytes));
    sizes.add(footprint.scratch, most);
  }
  std::set<uint64_t> read;
  for (const model::Step &step : program.steps) {
    footprint.atLeast |= step.kind == model::StepKind::bind;
    if (!step.kernel.starts_with("embedding")) // reads the rows of its ids
      for (const model::Buffer &buffer : step.buffers)
        if (buffer.space == model::Space::weight)
          read.insert(buffer.offset);
  }
  for (const model::Weight &weight : plan.weights)
    if (read.count(weight.offset))
      sizes.add(footprint.read, weight.size);
  return sizes.fits ? std::optional(footprint) : std::nullopt;
}

int64_t defaultContext(const model::Plan &plan) {
  constexpr int64_t most = 4096;
  auto json = nlohmann::json::parse(plan.generation, nullptr, false);
  if (json.is_object() && json.contains("context") && json["context"].is_number_unsigned())
    if (uint64_t context = json["context"].get<uint64_t>(); context > 0)
      return int64_t(std::min<uint64_t>(context, most));
  return most;
}

} // namespace otf
