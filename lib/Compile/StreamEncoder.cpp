// SPDX-License-Identifier: Apache-2.0
//
// A weight is cut into blocks of whole tiles (WeightBlocks.h), which threads read, scale and encode (BlockQueue.h); they are
// appended in order. Blocks depend on the shape only, and so does the order in which their errors are summed. The files are mapped
// and their pages are the kernel's.

#include "lib/Compile/StreamEncoder.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "dialects/OTF/Taps.h"
#include "include/otf/PlanFormat.h"
#include "lib/Compile/BlockQueue.h"
#include "lib/Compile/PlanAssembly.h"
#include "lib/Import/FileSet.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace otf {

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

/// Without what it is derived from.
static double codingWork(const StoredWeight &stored) {
  auto matrix = dyn_cast<MatrixType>(stored.content);
  double elements = double(stored.rows) * double(stored.columns);
  if (!matrix)
    return 0.1 * elements;
  WeightOp weight = stored.weight;
  bool feeds = bool(weight.getFeedbackAttr());
  // Nanoseconds a weight on a machine of 2025, decoding for the report and rotating among them.
  double search = 0;
  switch (matrix.getEncoding().getKind()) {
  case EncodingKind::planes3x1: search = 30; break;
  case EncodingKind::planes4x1: search = 60; break;
  case EncodingKind::planes3x2: search = 70; break;
  case EncodingKind::planes4x2: search = 310; break;
  case EncodingKind::planes3x3: search = 230; break;
  case EncodingKind::planes3x4: search = 480; break;
  case EncodingKind::planes4x3: search = 470; break;
  default: break;
  }
  return elements * (5 + (feeds ? 50 + 2 * search : search));
}

double encodingWork(const StoredWeight &stored) {
  double work = codingWork(stored) + DerivedWeights::work(stored.weight);
  return rankOf(stored.weight) != 0 ? 2 * work : work; // the weight is coded once more for its factors
}

/// What there is of it, where nobody says: of blocks a compilation stays below 150 MB however many threads it has, and factors
/// are made ahead of their weights.
static constexpr int64_t kMostBlocks = 32 << 20, kMostFactors = 256 << 20;
/// A thread's own: floats of a block, the history of a search.
static constexpr int64_t kThreadBytes = 3 << 20;

/// One bit a weight loses .56 of the norm, so codes that lose nearly all of it are not what anybody asked for: scales of 16 bits end at 6e-8, and
/// weights far below that become zeros.
static void warnOfLoss(StoredWeight &stored) {
  double relative = stored.error.relative();
  if (relative > 0.9)
    emitWarning(named(stored.weight)) << llvm::formatv("codes hold hardly anything of it: relative error {0:f2}, root mean square of its weights {1:e1} (a recipe with \"scale\": "
                                                       "\"f32\" has scales below 6e-8)", relative, std::sqrt(stored.error.weight / double(stored.rows * stored.columns)));
}

LogicalResult StreamEncoder::write(const FileSet &files, const Statistics *statistics, Sink sink, const WriteOptions &options) {
  static constexpr std::byte zeros[plan::kWeightAlignment] = {};
  unsigned threads = std::max(1u, options.threads);
  size_t first = 0;
  while (first < weights.size() && weights[first].isDone)
    ++first;

  std::vector<FactorSource> sources(weights.size());
  int64_t block = 0, factors = 0, made = 0, kept = 0; // the most that one of them takes
  for (size_t i = first; i < weights.size(); ++i) {
    StoredWeight &stored = weights[i];
    block = std::max(block, WeightBlocks::blockMemory(stored));
    made = std::max(made, DerivedWeights::workBytes(stored.weight));
    kept += DerivedWeights::keptBytes(stored.weight);
    if (!stored.isMatrix())
      continue;
    llvm::Expected<FactorSource> source = FactorSource::of(stored.weight, statistics, stored.tiles->order());
    if (!source)
      return emitError(named(stored.weight)) << "cannot be stored (" << llvm::toString(source.takeError()) << ")";
    sources[i] = *source;
    if (sources[i])
      factors = std::max(factors, sources[i].workBytes());
  }
  int64_t least = block + factors + made + kept + int64_t(threads) * kThreadBytes, mostBlocks = kMostBlocks, mostFactors = kMostFactors;
  if (options.memory != 0) {
    if (options.memory < least) {
      if (options.refuse)
        options.refuse(least);
      return failure();
    }
    mostBlocks = std::max(block, std::min(block + (options.memory - least) / 2, kMostBlocks));
    mostFactors = std::max(factors, std::min(options.memory - least + block + factors - mostBlocks, kMostFactors));
  }

  uint64_t position = first == 0 ? 0 : weights[first - 1].offset + weights[first - 1].size;
  bool alive = true;
  auto count = [&](std::span<const std::byte> bytes) {
    position += bytes.size();
    return alive = alive && sink(bytes);
  };
  FeedbackSource feedbacks(statistics);
  DerivedWeights derived(files, statistics, feedbacks);
  BlockQueue queue(weights, first, files, std::move(sources), derived, threads, mostBlocks, mostFactors);
  for (size_t i = first; i < weights.size() && alive;) {
    BlockQueue::Taken taken = queue.take();
    StoredWeight &stored = weights[i];
    if (!taken.block.failure.empty())
      return emitError(named(stored.weight)) << "cannot be stored (" << taken.block.failure << ")";
    if (taken.isFirst) {
      if (options.begin)
        options.begin(stored);
      count(std::span(zeros).first(stored.offset - position));
      if (stored.isMatrix())
        count(stored.tiles->index());
    }
    count(taken.block.view);
    if (!taken.isLast || !alive)
      continue;
    assert(position == stored.offset + stored.size && "layout and bytes agree");
    stored.isDone = true;
    warnOfLoss(stored);
    ++i;
    if (options.done)
      options.done(stored);
  }
  return success(); // if it is not alive, whoever owns the sink knows why
}

} // namespace otf
