// SPDX-License-Identifier: Apache-2.0
//
// Several launches as one, where they have one row: what decoding runs. Lanes have blocks of their own; the launches of a lane
// follow one another in them, a thread reading what it wrote itself. The prologue that contractions share is made by every block,
// in shared memory; where the row is so wide that this takes longer than a launch, blocks make parts of it in one of its own.
// Before anything waits for the launch before, weights are asked for.

#include "dialects/Plan/Merged.h"
#include "lib/Codegen/CUDA/KernelFrame.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace otf::cuda {

/// What a block may have on every architecture, less what a kernel declares itself.
static constexpr int64_t kMostShared = 60 * 1024;

/// __launch_bounds__ of blocks of so many threads.
static std::string bounds(int64_t threads) {
  return "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(threads) + ", otf::kOneRowThreads / " + std::to_string(threads) + ")\n";
}

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

  /// All of the groups that share a prologue, or none.
  void mergeUnit(std::vector<MergedLaunch> groups);

private:
  bool merge(MergedLaunch merged);
  /// `maker`: the prologue, where another launch makes the record.
  std::optional<CudaKernel> emit(const MergedLaunch &merged, plan::LaunchOp maker, StringRef name);
  /// Parts of a record by each block, in the order of what reads it.
  std::optional<CudaKernel> emitRecord(plan::LaunchOp prologue, plan::LaunchOp reader, StringRef name);
  bool piece(plan::LaunchOp launch, Piece &piece, KernelFrame::Part part, unsigned &buffers, unsigned &dims);
  LinearOp linearOf(plan::LaunchOp launch);
  RowDivision divide(const MergedLaunch &merged);
  bool isWide(plan::LaunchOp prologue);
  /// The name of the kernel of `parts`, which is made if it is new; empty where there is none.
  std::string kernelOf(const std::string &parts, function_ref<std::optional<CudaKernel>(StringRef)> make);

  ModuleOp module;
  CudaSource &source;
  llvm::StringMap<size_t> known;
  llvm::StringMap<std::string> entries; // by their parts; an empty name for what has no entry
};

} // namespace

/// Prints the kernel of `launch` with its buffers and sizes after those of the parts before it.
bool Merger::piece(plan::LaunchOp launch, Piece &piece, KernelFrame::Part part, unsigned &buffers, unsigned &dims) {
  auto kernel = module.lookupSymbol<plan::KernelOp>(launch.getKernel());
  part.firstBuffer = buffers;
  part.firstDim = dims;
  part.prefix += "_" + std::to_string(buffers);
  piece.frame.part = std::move(part);
  piece.frame.indent = 2;
  unsigned number = 0;
  if (!kernel || !emitBody(piece.frame, kernel, number))
    return false;
  piece.blocks = blocksOfOneRow(piece.frame.grid);
  buffers += number;
  dims += unsigned(launch.getSizes().size());
  return true;
}

LinearOp Merger::linearOf(plan::LaunchOp launch) {
  auto kernel = module.lookupSymbol<plan::KernelOp>(launch.getKernel());
  return kernel ? dyn_cast_or_null<LinearOp>(kernel.getRoot()) : LinearOp();
}

/// Linears alone know more than the usual number of threads.
RowDivision Merger::divide(const MergedLaunch &merged) {
  llvm::MapVector<int64_t, int64_t> tiles; // a lane's members have as many rows
  int64_t chunks = 0;
  for (plan::LaunchOp launch : merged.launches) {
    LinearOp linear = linearOf(launch);
    if (!linear)
      return {};
    MatrixType type = linear.getWeight().getType();
    int64_t &most = tiles[launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute).getInt()];
    most = std::max(most, (type.getRows() + 7) / 8);
    chunks = (type.getColumns() - type.getOutliers() + 31) / 32;
  }
  auto ofLanes = llvm::make_second_range(tiles);
  return divideRow({ofLanes.begin(), ofLanes.end()}, chunks);
}

