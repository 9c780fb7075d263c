// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a plan as plain values, for the compiler to fill: include/otf/plan.fbs field by
// field, and that file explains them. serialize() turns them into bytes; equal values give equal
// bytes.
#ifndef OTF_LIB_PLAN_PLANMODEL_H
#define OTF_LIB_PLAN_PLANMODEL_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace otf::plan::model {

enum class ElementType : uint8_t {
  f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean,
  f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1, i4, u4, i2, u2
};

struct Term {
  int64_t coefficient = 1;
  std::vector<uint32_t> symbols;
  auto operator<=>(const Term &) const = default;
};

struct Size {
  std::vector<Term> terms;

  static Size constant(int64_t value) {
    return value ? Size{{Term{value, {}}}} : Size{};
  }
  static Size symbol(uint32_t index) { return Size{{Term{1, {index}}}}; }
  auto operator<=>(const Size &) const = default;
};

struct Tensor {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<Size> shape;
  int64_t limit = 0;
};

struct State {
  std::string name, input, output;
  ElementType type = ElementType::f32;
  std::vector<Size> shape;
  uint32_t axis = 0;
  Size appended;
};

struct Slot {
  std::vector<Size> sizes;
};

enum class Space : uint8_t { input, output, slot, weight, state };

struct Buffer {
  Space space = Space::input;
  uint32_t index = 0;
  uint64_t offset = 0;
};

enum class StepKind : uint8_t { launch, bind, branch, jump };

struct Step {
  std::string kernel, label;
  std::vector<Buffer> buffers;
  std::vector<Size> dims;
  Size extent = Size::constant(1);
  uint32_t grain = 1;
  std::vector<Size> grid; // empty, or x, y, z
  uint32_t block = 0, shared = 0;
  StepKind kind = StepKind::launch;
  std::vector<uint32_t> symbols; // of a bind
  uint32_t target = 0;           // of a branch or jump
  std::string message;           // of a bind
  std::string host;              // CUDA: why the host runs this step; empty: the GPU does
  uint32_t written = 0;          // how many of the last buffers a launch writes
  std::vector<Tensor> results;   // what it writes there: as many, or none
};

struct Program {
  std::string target;
  std::vector<Slot> slots;
  std::vector<Step> steps;
};

struct Weight {
  std::string name;
  uint64_t offset = 0, size = 0;
  std::string encoding;
  uint64_t rows = 0, columns = 0;
  bool vocabulary = false;
};

struct Code {
  std::string level;
  uint64_t offset = 0, size = 0;
};

struct Plan {
  std::string producer, model;
  std::vector<std::string> symbols;
  uint32_t past = 0, capacity = 0;
  std::vector<Tensor> inputs, outputs;
  std::vector<State> states;
  std::vector<Weight> weights;
  std::vector<Program> programs;
  std::vector<Code> objects, cubins;
  std::string generation;
};

/// The bytes of the metadata section.
std::vector<std::byte> serialize(const Plan &plan);

} // namespace otf::plan::model

#endif // OTF_LIB_PLAN_PLANMODEL_H
