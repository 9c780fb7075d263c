// SPDX-License-Identifier: Apache-2.0
//
// Bits a weight are real bits: every byte of the blob, with scales, indices and padding, over the
// elements of the tensor. "asked" is the decision in the IR, "kept" what is in the plan.

#include "lib/Compile/Report.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "dialects/OTF/Observed.h"
#include "lib/Analysis/Statistics.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace otf {

using Json = nlohmann::ordered_json;

/// What the model's files spend on a weight: elements or codes, scales and zero points.
static uint64_t fileBytes(WeightOp weight) {
  uint64_t bytes = uint64_t(weight.getBlob().getLength());
  if (weight.getGiven())
    for (mlir::Attribute side : {weight.getGiven()->getScales(), weight.getGiven()->getZeros()})
      if (auto blob = llvm::dyn_cast_or_null<BlobAttr>(side))
        bytes += uint64_t(blob.getLength());
  return bytes;
}

void Tally::add(const StoredWeight &weight) {
  ++tensors;
  bytes += weight.size;
  if (WeightOp counted = countedWith(weight.weight)) {
    elements += counted == weight.weight ? uint64_t(weight.rows * weight.columns) : uint64_t(llvm::cast<mlir::RankedTensorType>(counted.getType()).getNumElements());
    fileBytes += otf::fileBytes(counted);
  }
  // Of a factor that corrects a coded weight, rounding is no loss of that weight.
  if (countedWith(weight.weight))
    error += weight.error;
}

Totals::Totals(const StreamEncoder &weights) {
  for (const StoredWeight &weight : weights.stored()) {
    if ((weight.isMatrix() || !derivedPart(weight.weight).empty()) && !weight.vocabulary)
      linears.add(weight);
    (weight.vocabulary ? vocabulary : layers).add(weight);
    total.add(weight);
  }
}

/// "layers.12" and "h_3" of one kind are one type.
static std::string withoutNumbers(llvm::StringRef name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    bool isNumber = llvm::isDigit(name[i]) && (i == 0 || !llvm::isAlnum(name[i - 1]));
    size_t end = i;
    while (end < name.size() && llvm::isDigit(name[end]))
      ++end;
    isNumber = isNumber && (end == name.size() || !llvm::isAlnum(name[end]));
    result += isNumber ? '*' : name[i];
    if (isNumber)
      i = end - 1;
  }
  return result;
}

std::vector<WeightType> weightTypes(const StreamEncoder &weights) {
  std::vector<WeightType> types;
  llvm::StringMap<size_t> known;
  for (const StoredWeight &weight : weights.stored()) {
    std::string name = withoutNumbers(weight.node.empty() ? weight.name : weight.node);
    auto [it, fresh] = known.try_emplace(name + (weight.isMatrix() ? "" : " "), types.size());
    if (fresh)
      types.push_back({name, weight.encoding, weight.rows, weight.columns, {}});
    WeightType &type = types[it->second];
    if (!llvm::StringRef(type.encoding).contains(weight.encoding))
      type.encoding += ", " + weight.encoding;
    type.tally.add(weight);
  }
  return types;
}

/// The ratio of a weight's power to that of its error; null for a weight that lost nothing.
static Json decibels(double relativeError) {
  return relativeError > 0 ? Json(-20 * std::log10(relativeError)) : Json();
}

static double compression(uint64_t fileBytes, uint64_t bytes) {
  return bytes ? double(fileBytes) / double(bytes) : 0;
}

static Json json(const Tally &tally) {
  return {{"tensors", tally.tensors},
          {"elements", tally.elements},
          {"bytes", tally.bytes},
          {"bits", tally.bits()},
          {"file_bytes", tally.fileBytes},
          {"compression", compression(tally.fileBytes, tally.bytes)},
          {"relative_error", tally.error.relative()},
          {"snr_db", decibels(tally.error.relative())}};
}

