// SPDX-License-Identifier: Apache-2.0
//
// Bases: B is the mean of a kind's weights as f16, then A_l, B_lᵀ of each member are the largest
// singular vectors of W_l − B; a sweep makes B the mean of W_l − A_l B_lᵀ and goes on from there.
// Members stream, so what is in memory is the base and the factors.

#include "lib/Compile/DerivedWeights.h"

#include "dialects/OTF/Derived.h"
#include "lib/Compile/InputMoments.h"
#include "lib/Compile/TileEncoder.h"
#include "lib/Encoding/Half.h"

#include <cmath>

using namespace mlir;

namespace otf {

static constexpr int64_t kBlockRows = 64;

static std::pair<int64_t, int64_t> shapeOf(WeightOp weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  return {type.getDimSize(0), type.getDimSize(1)};
}

llvm::Expected<std::vector<float>> codingErrorOf(const FileSet &files, WeightOp weight,
                                                 FeedbackSource &feedbacks) {
  auto [rows, columns] = shapeOf(weight);
  ArrayRef<int64_t> outliers;
  if (weight.getOutliers())
    outliers = weight.getOutliers()->getColumns();
  std::string problem;
  std::unique_ptr<TileEncoder> tiles =
      TileEncoder::create(int(weight.getEncoding()->getKind()), weight.getEncoding()->getGroup(),
                          rows, columns, outliers, problem, weight.getJointFit());
  if (!tiles)
    return llvm::createStringError(problem);
  llvm::Expected<const Feedback *> feedback = feedbacks.of(weight, tiles->order());
  if (!feedback)
    return feedback.takeError();
  llvm::Expected<WeightRows> source = WeightRows::open(files, weight, rows, columns);
  if (!source)
    return source.takeError();
  std::vector<float> error(size_t(rows * columns));
  std::vector<std::byte> bytes(size_t(kBlockRows / 8 * tiles->tileBytes()));
  std::vector<double> decoded(size_t(kBlockRows * columns));
  for (int64_t first = 0; first < rows; first += kBlockRows) {
    int64_t count = std::min(kBlockRows, rows - first);
    float *block = error.data() + first * columns;
    if (llvm::Error failed = source->read(first, count, block))
      return std::move(failed);
    CodingError unused;
    if (const char *bad = tiles->encode(block, count, bytes.data(), unused, nullptr, *feedback))
      return llvm::createStringError(bad);
    tiles->decode(bytes.data(), count, decoded.data());
    for (int64_t i = 0; i < count * columns; ++i)
      block[i] = float(double(block[i]) - decoded[size_t(i)]);
  }
  return error;
}

llvm::Expected<LowRank> lowRankOf(const FileSet &files, WeightOp weight, int64_t rank,
                                  const Statistics *statistics, FeedbackSource &feedbacks) {
  auto [rows, columns] = shapeOf(weight);
  const ChannelStatistics *channels = statistics ? statistics->find(observedName(weight)) : nullptr;
  if (!channels || !channels->hasProducts() || channels->channels != columns)
    return llvm::createStringError("a low rank needs statistics of what the weight multiplies, and "
                                   "there are none (calibrate, or leave out the rank)");
  llvm::Expected<std::vector<float>> error = codingErrorOf(files, weight, feedbacks);
  if (!error)
    return error.takeError();
  std::vector<double> moments = inputMoments(weight, *channels);
  return bestLowRank(error->data(), rows, columns, moments.data(), rank);
}

CapturedEnergy capturedEnergyOf(const FileSet &files, const Statistics *statistics) {
  return [&files, statistics](WeightOp weight, int64_t rank) -> llvm::Expected<double> {
    FeedbackSource feedbacks(statistics);
    llvm::Expected<LowRank> low = lowRankOf(files, weight, rank, statistics, feedbacks);
    if (!low)
      return low.takeError();
    return low->total > 0 ? low->captured / low->total : 0.0;
  };
}

/// f16 numbers, as f32.
static llvm::Error roundToHalf(std::vector<float> &values) {
  for (float &value : values) {
    uint16_t half = floatToHalf(value);
    if (!halfIsFinite(half))
      return llvm::createStringError("a weight is NaN, infinite or beyond the range of f16");
    value = halfToFloat(half);
  }
  return llvm::Error::success();
}

llvm::Expected<DerivedWeights::Base *> DerivedWeights::baseOf(WeightOp base) {
  Base &made = bases[base.getSymName().str()];
  if (!made.rows.empty())
    return &made;
  auto members = base->getAttrOfType<DictionaryAttr>(kDerivedAttribute).getAs<ArrayAttr>("of");
  auto [rows, columns] = shapeOf(base);
  made.columns = columns;
  std::vector<double> sum(size_t(rows * columns));
  std::vector<float> member(sum.size());
  auto read = [&, rows = rows, columns = columns](WeightOp weight) -> llvm::Error {
    llvm::Expected<WeightRows> source = WeightRows::open(files, weight, rows, columns);
    return source ? source->read(0, rows, member.data()) : source.takeError();
  };
  SmallVector<WeightOp> weights;
  int64_t sweeps = 0;
  for (Attribute name : members ? members.getValue() : ArrayRef<Attribute>()) {
    auto symbol = dyn_cast<FlatSymbolRefAttr>(name);
    auto weight =
        symbol ? SymbolTable::lookupNearestSymbolFrom<WeightOp>(base, symbol) : WeightOp();
    if (!weight || shapeOf(weight) != std::pair(rows, columns) || rankOf(weight) < 1 ||
        rankOf(weight) > std::min(rows, columns))
      return llvm::createStringError(
          "a member of the base is no otf.weight of its shape and with a rank");
    weights.push_back(weight);
    if (auto times = weight->getAttrOfType<IntegerAttr>(kSweepsAttribute))
      sweeps = times.getInt();
  }
  if (weights.empty())
    return llvm::createStringError("the base has no members");
  for (int64_t sweep = 0; sweep <= sweeps; ++sweep) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (WeightOp weight : weights) {
      if (llvm::Error error = read(weight))
        return std::move(error);
      const LowRank *known = sweep == 0 ? nullptr : &made.members[weight.getSymName().str()];
      int64_t rank = rankOf(weight);
      for (int64_t n = 0; n < rows; ++n)
        for (int64_t k = 0; k < columns; ++k) {
          double value = member[size_t(n * columns + k)];
          for (int64_t r = 0; known && r < rank; ++r)
            value -= double(known->left[size_t(n * rank + r)]) *
                     double(known->right[size_t(r * columns + k)]);
          sum[size_t(n * columns + k)] += value;
        }
    }
    made.rows.resize(sum.size());
    for (size_t i = 0; i < sum.size(); ++i)
      made.rows[i] = float(sum[i] / double(weights.size()));
    if (llvm::Error error = roundToHalf(made.rows))
      return std::move(error);
    for (WeightOp weight : weights) {
      if (llvm::Error error = read(weight))
        return std::move(error);
      CodingError &error = made.errors[weight.getSymName().str()] = {};
      for (size_t i = 0; i < member.size(); ++i) {
        error.weight += double(member[i]) * double(member[i]);
        member[i] -= made.rows[i];
      }
      int64_t rank = rankOf(weight);
      LowRank low = bestLowRank(member.data(), rows, columns, nullptr, rank);
      error.difference = std::max(0.0, low.total - low.captured);
      // A = U Σ and B = V: singular values go to the left.
      for (int64_t r = 0; r < rank; ++r) {
        double squares = 0;
        for (int64_t k = 0; k < columns; ++k)
          squares += double(low.right[size_t(r * columns + k)]) *
                     double(low.right[size_t(r * columns + k)]);
        double value = std::sqrt(squares);
        for (int64_t k = 0; k < columns && value > 0; ++k)
          low.right[size_t(r * columns + k)] =
              float(double(low.right[size_t(r * columns + k)]) / value);
        for (int64_t n = 0; n < rows; ++n)
          low.left[size_t(n * rank + r)] = float(double(low.left[size_t(n * rank + r)]) * value);
      }
      made.members[weight.getSymName().str()] = std::move(low);
    }
  }
  return &made;
}

