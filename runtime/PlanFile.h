// SPDX-License-Identifier: Apache-2.0
//
// A plan in memory. The file is mapped, never read into a buffer: weights stay in the page cache
// and cost no anonymous memory. open() verifies everything that later code indexes by (container,
// checksums, FlatBuffer, and the meaning of each index), so that execution needs no checks; what
// it hands out are plain arrays. Kernels are native code: a plan with right checksums is trusted to
// stay inside its buffers, so run plans that you built or trust.
//
// Another process that cuts the file while it is mapped ends this one with SIGBUS; plans are
// replaced by rename, which is safe.
#ifndef OTF_RUNTIME_PLANFILE_H
#define OTF_RUNTIME_PLANFILE_H

#include "include/otf/PlanFormat.h"
#include "runtime/Sizes.h"
#include "runtime/Status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace otf::runtime {

/// As in plan.fbs, which the reader static_asserts.
enum class ElementType : uint8_t {
  f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean,
  f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1, i4, u4, i2, u2
};
inline constexpr unsigned kElementTypes = 23;
size_t elementSize(ElementType type);
const char *elementName(ElementType type);

enum class Space : uint8_t { input, output, slot, weight, state };

using Bytes = std::span<const std::byte>;

struct TensorInfo {
  std::string_view name;
  ElementType type;
  std::vector<SizeId> shape;
  int64_t limit = 0; // of an input: elements must be in [-limit, limit); 0: any value will do
};

struct StateInfo {
  std::string_view name, input, output;
  ElementType type;
  std::vector<SizeId> shape; // shape[axis] is `past`
  uint32_t axis;
  SizeId appended;
  int64_t width = 0; // elements of a row before its scale, where type is i8
};

struct BufferInfo {
  Space space;
  uint32_t index;  // of the input, output, slot or state
  uint64_t offset; // of a weight, in the weight section
};

enum class StepKind : uint8_t { launch, bind, branch, jump };

struct StepInfo {
  StepKind kind;
  uint32_t target;                         // of a branch or jump
  uint32_t firstSymbol = 0, symbolCount = 0; // of a bind, in ProgramInfo::symbols
  const char *kernel; // zero-terminated
  std::string_view label, message;
  uint32_t firstBuffer, bufferCount; // in ProgramInfo::buffers
  uint32_t firstDim, dimCount;       // in ProgramInfo::dims
  SizeId extent;
  uint32_t grain;
  SizeId grid[3];
  uint32_t block, shared;
  std::string_view host; // why the host runs this step of a GPU's program; empty: the GPU does
  uint32_t written;      // how many of the last buffers are written, beside states
  uint32_t firstResult = 0, resultCount = 0; // in ProgramInfo::results: what is written, or none
};

struct ProgramInfo {
  std::string_view target; // "cpu" or "cuda"
  std::vector<std::vector<SizeId>> slots;
  std::vector<StepInfo> steps;
  std::vector<BufferInfo> buffers;
  std::vector<SizeId> dims;
  std::vector<uint32_t> symbols;
  std::vector<TensorInfo> results; // named for the node whose value it is
};

struct WeightInfo {
  std::string_view name, encoding;
  uint64_t offset, size, rows, columns;
  bool vocabulary;
};

struct CodeInfo {
  std::string_view level;
  Bytes bytes;
};

class PlanFile {
public:
  static Result<std::unique_ptr<PlanFile>> open(const std::string &path);
  /// For tests and tools that hold a plan in memory; the bytes must outlive the plan and start at
  /// a multiple of 64.
  static Result<std::unique_ptr<PlanFile>> read(Bytes file);
  ~PlanFile();
  PlanFile(const PlanFile &) = delete;
  PlanFile &operator=(const PlanFile &) = delete;

  /// Content of a section; empty when the plan has none of this kind.
  Bytes section(plan::SectionKind kind) const;
  Bytes weightBytes() const { return section(plan::SectionKind::weights); }
  size_t fileSize() const { return file.size(); }

  const ProgramInfo *program(std::string_view target) const;

  std::string_view producer, model, generation;
  std::vector<std::string_view> symbols;
  std::vector<uint8_t> late; // one a symbol: whether a step binds it
  uint32_t past = 0, capacity = 0; // meaningful when there are states
  SizeTable sizes;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<StateInfo> states;
  std::vector<WeightInfo> weights;
  std::vector<ProgramInfo> programs;
  std::vector<CodeInfo> objects, cubins;

private:
  PlanFile() = default;
  Status readContainer();                 // PlanFile.cpp
  Status readMetadata(Bytes metadata);    // PlanCheck.cpp
  friend struct MetadataReader;

  Bytes file;
  void *mapping = nullptr;
  struct Section {
    plan::SectionKind kind;
    Bytes bytes;
  };
  std::vector<Section> sections;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_PLANFILE_H