static Json json(const StoredWeight &weight) {
  WeightOp decided = weight.weight;
  auto matrix = llvm::dyn_cast<MatrixType>(weight.content);
  Json tensor;
  tensor["name"] = weight.name;
  tensor["node"] = weight.node;
  tensor["rows"] = weight.rows;
  tensor["columns"] = weight.columns;
  if (!weight.given.empty())
    tensor["given"] = weight.given;
  if (!weight.grid.empty())
    tensor["quantized_before"] = weight.grid;
  if (!weight.asked.empty())
    tensor["asked"] = weight.asked;
  std::string file;
  llvm::raw_string_ostream(file) << decided.getBlob().getType();
  if (llvm::StringRef part = derivedPart(decided); !part.empty()) {
    tensor["derived"] = part.str();
    if (WeightOp of = derivedFrom(decided))
      tensor["of"] = of.getSymName().str();
    if (weight.leaves >= 0)
      tensor["leaves_of_error"] = weight.leaves;
  } else {
    tensor["file"] = file;
    tensor["file_bytes"] = fileBytes(decided);
  }
  tensor["kept"] = weight.encoding;
  if (decided.getKeepsGiven())
    tensor["codes"] = "as given"; // the relative error is then what rounding zero points to f32 leaves
  else if (!weight.given.empty())
    tensor["codes"] = weight.isMatrix() && weight.encoding.find("f32") == std::string::npos
                          ? "made anew"
                          : "dequantized"; // no encoding has this grid
  if (weight.isMatrix() && weight.encoding.find("#otf.encoding<f") == std::string::npos)
    tensor["activations"] = decided->hasAttr(kRowSumsAttribute)
                                ? decided.getKeepsGiven() ? "codes as given" : "int8, one calibrated range"
                            : decided.getFloatActivations() ? "f32"
                            : decided->hasAttr(kRowActivationsAttribute) ? "int8, a scale a row"
                                                            : "int8";
  if (matrix)
    tensor["group"] = matrix.getEncoding().getGroup(); // columns; 0: a row, or no scales at all
  tensor["outliers"] = weight.outliers;
  if (auto by = decided->getAttrOfType<mlir::StringAttr>(kScoredByAttribute); by && weight.outliers)
    tensor["outliers_by"] = by.getValue().str();
  if (!weight.rotation.empty())
    tensor["rotation"] = weight.rotation;
  if (int64_t rank = rankOf(decided))
    tensor["rank"] = rank;
  if (decided->hasAttr(kUnitAttribute))
    tensor["relative"] = decided->hasAttr(kCenterAttribute) ? "units and center" : "units";
  if (decided.getJointFit())
    tensor["fit"] = "joint";
  if (decided.getFeedback())
    tensor["rounding"] = "feedback";
  if (auto foretold = decided->getAttrOfType<mlir::FloatAttr>(kForetoldAttribute))
    tensor["foretold_loss"] = foretold.getValueAsDouble();
  tensor["bytes"] = weight.size;
  tensor["bits"] = weight.size ? weight.bitsPerWeight() : 0;
  tensor["relative_error"] = weight.error.relative();
  tensor["snr_db"] = decibels(weight.error.relative());
  tensor["vocabulary"] = weight.vocabulary;
  return tensor;
}

static Json calibrationOf(const Statistics &statistics) {
  Json json = {{"source", statistics.source()}, {"model", statistics.model()}};
  for (const std::string &name : statistics.namesOf(kCacheSet)) {
    const ChannelStatistics &cache = *statistics.find(name);
    json["caches"][name.substr(kCacheSet.size())] = {{"least", *llvm::min_element(cache.least)}, {"largest", *llvm::max_element(cache.largest)}};
  }
  for (const std::string &name : statistics.namesOf(kExpertsSet)) // how many tokens chose each
    for (double tokens : statistics.find(name)->sums)
      json["experts"][name.substr(kExpertsSet.size())].push_back(tokens >= 0 && tokens < 0x1p53 ? int64_t(tokens) : 0);
  return json;
}

