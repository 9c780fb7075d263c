// SPDX-License-Identifier: Apache-2.0
//
// Several launches as one, where they have one row: what decoding runs. Lanes have blocks of their own; the launches of a lane
// follow one another in them, a thread reading what it wrote itself. The prologue that contractions share is made by every block,
// in shared memory. Before anything waits for the launch before, weights are asked for.

#include "dialects/Plan/Merged.h"
#include "lib/Codegen/CUDA/KernelFrame.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace otf::cuda {

namespace {

/// A launch's kernel as a part of an entry.
struct Piece {
  KernelFrame frame;
  int64_t blocks = 1;
};

/// The value of a grid where every size is 1; kernels stride over the rest.
int64_t blocksOfOneRow(const Size &grid) {
  int64_t sum = 0;
  for (auto &[monomial, coefficient] : grid.terms())
    sum += coefficient;
  return std::max<int64_t>(sum, 1);
}

class Merger {
public:
  Merger(ModuleOp module, CudaSource &source) : module(module), source(source) {
    for (const CudaKernel &kernel : source.kernels)
      known.insert({kernel.name, &kernel - source.kernels.data()});
  }

  void merge(MergedLaunch merged);

private:
  std::optional<CudaKernel> emit(const MergedLaunch &merged, StringRef name);
  bool piece(plan::LaunchOp launch, Piece &piece, StringRef name, StringRef order, unsigned &buffers, unsigned &dims);

  ModuleOp module;
  CudaSource &source;
  llvm::StringMap<size_t> known;
  llvm::StringMap<std::string> entries; // by their parts; an empty name for what has no entry
};

} // namespace

/// Prints the kernel of `launch` with its buffers and sizes after those of the parts before it.
bool Merger::piece(plan::LaunchOp launch, Piece &piece, StringRef name, StringRef order, unsigned &buffers, unsigned &dims) {
  auto kernel = module.lookupSymbol<plan::KernelOp>(launch.getKernel());
  piece.frame.part = {buffers, dims, (name + "_" + Twine(buffers)).str(), order.str()};
  piece.frame.indent = 2;
  unsigned number = 0;
  if (!kernel || !emitBody(piece.frame, kernel, number))
    return false;
  piece.blocks = blocksOfOneRow(piece.frame.grid);
  buffers += number;
  dims += unsigned(launch.getSizes().size());
  return true;
}

std::optional<CudaKernel> Merger::emit(const MergedLaunch &merged, StringRef name) {
  unsigned buffers = 0, dims = 0;
  std::string order = "otf::NaturalOrder";
  std::vector<std::unique_ptr<Piece>> pieces;
  Piece prologue;
  // The prologue's arguments come first, but its record is in the order of the weights' codecs.
  if (merged.prologue && !piece(merged.prologue, prologue, name, order, buffers, dims))
    return std::nullopt;
  for (plan::LaunchOp launch : merged.launches)
    if (!piece(launch, *pieces.emplace_back(std::make_unique<Piece>()), name, order, buffers, dims))
      return std::nullopt;
  if (merged.prologue) {
    unsigned ignored[2] = {0, 0};
    order = "otf::OrderOf<" + pieces.front()->frame.weight + ">";
    prologue = Piece();
    if (!piece(merged.prologue, prologue, name, order, ignored[0], ignored[1]))
      return std::nullopt;
  }
  int64_t scratch = prologue.frame.scratchBytes, record = prologue.frame.recordBytes;
  for (auto &each : pieces)
    scratch = std::max(scratch, each->frame.scratchBytes);

  // Lanes in order, each with its blocks.
  llvm::MapVector<int64_t, std::vector<size_t>> lanes;
  for (auto [i, launch] : llvm::enumerate(merged.launches))
    lanes[launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute).getInt()].push_back(i);
  std::string globals = prologue.frame.globals, prefetch, body;
  int64_t first = 0;
  for (auto &[lane, members] : lanes) {
    int64_t blocks = 0;
    for (size_t i : members)
      blocks = std::max(blocks, pieces[i]->blocks);
    std::string mine = "otf::Blocks{blockIdx.x - " + std::to_string(first) + "ll, " + std::to_string(blocks) + "}";
    body += (first ? " else if (blockIdx.x < " : "  if (blockIdx.x < ") + std::to_string(first + blocks) + ") {\n    const otf::Blocks blocks = " +
            mine + ";\n";
    for (size_t i : members) {
      body += "    {\n" + pieces[i]->frame.text + "    }\n";
      globals += pieces[i]->frame.globals;
      if (!pieces[i]->frame.prefetch.empty())
        prefetch += "  " + pieces[i]->frame.prefetch + mine + ");\n";
    }
    body += "  }";
    first += blocks;
  }
  CudaKernel result;
  result.name = name.str();
  result.grid = Size(first);
  result.shared = unsigned(record + scratch);
  result.source = globals + "extern \"C\" __global__ void __launch_bounds__(otf::kThreads, otf::kOneRowBlocks)\n" + result.name +
                  "(otf::Args<" + std::to_string(std::max(buffers, 1u)) + "> a) {\n  otf::releaseDependents();\n" + prefetch +
                  "  otf::waitForInputs();\n";
  if (merged.prologue)
    result.source += "  extern __shared__ __align__(16) otf::uint8_t shared[];\n  otf::uint8_t *const record = shared;\n"
                     "  float *const scratch = reinterpret_cast<float *>(shared + " +
                     std::to_string(record) + ");\n  {\n" + prologue.frame.text + "  }\n";
  result.source += body + "\n}\n\n";
  return result;
}

void Merger::merge(MergedLaunch merged) {
  std::string parts = merged.prologue ? merged.prologue.getKernel().str() : std::string("-");
  for (plan::LaunchOp launch : merged.launches)
    parts += (" " + launch.getKernel() + ":" +
              Twine(launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute).getInt()))
                 .str();
  auto [entry, isNew] = entries.try_emplace(parts);
  if (isNew) {
    std::string name = "row_" + std::to_string(entries.size() - 1);
    // A part that has no CUDA form is the host's, and so are its fellows: then nothing is merged.
    bool isWhole = !merged.prologue || known.count(merged.prologue.getKernel());
    for (plan::LaunchOp launch : merged.launches)
      isWhole = isWhole && known.count(launch.getKernel());
    std::optional<CudaKernel> made;
    if (isWhole)
      made = emit(merged, name);
    if (made) {
      entry->second = name;
      source.text += made->source;
      source.kernels.push_back(std::move(*made));
    }
  }
  if (entry->second.empty())
    return;
  merged.kernel = entry->second;
  source.merged.push_back(std::move(merged));
}

void emitMerged(ModuleOp planned, CudaSource &source) {
  Merger merger(planned, source);
  DenseMap<int64_t, plan::LaunchOp> prologues;
  llvm::MapVector<int64_t, MergedLaunch> merged;
  planned.walk([&](plan::LaunchOp launch) {
    auto unit = launch->getAttrOfType<IntegerAttr>(plan::kUnitAttribute);
    auto number = launch->getAttrOfType<IntegerAttr>(plan::kMergedAttribute);
    if (!unit)
      return;
    if (!number || !launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute)) {
      prologues[unit.getInt()] = launch;
      return;
    }
    MergedLaunch &to = merged[number.getInt()];
    to.prologue = prologues.lookup(unit.getInt());
    to.launches.push_back(launch);
  });
  for (auto &[number, each] : merged)
    merger.merge(std::move(each));
}

} // namespace otf::cuda
