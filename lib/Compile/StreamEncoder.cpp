// SPDX-License-Identifier: Apache-2.0
//
// A weight is cut into blocks of whole tiles of about four megabytes; `threads` blocks are read,
// scaled and encoded at once and then appended in order. Blocks depend on the shape only, and so
// does the order in which their errors are summed. What is in memory is a block of floats and its
// codes a thread, for as many threads as kMostMemory has room for; the files are mapped and their
// pages are the kernel's.

#include "lib/Compile/StreamEncoder.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "dialects/OTF/Taps.h"
#include "include/otf/PlanFormat.h"
#include "lib/Compile/DerivedWeights.h"
#include "lib/Compile/FeedbackSource.h"
#include "lib/Compile/GridDetector.h"
#include "lib/Compile/PlanAssembly.h"
#include "lib/Compile/WeightRows.h"
#include "lib/Import/FileSet.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <map>
#include <thread>

using namespace mlir;

namespace otf {

static constexpr int64_t kBlockBytes = 4 << 20;
static constexpr int64_t kMostBlockBytes = 16 << 20;
/// Of all blocks together: a compilation stays below 150 MB however many threads it has.
static constexpr int64_t kMostMemory = 48 << 20;
/// Rows of a transposed matrix are columns in the file; so many at once use whole cache lines.
static constexpr int64_t kTransposedRows = 64;

static std::string text(Attribute attribute) {
  std::string result;
  llvm::raw_string_ostream(result) << attribute;
  return result;
}

static std::string text(Type type) {
  std::string result;
  llvm::raw_string_ostream(result) << type;
  return result;
}

/// "uint4 codes, blocks of 32, zero points".
static std::string inWords(GivenAttr given, Type type) {
  int64_t columns = cast<RankedTensorType>(type).getDimSize(1);
  std::string result = given.getTable() ? std::to_string(given.getBits()) + "-bit codes of a table"
                                        : (given.getIsSigned() ? "int" : "uint") + std::to_string(given.getBits()) + " codes";
  if (given.getScaleBlock() != 0 && given.getBlock() < columns)
    result += ", blocks of " + std::to_string(given.getBlock());
  else
    result += given.getScaleRow() != 0 ? ", one scale a row" : ", one scale";
  if (given.getZeros())
    result += isa<DenseF32ArrayAttr>(given.getZeros()) || cast<BlobAttr>(given.getZeros()).getType().isInteger(8)
                  ? ", zero points"
                  : ", float zero points";
  return result;
}

static WeightOp lookup(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<WeightOp>(from, name);
}

/// Where a complaint about a weight points: at its tensor in the model, or at least at its name.
static Location named(WeightOp weight) {
  if (isa<NameLoc>(weight.getLoc()))
    return weight.getLoc();
  return NameLoc::get(weight.getSymNameAttr(), weight.getLoc());
}

/// Bytes of an element of a plain tensor in the plan; 0 for types that are not stored.
static int64_t storedBytes(Type type) {
  if (type.isInteger(1))
    return 1;
  return type.isIntOrFloat() && type.getIntOrFloatBitWidth() % 8 == 0
             ? type.getIntOrFloatBitWidth() / 8
             : 0;
}

/// Lays out a matrix: `stored` gets its tiles.
static LogicalResult layOutMatrix(plan::WeightOp use, MatrixType matrix, StoredWeight &stored) {
  WeightOp weight = stored.weight;
  auto type = dyn_cast<RankedTensorType>(weight.getType());
  if (!type || type.getRank() != 2 || type.getDimSize(0) != matrix.getRows() ||
      type.getDimSize(1) != matrix.getColumns())
    return use.emitOpError() << "reads @" << weight.getSymName() << " of type " << weight.getType()
                             << " as " << matrix;
  ArrayRef<int64_t> outliers;
  if (weight.getOutliers())
    outliers = weight.getOutliers()->getColumns();
  if (matrix.getOutliers() == 0)
    outliers = {};
  else if (int64_t(outliers.size()) != matrix.getOutliers())
    return use.emitOpError() << "reads @" << weight.getSymName() << " with " << matrix.getOutliers()
                             << " outlier columns, but it has " << outliers.size();
  std::string error;
  stored.tiles =
      TileEncoder::create(int(matrix.getEncoding().getKind()), matrix.getEncoding().getGroup(),
                          matrix.getRows(), matrix.getColumns(), outliers, error, weight.getJointFit());
  if (!stored.tiles)
    return emitError(named(weight)) << "cannot be encoded (" << error << ")";
  stored.encoding = text(matrix.getEncoding());
  stored.outliers = matrix.getOutliers();
  stored.rows = matrix.getRows();
  stored.columns = matrix.getColumns();
  stored.size = uint64_t(stored.tiles->blobBytes());
  return success();
}

static LogicalResult layOutTensor(plan::WeightOp use, RankedTensorType type, StoredWeight &stored) {
  int64_t element = storedBytes(type.getElementType());
  if (!type.hasStaticShape() || element == 0)
    return use.emitOpError() << "cannot be stored as " << type
                             << " (a static shape of whole-byte elements is)";
  bool scaledOrTransposed = stored.weight.getScale() || stored.weight.getBlob().getTransposed();
  if (scaledOrTransposed && type.getRank() != 2)
    return use.emitOpError() << "cannot be scaled or transposed as " << type;
  stored.encoding = text(type.getElementType());
  stored.columns = type.getRank() == 0 ? 1 : type.getShape().back();
  stored.rows = stored.columns == 0 ? 0 : type.getNumElements() / stored.columns;
  stored.size = uint64_t(type.getNumElements() * element);
  return success();
}

FailureOr<StreamEncoder> StreamEncoder::plan(ModuleOp module) {
  StreamEncoder encoder;
  std::map<std::string, size_t> known; // what decides a weight's bytes, as text
  WalkResult walked = module.walk([&](plan::WeightOp use) {
    WeightOp weight = lookup(use, use.getWeightAttr());
    if (!weight) {
      use.emitOpError() << "names no otf.weight: " << use.getWeightAttr();
      return WalkResult::interrupt();
    }
    Type content = cast<plan::BufferType>(use.getType()).getContent();
    std::string key = text(weight.getBlob()) + text(weight.getType()) + text(content);
    if (weight.getScale()) {
      WeightOp scale = lookup(weight, weight.getScaleAttr());
      if (!scale) {
        weight.emitOpError() << "names no otf.weight as scale: " << weight.getScaleAttr();
        return WalkResult::interrupt();
      }
      key += " scale " + text(scale.getBlob());
    }
    if (weight.getOutliersAttr())
      key += text(weight.getOutliersAttr());
    // Its codes depend on what it multiplies, which is its own.
    if (weight.getFeedbackAttr())
      key += " feedback " + text(weight.getFeedbackAttr()) + weight.getSymName().str();
    if (weight.getRotationAttr())
      key += " by " + text(weight.getRotationAttr());
    if (Attribute units = weight->getAttr(kUnitAttribute)) // equal attributes are one
      key += " units " + std::to_string(reinterpret_cast<uintptr_t>(units.getAsOpaquePointer()));
    if (!derivedPart(weight).empty())
      key += " derived " + weight.getSymName().str();
    if (weight.getJointFit())
      key += " joint";
    if (int64_t taps = tapsOf(weight); taps != 1)
      key += " taps " + std::to_string(taps);
    if (weight.getGivenAttr())
      key += text(weight.getGivenAttr()) + (weight.getKeepsGiven() ? " kept" : "") + (weight->hasAttr(kRowScalesAttribute) ? " codes" : "");
    else if (weight->hasAttr(kRowScalesAttribute))
      key += " codes";
    auto [it, fresh] = known.try_emplace(key, encoder.weights.size());
    encoder.uses[use] = it->second;
    if (!fresh) {
      encoder.weights[it->second].vocabulary |= weight.getVocabulary();
      return WalkResult::advance();
    }
    StoredWeight stored;
    stored.weight = weight;
    stored.content = content;
    stored.name = weight.getSymName().str();
    for (Operation *reader : use->getUsers())
      if (stored.node.empty())
        stored.node = nodeOf(reader->getLoc());
    stored.vocabulary = weight.getVocabulary();
    if (weight.getGiven())
      stored.given = inWords(*weight.getGiven(), weight.getType());
    if (weight.getEncodingAttr())
      stored.asked = text(weight.getEncodingAttr());
    if (weight.getRotationAttr())
      stored.rotation = text(weight.getRotationAttr());
    auto matrix = dyn_cast<MatrixType>(content);
    auto tensor = dyn_cast<RankedTensorType>(content);
    if (!matrix && !tensor) {
      use.emitOpError() << "holds neither a matrix nor a tensor: " << content;
      return WalkResult::interrupt();
    }
    if (failed(matrix ? layOutMatrix(use, matrix, stored) : layOutTensor(use, tensor, stored)))
      return WalkResult::interrupt();
    encoder.bytes = llvm::alignTo(encoder.bytes, plan::kWeightAlignment);
    stored.offset = encoder.bytes;
    encoder.bytes += stored.size;
    encoder.weights.push_back(std::move(stored));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return encoder;
}

namespace {

/// The memory of one thread, kept from weight to weight.
struct Block {
  std::vector<float> floats;
  std::vector<std::byte> bytes;
  GivenGrid grid;
  CodingError error;
  std::string failure;
};

using Make = llvm::function_ref<std::string(int64_t firstRow, int64_t rows, Block &)>;

} // namespace

/// Keeps as many blocks of `bytes` each as there may be. Those of another weight are kept if it had as
/// many, since memory that is given back and taken again costs page faults.
static void fit(std::vector<Block> &blocks, unsigned threads, int64_t bytes) {
  auto count = size_t(std::clamp<int64_t>(kMostMemory / std::max<int64_t>(bytes, 1), 1, threads));
  if (blocks.size() == count)
    return;
  blocks.clear();
  blocks.resize(count);
}

/// Runs `make` on blocks of rows, several at once, and appends what they give in order. Returns one
/// clause if a block failed, that of the first such block.
static std::string stream(int64_t rows, int64_t blockRows, std::vector<Block> &blocks, Sink sink,
                          CodingError &error, Make make) {
  bool alive = true;
  for (int64_t row = 0; row < rows && alive;) {
    std::vector<std::thread> others;
    size_t used = 0;
    auto run = [&make](int64_t first, int64_t count, Block &block) {
      block.error = {};
      block.failure = make(first, count, block);
    };
    int64_t firstRow = row, firstCount = std::min(blockRows, rows - row);
    row += firstCount;
    for (used = 1; used < blocks.size() && row < rows; ++used) {
      int64_t count = std::min(blockRows, rows - row);
      others.emplace_back(run, row, count, std::ref(blocks[used]));
      row += count;
    }
    run(firstRow, firstCount, blocks[0]);
    for (std::thread &other : others)
      other.join();
    for (size_t i = 0; i < used; ++i) {
      if (!blocks[i].failure.empty())
        return blocks[i].failure;
      error += blocks[i].error;
      alive = alive && sink(blocks[i].bytes);
    }
  }
  return {};
}

/// The grid of rows [first, first + count) as an encoding with codes around 0 takes it.
static const GivenGrid *gridOf(const GivenWeight &given, int64_t bits, bool isSigned, bool zeros, int64_t first,
                               int64_t count, GivenGrid &grid) {
  int64_t groups = given.blocks();
  float middle = isSigned ? 0.0f : float(1 << (bits - 1));
  grid.scales.resize(size_t(count * groups));
  grid.zeros.resize(zeros ? size_t(count * groups) : 0);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t at = 0; at < groups; ++at) {
      float scale = given.scale(first + row, at);
      grid.scales[size_t(row * groups + at)] = scale;
      if (zeros)
        grid.zeros[size_t(row * groups + at)] = scale * (middle - given.point(first + row, at));
    }
  return &grid;
}

/// Makes rows that have a scale each the codes of otf-choose-grids.
static void toCodes(DenseFPElementsAttr scales, int64_t first, int64_t rows, int64_t columns, Block &block) {
  auto scale = scales.value_begin<float>() + first;
  for (int64_t row = 0; row < rows; ++row, ++scale)
    for (float &value : llvm::MutableArrayRef(block.floats).slice(size_t(row * columns), size_t(columns))) {
      double code = codeOf(value, *scale), difference = double(value) - code * double(*scale);
      block.error.weight += double(value) * double(value);
      block.error.difference += difference * difference;
      value = float(code);
    }
}

static std::string writeMatrix(StoredWeight &stored, const WeightRows &source, FeedbackSource &feedbacks, Sink sink,
                               std::vector<Block> &blocks, unsigned threads) {
  const TileEncoder &tiles = *stored.tiles;
  llvm::Expected<const Feedback *> feedback = feedbacks.of(stored.weight, tiles.order());
  if (!feedback)
    return llvm::toString(feedback.takeError());
  sink(tiles.index());
  int64_t columns = tiles.columns();
  auto rowsIn = [&](int64_t bytes) { return std::max<int64_t>(8, bytes / (columns * 4) / 8 * 8); };
  int64_t blockRows = rowsIn(kBlockBytes);
  if (stored.weight.getBlob().getTransposed())
    blockRows = std::max(blockRows, std::min(kTransposedRows, rowsIn(kMostBlockBytes)));
  blockRows = std::min(blockRows, int64_t(llvm::alignTo(stored.rows, 8)));
  fit(blocks, threads, blockRows * columns * 4 + blockRows / 8 * tiles.tileBytes());
  std::optional<DenseFPElementsAttr> rowScales;
  if (auto scales = stored.weight->getAttrOfType<DenseFPElementsAttr>(kRowScalesAttribute); scales && !stored.weight.getGiven())
    rowScales = scales;
  auto make = [&](int64_t first, int64_t rows, Block &block) -> std::string {
    block.floats.resize(size_t(rows * columns));
    block.bytes.resize(size_t((rows + 7) / 8 * tiles.tileBytes()));
    if (llvm::Error error = source.read(first, rows, block.floats.data()))
      return llvm::toString(std::move(error));
    if (first == 0 && !source.given() && derivedPart(stored.weight).empty()) // by the thread that calls
      stored.grid = describeGrid(block.floats.data(), rows, columns);
    const GivenGrid *grid = nullptr;
    if (stored.weight.getKeepsGiven()) {
      GivenAttr given = *stored.weight.getGiven();
      if (tiles.groups() != source.given()->blocks())
        return "its groups are not the blocks of the grid that it keeps";
      EncodingKind kind = cast<MatrixType>(stored.content).getEncoding().getKind();
      bool zeros = kind == EncodingKind::grid8z || kind == EncodingKind::grid4z || kind == EncodingKind::grid2z;
      grid = gridOf(*source.given(), given.getBits(), given.getIsSigned(), zeros, first, rows, block.grid);
    } else if (rowScales) {
      toCodes(*rowScales, first, rows, columns, block);
      block.grid.scales.assign(size_t(rows * tiles.groups()), 1);
      CodingError exact;
      const char *bad = tiles.encode(block.floats.data(), rows, block.bytes.data(), exact, &block.grid);
      return bad ? bad : "";
    }
    const char *bad = tiles.encode(block.floats.data(), rows, block.bytes.data(), block.error, grid, *feedback);
    return bad ? bad : "";
  };
  return stream(stored.rows, blockRows, blocks, sink, stored.error, make);
}

static std::string writeTensor(StoredWeight &stored, const WeightRows &source, Sink sink,
                               std::vector<Block> &blocks, unsigned threads) {
  if (stored.size == 0)
    return {};
  Type to = cast<RankedTensorType>(stored.content).getElementType();
  BlobAttr blob = stored.weight.getBlob();
  if (to == blob.getType() && !blob.getTransposed() && !stored.weight.getScaleAttr() && !stored.weight.getGiven() && derivedPart(stored.weight).empty()) {
    llvm::Expected<const std::byte *> bytes = source.raw();
    if (!bytes)
      return llvm::toString(bytes.takeError());
    sink({*bytes, size_t(stored.size)});
    return {};
  }
  if (blob.getType().getIntOrFloatBitWidth() < 8 && to.isInteger(8) && !blob.getTransposed() &&
      !stored.weight.getScaleAttr()) {
    int64_t columns = stored.columns, blockRows = std::max(int64_t(1), kBlockBytes / columns);
    fit(blocks, threads, blockRows * columns);
    return stream(stored.rows, blockRows, blocks, sink, stored.error,
                  [&](int64_t first, int64_t rows, Block &block) -> std::string {
                    block.bytes.resize(size_t(rows * columns));
                    return llvm::toString(source.unpack(first * columns, rows * columns,
                                                        reinterpret_cast<int8_t *>(block.bytes.data())));
                  });
  }
  if (!to.isF32() && !to.isF16())
    return "a tensor of " + text(blob.getType()) + " cannot be stored as " + text(to);
  int64_t columns = stored.columns;
  int64_t blockRows = std::max(int64_t(1), kBlockBytes / (columns * 4));
  fit(blocks, threads, blockRows * columns * 8);
  auto make = [&](int64_t first, int64_t rows, Block &block) -> std::string {
    int64_t count = rows * columns;
    block.floats.resize(size_t(count));
    if (llvm::Error error = source.read(first, rows, block.floats.data()))
      return llvm::toString(std::move(error));
    if (to.isF32()) {
      auto bytes = std::as_bytes(std::span(block.floats));
      block.bytes.assign(bytes.begin(), bytes.end());
      return {};
    }
    block.bytes.resize(size_t(2 * count));
    const char *bad = toHalf(block.floats.data(), count, block.bytes.data());
    return bad ? bad : "";
  };
  return stream(stored.rows, blockRows, blocks, sink, stored.error, make);
}

LogicalResult StreamEncoder::write(const FileSet &files, const Statistics *statistics, Sink sink, unsigned threads,
                                   llvm::function_ref<void(const StoredWeight &)> progress) {
  static constexpr std::byte zeros[plan::kWeightAlignment] = {};
  threads = std::max(1u, threads);
  std::vector<Block> blocks;
  FeedbackSource feedbacks(statistics);
  DerivedWeights derived(files, statistics, feedbacks);
  uint64_t position = 0;
  bool alive = true;
  auto count = [&](std::span<const std::byte> bytes) {
    position += bytes.size();
    return alive = alive && sink(bytes);
  };
  for (StoredWeight &stored : weights) {
    count(std::span(zeros).first(stored.offset - position));
    std::string failure;
    if (llvm::Expected<WeightRows> source = derivedPart(stored.weight).empty()
                                                ? WeightRows::open(files, stored.weight, stored.rows, stored.columns)
                                                : derived.of(stored.weight, stored.rows, stored.columns))
      failure = stored.isMatrix() ? writeMatrix(stored, *source, feedbacks, count, blocks, threads)
                                  : writeTensor(stored, *source, count, blocks, threads);
    else
      failure = llvm::toString(source.takeError());
    if (!failure.empty())
      return emitError(named(stored.weight)) << "cannot be stored (" << failure << ")";
    if (!alive)
      return success(); // whoever owns the sink knows why
    assert(position == stored.offset + stored.size && "layout and bytes agree");
    derived.account(stored.weight, stored.error, stored.leaves);
    if (progress)
      progress(stored);
  }
  return success();
}

} // namespace otf