/// Measured on an H200: a block makes the record of 4096 columns in about a microsecond, which is what a launch takes.
bool Merger::isWide(plan::LaunchOp prologue) {
  constexpr int64_t kMostColumns = 4096;
  auto kernel = module.lookupSymbol<plan::KernelOp>(prologue.getKernel());
  auto root = kernel ? dyn_cast_or_null<PrologueOp>(kernel.getRoot()) : PrologueOp();
  if (!root || root.getKind() != NormKind::none)
    return false;
  if (std::optional<RotationAttr> rotation = root.getRotation(); rotation && rotation->getBlock() < 32)
    return false; // parts are whole chunks
  return cast<RankedTensorType>(root.getInput().getType()).getShape().back() > kMostColumns;
}

std::optional<CudaKernel> Merger::emitRecord(plan::LaunchOp prologue, plan::LaunchOp reader, StringRef name) {
  unsigned buffers = 0, dims = 0, ignored[2] = {0, 0};
  Piece read, made;
  if (!piece(reader, read, {.prefix = name.str()}, ignored[0], ignored[1]))
    return std::nullopt;
  KernelFrame::Part part{.prefix = name.str(), .order = "otf::OrderOf<" + read.frame.weight + ">", .spread = true};
  if (cast<PrologueOp>(module.lookupSymbol<plan::KernelOp>(prologue.getKernel()).getRoot()).getRotationAttr())
    part.division.threads = kThreadsAtOnce; // a block has a multiprocessor for itself
  if (!piece(prologue, made, part, buffers, dims))
    return std::nullopt;
  CudaKernel result;
  result.name = name.str();
  result.grid = Size(made.blocks);
  result.block = unsigned(part.division.threads);
  result.source = made.frame.globals + bounds(result.block) + result.name +
                  "(otf::Args<" + std::to_string(buffers) + "> a) {\n  otf::releaseDependents();\n  otf::waitForInputs();\n" + // it fills no multiprocessor

                  "  const otf::Blocks blocks = otf::allBlocks();\n" + made.frame.text + "}\n\n";
  return result;
}

std::optional<CudaKernel> Merger::emit(const MergedLaunch &merged, plan::LaunchOp maker, StringRef name) {
  KernelFrame::Part part{.prefix = name.str(), .order = "otf::NaturalOrder", .division = divide(merged)};
  unsigned buffers = 0, dims = 0;
  std::vector<std::unique_ptr<Piece>> pieces;
  Piece prologue;
  // The prologue's arguments come first, but its record is in the order of the weights' codecs.
  if (merged.prologue && !piece(merged.prologue, prologue, part, buffers, dims))
    return std::nullopt;
  for (plan::LaunchOp launch : merged.launches)
    if (!piece(launch, *pieces.emplace_back(std::make_unique<Piece>()), part, buffers, dims))
      return std::nullopt;
  unsigned ignored[2] = {0, 0};
  if (merged.prologue) {
    part.order = "otf::OrderOf<" + pieces.front()->frame.weight + ">";
    prologue = Piece();
    if (!piece(merged.prologue, prologue, part, ignored[0], ignored[1]))
      return std::nullopt;
  }
  part.spread = true;
  if (maker && !piece(maker, prologue, part, ignored[0], ignored[1])) // for the size of its record
    return std::nullopt;
  int64_t scratch = maker ? 0 : prologue.frame.scratchBytes, record = prologue.frame.recordBytes;
  for (auto &each : pieces)
    scratch = std::max(scratch, each->frame.scratchBytes);

  // Lanes in order, each with its blocks.
  llvm::MapVector<int64_t, std::vector<size_t>> lanes;
  for (auto [i, launch] : llvm::enumerate(merged.launches))
    lanes[launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute).getInt()].push_back(i);
  std::string globals = maker ? std::string() : prologue.frame.globals, prefetch, body;
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
  if (record + scratch > kMostShared || buffers > kMostBuffers)
    return std::nullopt;
  CudaKernel result;
  result.name = name.str();
  result.grid = Size(first);
  result.shared = unsigned(record + scratch);
  result.block = unsigned(part.division.threads);
  result.source = globals + bounds(result.block) + result.name + "(otf::Args<" + std::to_string(std::max(buffers, 1u)) + "> a) {\n" + prefetch;
  if (!merged.prologue) // which waits itself, after what depends on nothing
    result.source += "  otf::waitForInputs();\n";
  if (merged.prologue || maker)
    result.source += "  extern __shared__ __align__(16) otf::uint8_t shared[];\n  otf::uint8_t *const record = shared;\n"
                     "  float *const scratch = reinterpret_cast<float *>(shared + " +
                     std::to_string(record) + ");\n" +
                     (maker ? "  otf::copyRecord<" + std::to_string(result.block) + ">(" + pieces.front()->frame.record + ", " + std::to_string(record) + ", record);\n"
                            : "  {\n" + prologue.frame.text + "  }\n");
  // Not before: blocks of the next launch that come early take places on some multiprocessors, and divide what is left unevenly. On an
  // H200 that cost a fifth of launches that fill half of it.
  result.source += "  otf::releaseDependents();\n" + body + "\n}\n\n";
  return result;
}

