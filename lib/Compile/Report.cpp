// SPDX-License-Identifier: Apache-2.0
//
// Bits a weight are real bits: every byte of the blob, with scales, indices and padding, over the
// elements of the tensor. "asked" is the decision in the IR, "kept" what is in the plan.

#include "lib/Compile/Report.h"

#include "dialects/OTF/Codes.h"
#include "lib/Analysis/Statistics.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

namespace otf {

using Json = nlohmann::ordered_json;

void Tally::add(const StoredWeight &weight) {
  ++tensors;
  elements += uint64_t(weight.rows * weight.columns);
  bytes += weight.size;
}

Totals::Totals(const StreamEncoder &weights) {
  for (const StoredWeight &weight : weights.stored()) {
    (weight.vocabulary ? vocabulary : layers).add(weight);
    total.add(weight);
  }
}

static Json json(const Tally &tally) {
  return {{"tensors", tally.tensors},
          {"elements", tally.elements},
          {"bytes", tally.bytes},
          {"bits", tally.bits()}};
}

std::string makeReport(const StreamEncoder &weights, const Recipe &recipe,
                       const std::string &producer, const std::string &model,
                       const Statistics *statistics) {
  Json report;
  report["producer"] = producer;
  report["model"] = model;
  report["recipe"] = Json::parse(printRecipe(recipe));
  if (statistics)
    report["calibration"] = {{"source", statistics->source()}, {"model", statistics->model()}};
  Totals totals(weights);
  report["layers"] = json(totals.layers);
  report["vocabulary"] = json(totals.vocabulary);
  report["total"] = json(totals.total);
  report["tensors"] = Json::array();
  for (const StoredWeight &weight : weights.stored()) {
    Json &tensor = report["tensors"].emplace_back();
    tensor["name"] = weight.name;
    tensor["rows"] = weight.rows;
    tensor["columns"] = weight.columns;
    if (!weight.given.empty())
      tensor["given"] = weight.given;
    if (!weight.grid.empty())
      tensor["quantized_before"] = weight.grid;
    if (!weight.asked.empty())
      tensor["asked"] = weight.asked;
    tensor["kept"] = weight.encoding;
    WeightOp decided = weight.weight;
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
                                                              : "int8";
    tensor["outliers"] = weight.outliers;
    if (auto by = decided->getAttrOfType<mlir::StringAttr>(kScoredByAttribute); by && weight.outliers)
      tensor["outliers_by"] = by.getValue().str();
    tensor["bytes"] = weight.size;
    tensor["bits"] = weight.size ? weight.bitsPerWeight() : 0;
    tensor["relative_error"] = weight.error.relative();
    tensor["vocabulary"] = weight.vocabulary;
  }
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string describe(const StoredWeight &weight) {
  std::string line;
  llvm::raw_string_ostream out(line);
  out << weight.name << ": " << weight.rows << " x " << weight.columns << ", " << weight.encoding;
  if (weight.outliers)
    out << ", " << weight.outliers << " outlier columns";
  if (weight.size)
    out << llvm::format(", %.3f bits a weight, relative error %.3g", weight.bitsPerWeight(),
                        weight.error.relative());
  return line;
}

} // namespace otf