llvm::Expected<std::vector<float>> DerivedWeights::factor(WeightOp weight, llvm::StringRef part) {
  WeightOp of = derivedFrom(weight);
  if (!of || rankOf(of) < 1)
    return llvm::createStringError("it names no weight with a rank that it is a factor of");
  std::string name = of.getSymName().str();
  auto half = halves.find(name);
  LowRank low;
  bool isSecond = half != halves.end();
  if (isSecond) {
    low = std::move(half->second);
    halves.erase(half);
  } else {
    llvm::Expected<LowRank> made = lowRankOf(files, of, rankOf(of), statistics, feedbacks);
    if (!made)
      return made.takeError();
    low = std::move(*made);
    remainders[name] = low.total > 0 ? std::max(0.0, 1 - low.captured / low.total) : 0;
  }
  std::vector<float> wanted = part == "left" ? low.left : low.right;
  if (!isSecond)
    halves.emplace(name, std::move(low));
  return wanted;
}

/// The weight whose low rank `weight` is a factor of, or that is like those of a base; null for
/// vectors.
static WeightOp decomposed(WeightOp weight) {
  llvm::StringRef part = derivedPart(weight);
  return part == "base"                                    ? weight
         : part.contains("left") || part.contains("right") ? derivedFrom(weight)
                                                           : WeightOp();
}