std::string Merger::kernelOf(const std::string &parts, function_ref<std::optional<CudaKernel>(StringRef)> make) {
  auto [entry, isNew] = entries.try_emplace(parts);
  if (!isNew)
    return entry->second;
  std::string name = "row_" + std::to_string(entries.size() - 1);
  if (std::optional<CudaKernel> made = make(name)) {
    entry->second = name;
    source.text += made->source;
    source.kernels.push_back(std::move(*made));
  }
  return entry->second;
}

/// False where it stays as it is: a part that has no CUDA form is the host's.
bool Merger::merge(MergedLaunch merged) {
  bool isWhole = !merged.prologue || known.count(merged.prologue.getKernel());
  std::string parts;
  for (plan::LaunchOp launch : merged.launches) {
    isWhole = isWhole && known.count(launch.getKernel());
    parts += (" " + launch.getKernel() + ":" + Twine(launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute).getInt())).str();
  }
  if (!isWhole)
    return false;
  plan::LaunchOp maker;
  if (merged.prologue && isWide(merged.prologue))
    std::swap(maker, merged.prologue);
  const std::string head = maker ? maker.getKernel().str() + "," : merged.prologue ? merged.prologue.getKernel().str() : "";
  merged.kernel = kernelOf(head + parts, [&](StringRef name) { return emit(merged, maker, name); });
  if (merged.kernel.empty())
    return false;
  if (maker) {
    MergedLaunch record;
    record.launches.push_back(maker);
    record.kernel = kernelOf(head + "record" + parts, [&](StringRef name) { return emitRecord(maker, merged.launches.front(), name); });
    if (record.kernel.empty())
      return false;
    source.merged.push_back(std::move(record));
  }
  source.merged.push_back(std::move(merged));
  return true;
}

void Merger::mergeUnit(std::vector<MergedLaunch> groups) {
  // A record that a launch of its own makes is in the order of one codec.
  if (groups.size() > 1 && groups.front().prologue && isWide(groups.front().prologue))
    return;
  // A prologue that does nothing is right only if nobody reads what it would have made.
  size_t before = source.merged.size();
  for (MergedLaunch &group : groups)
    if (!merge(std::move(group)))
      return source.merged.resize(before);
}

void emitMerged(ModuleOp planned, CudaSource &source) {
  Merger merger(planned, source);
  DenseMap<int64_t, plan::LaunchOp> prologues;
  llvm::MapVector<int64_t, llvm::MapVector<int64_t, MergedLaunch>> units;
  planned.walk([&](plan::LaunchOp launch) {
    auto unit = launch->getAttrOfType<IntegerAttr>(plan::kLaunchUnitAttribute);
    auto number = launch->getAttrOfType<IntegerAttr>(plan::kMergedAttribute);
    if (!unit)
      return;
    if (!number || !launch->getAttrOfType<IntegerAttr>(plan::kLaneAttribute)) {
      prologues[unit.getInt()] = launch;
      return;
    }
    MergedLaunch &to = units[unit.getInt()][number.getInt()];
    to.prologue = prologues.lookup(unit.getInt());
    to.launches.push_back(launch);
  });
  for (auto &[unit, merged] : units) {
    std::vector<MergedLaunch> groups;
    for (auto &[number, group] : merged)
      groups.push_back(std::move(group));
    merger.mergeUnit(std::move(groups));
  }
}

} // namespace otf::cuda
