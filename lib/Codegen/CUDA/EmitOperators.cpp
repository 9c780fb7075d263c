// SPDX-License-Identifier: Apache-2.0
//
// One instantiation of the device library for each operator. Positions and heads: a tensor of heads
// is [B, H, S, D] or, with positions_first, [B, S, H, D].

#include "dialects/OTF/Caches.h"
#include "lib/Codegen/CUDA/CodecName.h"
#include "lib/Codegen/CUDA/KernelFrame.h"

using namespace mlir;

namespace otf::cuda {

// A block of the device library is eight warps. Two blocks on each of an H200's 132 multiprocessors
// keep enough bytes in flight; below that, warps share tiles.
static constexpr int64_t kWarps = 8, kBlocksWanted = 264;
static constexpr int64_t kKeyBlock = 32, kWholeKeys = 512; // of AttentionBlocks.cuh and AttentionParts.cuh
static constexpr int64_t kChunksOfBlock = 32; // kRecordPart of RowRecord.cuh
/// kRowTermFloats of OneRow.cuh, in bytes.
static int64_t termBytes(int64_t threads) { return 4 * (threads > 256 ? 8192 : 6144); }

bool emitGenerate(KernelFrame &k, tensor::GenerateOp op) {
  ArrayRef<otf::Size> shape = k.result.shape;
  std::optional<std::string> total = k.product(shape, op.getLoc());
  if (!total)
    return false;
  k.line("otf::map(" + *total + ", [=](long long p) {");
  ++k.indent;
  auto indices = k.split("p", shape, op.getLoc());
  if (!indices)
    return false;
  Block &body = op.getBody().front();
  for (auto [argument, name] : llvm::zip_equal(body.getArguments(), *indices))
    k.names[argument] = name;
  auto yielded = k.program(body, {*indices, "p", shape});
  if (!yielded)
    return false;
  k.line(k.result.pointer + "[p] = " + yielded->front() + ";");
  --k.indent;
  k.line("});");
  k.grid = KernelFrame::gridFor(shape);
  return true;
}

/// A thread a work item; the grid strides over the rest.
bool emitCompute(KernelFrame &k, ComputeOp op) {
  otf::Size extent = *otf::Size::parse(op.getExtent());
  std::optional<std::string> total = k.size(extent, op.getLoc());
  if (!total)
    return false;
  Block &body = op.getBody().front();
  for (auto [handle, result] : llvm::zip(body.getArguments().drop_front(), op.getResults()))
    k.memory[handle] = k.memory[result];
  k.names[body.getArgument(0)] = "p";
  k.line("otf::map(" + *total + ", [=](long long p) {");
  ++k.indent;
  if (!k.program(body, {{}, "0ll", {}}))
    return false;
  --k.indent;
  k.line("});");
  k.grid = KernelFrame::gridFor({extent});
  return true;
}

//===------------------------------------------------------------------------------------------===//
// Contractions and rows
//===------------------------------------------------------------------------------------------===//

static std::optional<CodecName> codecOf(Operation *op, MatrixType type) {
  CodecName name = codecName(unsigned(type.getEncoding().getKind()), type.getEncoding().getGroup(),
                             type.getRows(), type.getColumns(), type.getOutliers());
  if (!name.error)
    return name;
  op->emitError() << type << ": " << name.error;
  return std::nullopt;
}

/// Warps that share a tile: enough for the machine, and not more than there are columns for.
static int64_t splitFor(int64_t rows, int64_t chunks) {
  int64_t tiles = (rows + 7) / 8, split = 1;
  while (split < kWarps && tiles * split / kWarps < kBlocksWanted && split * 2 * 4 <= chunks)
    split *= 2;
  return split;
}

/// Where sizes that do not change say that there are many rows, as in a convolution, a block for each block of results of
/// the device library's gemm: a few output channels alone would leave most of the machine idle.
static otf::Size gridOfLinear(ArrayRef<otf::Size> rows, int64_t columns, int64_t forOneRow) {
  constexpr int64_t kBlockM = 64, kBlockN = 128; // of ManyRows.cuh
  int64_t fixed = 1;
  otf::Size others = 1;
  for (const otf::Size &size : rows) {
    if (std::optional<int64_t> constant = size.constant())
      fixed *= *constant;
    else
      others = others * size;
  }
  if (fixed < kBlockM)
    return otf::Size(forOneRow);
  int64_t blocks = (fixed + kBlockM - 1) / kBlockM * ((columns + kBlockN - 1) / kBlockN);
  return others * otf::Size(std::max(blocks, forOneRow));
}

/// The windows of a convolution as an otf::Windows (Rows.cuh), which has three axes: one that is
/// missing has one position. Nothing after a diagnostic.
static std::optional<std::string> windowsOf(KernelFrame &k, LinearOp op, StringRef weight) {
  WindowAttr window = op.getWindowAttr();
  size_t missing = 3 - window.getKernel().size();
  int64_t channels = op.getWeight().getType().getColumns() / window.getTaps();
  const Memory &x = k.memory[op.getInput()];
  std::string text = ("otf::Windows<" + weight + ", " + Twine(channels)).str();
  auto numbers = [&](ArrayRef<int64_t> list, int64_t otherwise) {
    for (size_t i = 0; i != 3; ++i)
      text += ", " + std::to_string(i < missing ? otherwise : list[i - missing]);
  };
  numbers(window.getKernel(), 1);
  numbers(window.getStride(), 1);
  numbers(window.getDilation(), 1);
  numbers(window.getBefore(), 0);
  text += ">{reinterpret_cast<const otf::uint8_t *>(" + x.pointer + ")";
  for (ArrayRef<otf::Size> shape : {ArrayRef<otf::Size>(x.shape), ArrayRef<otf::Size>(k.result.shape)}) {
    for (size_t i = 0; i != 3; ++i) {
      std::optional<std::string> size =
          i < missing ? std::string("1") : k.size(shape[1 + i - missing], op.getLoc());
      if (!size)
        return std::nullopt;
      text += (i == 0 ? ", {int(" : ", int(") + *size + ")";
    }
    text += "}";
  }
  return text + "}";
}

bool emitLinear(KernelFrame &k, LinearOp op) {
  MatrixType type = op.getWeight().getType();
  std::optional<CodecName> codec = codecOf(op, type);
  if (!codec)
    return false;
  bool records = cast<RankedTensorType>(op.getInput().getType()).getElementType().isInteger(8);
  if (records ? codec->plain : !codec->plain && !codec->floats) {
    op.emitError() << codec->weight << " cannot read " << op.getInput().getType()
                   << "; plain encodings read f32, others records of otf.prologue or, without table and outliers, f32";
    return false;
  }
  if (!records && !codec->plain)
    codec->weight = "otf::Decoded<" + codec->weight + ">";
  ArrayRef<otf::Size> shape = k.result.shape;
  std::optional<std::string> rows = k.product(shape.drop_back(), op.getLoc());
  if (!rows)
    return false;
  int64_t split = splitFor(type.getRows(), codec->chunks), tiles = (type.getRows() + 7) / 8;
  std::optional<std::string> x = k.memory[op.getInput()].pointer;
  if (op.getWindow())
    x = windowsOf(k, op, codec->weight);
  if (!x)
    return false;
  if (k.part) { // the record is the entry's
    const RowDivision &division = k.part->division;
    std::string which = codec->weight + ", " + std::to_string(division.split) + ", " + std::to_string(division.threads) + ">(";
    k.weight = codec->weight;
    k.record = "a.buffers[" + std::to_string(k.part->firstBuffer + cast<BlockArgument>(op.getInput()).getArgNumber()) + "]";
    k.scratchBytes = division.split == 1 ? 0 : termBytes(division.threads);
    k.prefetch = "otf::prefetchTiles<" + which + "a.buffers[" + std::to_string(k.part->firstBuffer + cast<BlockArgument>(op.getWeight()).getArgNumber()) + "], ";
    k.line("otf::oneRow<" + which + k.memory[op.getWeight()].pointer + ", record, scratch,");
  } else {
    k.line((op.getWindow() ? "otf::contract<" : "otf::linear<") + codec->weight + ", " + Twine(split) +
           ">(" + k.memory[op.getWeight()].pointer + ", " + *x + ", " + *rows + ",");
  }
  ++k.indent;
  k.line("[=](long long m, long long n, float acc) {");
  ++k.indent;
  k.line("const long long p = m * " + Twine(type.getRows()) + "ll + n;");
  if (op.getBias())
    k.line("acc += " + k.memory[op.getBias()].pointer + "[n];");
  std::string value = "acc";
  if (!op.getEpilogue().empty()) {
    Block &block = op.getEpilogue().front();
    auto indices = k.split("m", shape.drop_back(), op.getLoc());
    if (!indices)
      return false;
    indices->push_back("n");
    k.names[block.getArgument(0)] = "acc";
    for (auto [argument, name] : llvm::zip_equal(block.getArguments().drop_front(), *indices))
      k.names[argument] = name;
    auto yielded = k.program(block, {*indices, "p", shape});
    if (!yielded)
      return false;
    value = yielded->front();
  }
  k.line(k.result.pointer + "[p] = " + value + ";");
  --k.indent;
  k.line("}" + k.blocks() + ");");
  --k.indent;
  k.grid = k.part ? otf::Size(k.part->division.blocks(tiles))
                  : gridOfLinear(shape.drop_back(), type.getRows(), (tiles * split + kWarps - 1) / kWarps);
  return true;
}

bool emitEmbedding(KernelFrame &k, EmbeddingOp op) {
  MatrixType type = op.getTable().getType();
  std::optional<CodecName> codec = codecOf(op, type);
  ArrayRef<otf::Size> shape = k.result.shape;
  std::optional<std::string> rows = k.product(shape.drop_back(), op.getLoc());
  if (!codec || !rows)
    return false;
  k.line("otf::embedding<" + codec->weight + ">(" + k.memory[op.getTable()].pointer + ", " +
         k.memory[op.getIds()].pointer + ", " + *rows + ",");
  k.line("    [=](long long m, long long c, float w) { " + k.result.pointer + "[m * " +
         Twine(type.getColumns()) + "ll + c] = w; });");
  k.grid = KernelFrame::gridFor(shape);
  return true;
}

static StringRef kindName(NormKind kind) {
  return kind == NormKind::rms     ? "otf::Normal::rms"
         : kind == NormKind::layer ? "otf::Normal::layer"
                                   : "otf::Normal::none";
}

std::optional<std::pair<std::string, std::string>> rowsOf(KernelFrame &k, Operation *op, Value x) {
  const Memory &memory = k.memory[x];
  std::optional<std::string> rows = k.product(ArrayRef(memory.shape).drop_back(), op->getLoc());
  std::optional<std::string> width = k.size(memory.shape.back(), op->getLoc());
  if (!rows || !width)
    return std::nullopt;
  return std::pair("[=](long long m, long long c) { return " + memory.pointer + "[m * " + *width +
                       " + c]; }, " + *rows,
                   *width);
}

static std::string epsilonOf(FloatAttr attribute) { return ScalarPrinter::literal(attribute); }

bool emitNorm(KernelFrame &k, NormOp op) {
  auto rows = rowsOf(k, op, op.getInput());
  if (!rows)
    return false;
  k.line("otf::norm<" + kindName(op.getKind()) + ">(" + rows->first + ", " + rows->second + ", " +
         epsilonOf(op.getEpsilonAttr()) + ", " + k.pointerOr0(op.getScale()) + ", " +
         k.pointerOr0(op.getBias()) + ",");
  k.line("    [=](long long m, long long c, float v) { " + k.result.pointer + "[m * " +
         rows->second + " + c] = v; });");
  k.grid = elementCount(ArrayRef(k.result.shape).drop_back());
  return true;
}

/// The record of the one row there is, in the entry's shared memory.
static bool emitOneRecord(KernelFrame &k, PrologueOp op, const std::string &row, int64_t width, int64_t outliers) {
  int64_t padded = (width - outliers + 31) / 32 * 32;
  k.recordBytes = (padded + padded / 4 + 4 * outliers + 63) / 64 * 64;
  std::string layout = "otf::RecordLayout<" + std::to_string(width) + ", " + std::to_string(outliers) + ">, " + k.part->order + ", ";
  std::string row_ = row + ", " + epsilonOf(op.getEpsilonAttr()) + ", " + k.pointerOr0(op.getScale()) + ", " + k.pointerOr0(op.getBias());
  k.scratchBytes = 4 * kWarps;
  const std::string threads = ", " + std::to_string(k.part->division.threads) + ">(";
  if (k.part->spread && op.getRotationAttr()) {
    auto [rotation, factor] = rotationOf(k, op, *op.getRotation(), width);
    k.line("otf::oneRecordPartRotated<" + layout + rotation + threads + row + ", " + factor + ", reinterpret_cast<otf::uint8_t *>(" +
           k.result.pointer + "), blocks);");
    k.grid = otf::Size(width / op.getRotation()->getBlock());
    return true;
  }
  if (k.part->spread) {
    k.line("otf::oneRecordPart<" + layout.substr(0, layout.size() - 2) + ">(" + row + ", " +
           (outliers ? k.memory[op.getColumns()].pointer : std::string("nullptr")) + ", " + k.pointerOr0(op.getGrid()) +
           ", reinterpret_cast<otf::uint8_t *>(" + k.result.pointer + "), blocks);");
    k.grid = otf::Size((padded / 32 + kChunksOfBlock - 1) / kChunksOfBlock);
    return true;
  }
  if (op.getRotationAttr()) {
    auto [rotation, factor] = rotationOf(k, op, *op.getRotation(), width);
    constexpr int64_t kMost = 11264; // Rotation::kMost of Rotate.cuh, which rotates no more at once
    k.scratchBytes += 4 * std::min(kMost, (width + 31) / 32 * 32 + op.getRotation()->getBlock() * op.getRotation()->getFactor());
    k.line("otf::oneRecordRotated<" + layout + kindName(op.getKind()) + ", " + rotation + threads + row_ + ", " + factor + ", record, scratch);");
    return true;
  }
  k.line("otf::oneRecord<" + layout + kindName(op.getKind()) + threads + row_ + ", " +
         (outliers ? k.memory[op.getColumns()].pointer : std::string("nullptr")) + ", " + k.pointerOr0(op.getGrid()) + ", record, scratch);");
  return true;
}

bool emitPrologue(KernelFrame &k, PrologueOp op) {
  auto rows = rowsOf(k, op, op.getInput());
  std::optional<int64_t> width = k.memory[op.getInput()].shape.back().constant();
  if (!rows)
    return false;
  if (!width) {
    op.emitError() << "the width of a row must be static, got " << op.getInput().getType();
    return false;
  }
  int64_t outliers = op.getColumns() ? op.getColumns().getType().getOutliers() : 0;
  if (k.part)
    return emitOneRecord(k, op, rows->first.substr(0, rows->first.rfind(", ")), *width, outliers);
  if (op.getRotationAttr()) {
    auto [rotation, factor] = rotationOf(k, op, *op.getRotation(), *width);
    k.line("otf::recordRotated<otf::RecordLayout<" + Twine(*width) + ", 0>, " + kindName(op.getKind()) + ", " + rotation +
           ">(" + rows->first + ", " + epsilonOf(op.getEpsilonAttr()) + ", " + k.pointerOr0(op.getScale()) + ", " +
           k.pointerOr0(op.getBias()) + ", " + factor + ", " + k.result.pointer + ");");
    k.grid = elementCount(ArrayRef(k.result.shape).drop_back());
    return true;
  }
  k.line("otf::record<otf::RecordLayout<" + Twine(*width) + ", " + Twine(outliers) + ">, " +
         kindName(op.getKind()) + ">(" + rows->first + ", " + epsilonOf(op.getEpsilonAttr()) +
         ", " + k.pointerOr0(op.getScale()) + ", " + k.pointerOr0(op.getBias()) + ", " +
         (outliers ? k.memory[op.getColumns()].pointer : std::string("nullptr")) + ", " +
         k.pointerOr0(op.getGrid()) + ", " + k.result.pointer + ");");
  k.grid = elementCount(ArrayRef(k.result.shape).drop_back());
  return true;
}

//===------------------------------------------------------------------------------------------===//
// Heads
//===------------------------------------------------------------------------------------------===//

/// A warp has a row of a head.
static otf::Size gridOfHeads(ArrayRef<otf::Size> shape) { return KernelFrame::gridFor({shape[0], shape[1], shape[2], otf::Size(32)}); }

bool emitRope(KernelFrame &k, RopeOp op) {
  const Memory &x = k.memory[op.getInput()], &cos = k.memory[op.getCos()],
               &sin = k.memory[op.getSin()];
  std::optional<int64_t> width = x.shape[3].constant(), rotary = cos.shape[2].constant();
  if (!width || !rotary) {
    op.emitError() << "the width of a head must be static, got " << op.getInput().getType();
    return false;
  }
  bool positionsFirst = op.getPositionsFirst();
  Location loc = op.getLoc();
  auto rows = k.product(ArrayRef(x.shape).take_front(3), loc);
  auto perBatch = k.size(x.shape[1] * x.shape[2], loc);
  auto positions = k.size(x.shape[positionsFirst ? 1 : 2], loc), last = k.size(x.shape[2], loc);
  if (!rows || !perBatch || !positions || !last)
    return false;
  bool shared = cos.shape[0] == otf::Size(1);
  std::string position = positionsFirst ? "r % " + *perBatch + " / " + *last : "r % " + *last;
  std::string row = shared ? "(" + position + ")"
                           : "(r / " + *perBatch + " * " + *positions + " + " + position + ")";
  auto table = [&](const Memory &memory) {
    return "[=](long long r, int i) { return " + memory.pointer + "[" + row + " * " +
           std::to_string(*rotary) + "ll + i]; }";
  };
  std::string element = "[r * " + std::to_string(*width) + "ll + i]";
  k.line("otf::rope<" + Twine(*width) + ", " + Twine(*rotary) + ", false>(" + *rows + ",");
  k.line("    [=](long long r, int i) { return " + x.pointer + element + "; },");
  k.line("    " + table(cos) + ",");
  k.line("    " + table(sin) + ",");
  k.line("    [=](long long r, int i, float v) { " + k.result.pointer + element + " = v; }" + k.blocks() + ");");
  k.grid = gridOfHeads(x.shape);
  return true;
}

static bool isHeld(Operation *op, Type element) {
  if (element.isF32() || element.isF16() || element.isInteger(8))
    return true;
  op->emitError() << "a cache holds f32, f16 or i8, got " << element;
  return false;
}

bool emitAppend(KernelFrame &k, AppendOp op) {
  const Memory &x = k.memory[op.getUpdate()], &cache = k.memory[op.getPast()];
  StateType state = op.getPast().getType();
  if (!isHeld(op, state.getElementType()))
    return false;
  bool positionsFirst = op.getPositionsFirst();
  auto positions = k.size(x.shape[positionsFirst ? 1 : 2], op.getLoc());
  auto batch = k.size(x.shape[0], op.getLoc());
  if (!positions || !batch)
    return false;
  std::string heads = std::to_string(state.getHeads()) + "ll";
  std::string width = std::to_string(state.getWidth()) + "ll";
  // Row o of the cache is (batch, head).
  std::string row = positionsFirst ? "((o / " + heads + " * " + *positions + " + s) * " + heads +
                                         " + o % " + heads + ")"
                                   : "(o * " + *positions + " + s)";
  std::string first = "otf::AtEnd{}";
  if (op.getAt())
    first = "otf::AtPlaces{reinterpret_cast<const otf::int64_t *>(" + k.memory[op.getAt()].pointer + "), " + heads + "}";
  k.line("otf::append(" + cache.pointer + ",");
  k.line("    [=](long long o, long long s, long long i) { return " + x.pointer + "[" + row +
         " * " + width + " + i]; },");
  k.line("    " + *batch + " * " + heads + ", " + *positions + ", " + std::to_string(state.getWidth()) + ", past, capacity, " + first + k.blocks() + ");");
  k.grid = gridOfHeads(x.shape);
  return true;
}

namespace {
/// Keys or values: a cache, or a tensor [B, Hkv, T, D].
struct Keys {
  int64_t width = 0, row = 0, heads = 0; ///< elements of a head, and from one position to the next
  Type element;
  std::string count, view; ///< number of keys; an otf::Heads
};
} // namespace

static std::optional<Keys> keysOf(KernelFrame &k, Operation *op, Value operand,
                                  const otf::Size &positions) {
  const Memory &memory = k.memory[operand];
  Keys keys;
  keys.element = memory.element;
  std::string rowsOfHead;
  if (auto state = dyn_cast<StateType>(operand.getType())) {
    keys.width = state.getWidth();
    keys.row = rowElements(state);
    keys.heads = state.getHeads();
    auto added = k.size(positions, op->getLoc());
    if (!added)
      return std::nullopt;
    keys.count = "past + " + *added;
    rowsOfHead = "capacity";
  } else {
    auto width = memory.shape[3].constant(), heads = memory.shape[1].constant();
    if (!width || !heads) {
      op->emitError() << "the heads of keys and their width must be static, got "
                      << operand.getType();
      return std::nullopt;
    }
    keys.width = keys.row = *width;
    keys.heads = *heads;
    auto count = k.size(memory.shape[2], op->getLoc());
    if (!count)
      return std::nullopt;
    keys.count = rowsOfHead = *count;
  }
  std::string row = std::to_string(keys.row) + "ll";
  keys.view = "otf::Heads<" + ScalarPrinter::typeName(keys.element) + ">{" + memory.pointer + ", " +
              std::to_string(keys.heads) + "ll * " + rowsOfHead + " * " + row + ", " +
              rowsOfHead + " * " + row + ", " + row + "}";
  return keys;
}

/// Rows that are decoded: kFewRows of AttentionBlocks.cuh.
static int64_t fewRows(int64_t keyWidth, int64_t valueWidth) { return std::max(keyWidth, valueWidth) <= 256 ? 16 : 4; }

bool usesWork(AttentionOp op) {
  auto keys = dyn_cast<StateType>(op.getKey().getType()), values = dyn_cast<StateType>(op.getValue().getType());
  if (!keys || !values || keys.getHeads() < 1)
    return false;
  int64_t heads = cast<RankedTensorType>(op.getQuery().getType()).getDimSize(op.getPositionsFirst() ? 2 : 1);
  return heads > 0 && heads / keys.getHeads() <= fewRows(keys.getWidth(), values.getWidth());
}

bool emitAttention(KernelFrame &k, AttentionOp op) {
  const std::string head = k.text; // sizes and pointers
  const Memory &q = k.memory[op.getQuery()];
  bool positionsFirst = op.getPositionsFirst();
  const otf::Size &positions = q.shape[positionsFirst ? 1 : 2];
  auto heads = q.shape[positionsFirst ? 2 : 1].constant(), width = q.shape[3].constant();
  auto keys = keysOf(k, op, op.getKey(), positions),
       values = keysOf(k, op, op.getValue(), positions);
  auto batch = k.size(q.shape[0], op.getLoc()), length = k.size(positions, op.getLoc());
  if (!keys || !values || !batch || !length || !isHeld(op, keys->element))
    return false;
  if (!heads || !width || keys->element != values->element || keys->heads != values->heads ||
      keys->heads < 1 || *heads % keys->heads != 0 || *width != keys->width ||
      k.result.shape[3] != otf::Size(values->width)) {
    op.emitError()
        << "keys and values must agree with each other and divide the query's heads, got "
        << op.getQuery().getType() << ", " << op.getKey().getType() << ", "
        << op.getValue().getType();
    return false;
  }
  int64_t group = *heads / keys->heads;
  std::string mask = "otf::MaskNone{}";
  if (Value operand = op.getMask()) {
    const Memory &m = k.memory[operand];
    auto spans = [&](int axis) { return m.shape[axis] != otf::Size(1); };
    auto row = k.size(m.shape[3], op.getLoc()),
         plane = k.size(m.shape[2] * m.shape[3], op.getLoc()),
         cube = k.size(m.shape[1] * m.shape[2] * m.shape[3], op.getLoc());
    if (!row || !plane || !cube)
      return false;
    auto stride = [&](int axis, const std::string &text) { return spans(axis) ? text : "0"; };
    bool keep = m.element.isInteger(1);
    mask = (keep ? "otf::MaskKeep{reinterpret_cast<const otf::uint8_t *>(" + m.pointer + ")"
                 : "otf::MaskAdd{" + m.pointer) +
           ", " + stride(0, *cube) + ", " + stride(1, *plane) + ", " + stride(2, *row) + ", 1}";
  }
  auto element = [&](const std::string &pointer, int64_t w) {
    std::string h = std::to_string(*heads) + "ll";
    std::string row = positionsFirst ? "((long long)b * " + *length + " + i) * " + h + " + h"
                                     : "((long long)b * " + h + " + h) * " + *length + " + i";
    return pointer + "[(" + row + ") * " + std::to_string(w) + "ll + d]";
  };
  const std::string shape = "otf::AttentionShape<" + std::to_string(*width) + ", " + std::to_string(values->width) + ", " + std::to_string(group) + ">";
  const std::string counts = *batch + ", " + std::to_string(keys->heads) + ", " + *length + ", " + keys->count + ",";
  const std::string sink = op.getSink() ? "otf::HeadSink{" + k.memory[op.getSink()].pointer + "}" : std::string("otf::NoSink{}");
  const std::string write = "[=](int b, int h, int i, int d, float v) { " + element(k.result.pointer, values->width) + " = v; });";
  k.line("otf::attention<" + shape + ">(");
  ++k.indent;
  k.line(counts);
  k.line("[=](int b, int h, int i, int d) { return " + element(q.pointer, *width) + "; },");
  k.line(keys->view + ",");
  k.line(values->view + ",");
  k.line(ScalarPrinter::literal(op.getScaleAttr()) + ", " +
         ScalarPrinter::literal(op.getSoftcapAttr()) + ", " + mask + ", " + sink + ", " + k.work + ",");
  k.line(write);
  --k.indent;
  if (!usesWork(op)) {
    // A block for each query head and position: all that decoding can use.
    k.grid = q.shape[0] * positions * otf::Size(*heads);
    return true;
  }
  // So many that with one position they fill the machine, and divide the keys; with many a few have nothing to do.
  const int64_t parts = (kBlocksWanted + *heads - 1) / *heads;
  k.grid = q.shape[0] * otf::Size(*heads) * (positions + otf::Size(parts - 1));
  const int64_t block = keys->heads * (fewRows(*width, values->width) / group * group) * (values->width + 2) * 4; // bytes a block of keys
  k.workBytes = q.shape[0] * (otf::Size::symbol("capacity") * otf::Size((block + kKeyBlock - 1) / kKeyBlock) + otf::Size(block)) + otf::Size(64);
  k.second = head + "  otf::attentionCombine<" + shape + ">(" + counts + " work, " + sink + ",\n      " + write + "\n";
  k.secondGrid = q.shape[0] * otf::Size(*heads * ((values->width + 31) / 32));
  k.secondExtent = otf::Size::symbol("past") + positions - otf::Size(kWholeKeys);
  return true;
}

} // namespace otf::cuda