std::string makeReport(const StreamEncoder &weights, const Recipe &recipe,
                       const std::string &producer, const std::string &model,
                       const Statistics *statistics) {
  Json report;
  report["producer"] = producer;
  report["model"] = model;
  report["recipe"] = Json::parse(printRecipe(recipe));
  if (statistics)
    report["calibration"] = calibrationOf(*statistics);
  Totals totals(weights);
  report["linear_bits_per_weight"] = totals.linears.bits();
  report["linears"] = json(totals.linears);
  report["layers"] = json(totals.layers);
  report["vocabulary"] = json(totals.vocabulary);
  report["total"] = json(totals.total);
  report["types"] = Json::array();
  for (const WeightType &type : weightTypes(weights)) {
    Json &item = report["types"].emplace_back();
    item["name"] = type.name;
    item["kept"] = type.encoding;
    item.update(json(type.tally));
  }
  report["tensors"] = Json::array();
  for (const StoredWeight &weight : weights.stored())
    report["tensors"].push_back(json(weight));
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// "int4, group = 32" of "#otf.encoding<int4, group = 32>".
static std::string shortened(llvm::StringRef encoding) {
  std::string text = encoding.str();
  for (llvm::StringRef prefix : {"#otf.encoding<"})
    for (size_t at; (at = text.find(prefix)) != std::string::npos;)
      text.erase(at, prefix.size());
  llvm::erase(text, '>');
  return text;
}

std::string reportTable(const StreamEncoder &weights) {
  std::string table;
  llvm::raw_string_ostream out(table);
  auto line = [&](const Tally &tally, llvm::StringRef name, llvm::StringRef encoding) {
    out << llvm::format("%8llu %12llu %12llu %8.3f %8.2f", (unsigned long long)tally.tensors,
                        (unsigned long long)tally.fileBytes, (unsigned long long)tally.bytes,
                        tally.bits(), compression(tally.fileBytes, tally.bytes));
    double error = tally.error.relative();
    if (error > 0)
      out << llvm::format(" %9.3g %7.2f", error, -20 * std::log10(error));
    else
      out << llvm::format(" %9s %7s", "0", "exact");
    out << "  " << name << (encoding.empty() ? "" : ": ") << encoding << "\n";
  };
  out << llvm::format("%8s %12s %12s %8s %8s %9s %7s  %s\n", "tensors", "file bytes", "plan bytes",
                      "bits", "smaller", "error", "SNR dB", "read by");
  Tally small;
  for (const WeightType &type : weightTypes(weights)) {
    // Norms and constants are many and small.
    if (weights.stored().size() > 12 && type.tally.bytes < weights.sectionBytes() / 1000) {
      small.tensors += type.tally.tensors;
      small.elements += type.tally.elements;
      small.bytes += type.tally.bytes;
      small.fileBytes += type.tally.fileBytes;
      small.error += type.tally.error;
      continue;
    }
    line(type.tally, type.name, shortened(type.encoding));
  }
  if (small.tensors)
    line(small, "each less than a thousandth of the plan", "");
  Totals totals(weights);
  line(totals.linears, "= linears", "");
  if (totals.vocabulary.tensors)
    line(totals.vocabulary, "= vocabulary tables", "");
  line(totals.total, "= all weights", "");
  return table;
}

std::string describe(const StoredWeight &weight) {
  std::string line;
  llvm::raw_string_ostream out(line);
  out << weight.name << ": " << weight.rows << " x " << weight.columns << ", " << weight.encoding;
  if (weight.outliers)
    out << ", " << weight.outliers << " outlier columns";
  if (!weight.rotation.empty())
    out << ", " << weight.rotation;
  if (weight.size)
    out << llvm::format(", %.3f bits a weight, relative error %.3g", weight.bitsPerWeight(),
                        weight.error.relative());
  return line;
}

} // namespace otf