int64_t DerivedWeights::workBytes(WeightOp weight) {
  WeightOp of = decomposed(weight);
  if (!of)
    return 0;
  auto [rows, columns] = shapeOf(of);
  bool hasBase = derivedPart(weight).starts_with("base");
  int64_t beside = hasBase ? 12 * rows * columns : 4 * rows * columns + 8 * columns * columns;
  int64_t feedback = of.getFeedbackAttr() ? (20 * columns + 550) * columns : 0;
  return beside + std::max(lowRankBytes(rows, columns), feedback);
}

int64_t DerivedWeights::keptBytes(WeightOp weight) {
  if (!decomposed(weight))
    return 0;
  return 4 * cast<RankedTensorType>(weight.getType()).getNumElements();
}

double DerivedWeights::work(WeightOp weight) {
  WeightOp of = decomposed(weight);
  if (!of || derivedPart(weight) == "base")
    return 0;
  auto [rows, columns] = shapeOf(of);
  double n = double(rows), k = double(columns), least = std::min(n, k);
  return (n * k * least + 2 * n * k * k + 20 * least * least * least) /
         2; // half of it for either factor
}

void DerivedWeights::account(WeightOp weight, CodingError &error, double &leaves) const {
  llvm::StringRef part = derivedPart(weight);
  WeightOp of = derivedFrom(weight);
  if (part == "left" && of)
    if (auto found = remainders.find(of.getSymName().str()); found != remainders.end())
      leaves = found->second;
  if (part == "base_left" && of)
    for (const auto &[name, base] : bases)
      if (auto found = base.errors.find(of.getSymName().str()); found != base.errors.end())
        error = found->second;
}

llvm::Expected<std::vector<float>> DerivedWeights::quotient(WeightOp weight, int64_t size) {
  auto derived = weight->getAttrOfType<DictionaryAttr>(kDerivedAttribute);
  auto unit = derived.getAs<DenseFPElementsAttr>("unit"),
       center = derived.getAs<DenseFPElementsAttr>("center");
  auto otherwise = derived.getAs<FloatAttr>("otherwise");
  if (!unit || unit.getNumElements() != size || (center && center.getNumElements() != size) ||
      !otherwise)
    return llvm::createStringError("its units and center are not those of its elements");
  std::vector<float> values(size_t(size), float(otherwise.getValueAsDouble()));
  if (derived.contains("of")) {
    WeightOp of = derivedFrom(weight);
    if (!of || cast<RankedTensorType>(of.getType()).getNumElements() != size)
      return llvm::createStringError("it names no vector of its elements that it is a quotient of");
    llvm::Expected<WeightRows> source = WeightRows::open(files, of, 1, size);
    if (!source)
      return source.takeError();
    if (llvm::Error error = source->read(0, 1, values.data()))
      return std::move(error);
  }
  auto units = unit.value_begin<float>();
  for (int64_t k = 0; k < size; ++k, ++units)
    values[size_t(k)] = float((double(values[size_t(k)]) -
                               (center ? double(center.getValues<float>()[size_t(k)]) : 0.0)) /
                              double(*units));
  return values;
}

llvm::Expected<WeightRows> DerivedWeights::of(WeightOp weight, int64_t rows, int64_t columns) {
  llvm::StringRef part = derivedPart(weight);
  std::vector<float> values;
  if (part == "quotient") {
    llvm::Expected<std::vector<float>> made = quotient(weight, rows * columns);
    if (!made)
      return made.takeError();
    values = std::move(*made);
  } else if (part == "values") {
    if (auto dense = weight->getAttrOfType<DenseFPElementsAttr>(kValuesAttribute))
      values.assign(dense.value_begin<float>(), dense.value_end<float>());
  } else if (part == "left" || part == "right") {
    llvm::Expected<std::vector<float>> made = factor(weight, part);
    if (!made)
      return made.takeError();
    values = std::move(*made);
  } else if (part == "base" || part == "base_left" || part == "base_right") {
    auto derived = weight->getAttrOfType<DictionaryAttr>(kDerivedAttribute);
    auto name = derived.getAs<FlatSymbolRefAttr>("base");
    WeightOp base = part == "base" ? weight
                    : name         ? SymbolTable::lookupNearestSymbolFrom<WeightOp>(weight, name)
                                   : WeightOp();
    if (!base || derivedPart(base) != "base")
      return llvm::createStringError("it names no base that it differs from");
    llvm::Expected<Base *> made = baseOf(base);
    if (!made)
      return made.takeError();
    WeightOp of = derivedFrom(weight);
    if (part == "base")
      values = (*made)->rows;
    else if (auto member =
                 of ? (*made)->members.find(of.getSymName().str()) : (*made)->members.end();
             member != (*made)->members.end())
      values = part == "base_left" ? member->second.left : member->second.right;
  } else {
    return llvm::createStringError("nobody knows how to derive '" + part + "'");
  }
  if (int64_t(values.size()) != rows * columns)
    return llvm::createStringError("it is derived as " + Twine(values.size()) +
                                   " numbers, and has " + Twine(rows * columns));
  return WeightRows::ofFloats(files, std::move(values), columns);
}

} // namespace otf
