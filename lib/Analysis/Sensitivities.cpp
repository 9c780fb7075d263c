// SPDX-License-Identifier: Apache-2.0
#include "lib/Analysis/Sensitivities.h"

#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace otf {

using Json = nlohmann::ordered_json;

static constexpr llvm::StringLiteral kFormat = "otf-sensitivities-1";

llvm::Expected<Sensitivities> Sensitivities::open(llvm::StringRef path) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError(path + ": " + what + " (measure again with --calibrate)");
  };
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return fail("cannot be read: " + file.getError().message());
  Sensitivities result;
  // No exception leaves this function; all of them mean the same.
  try {
    Json json = Json::parse((*file)->getBufferStart(), (*file)->getBufferEnd());
    if (json.at("format") != kFormat.str())
      return fail("is no file of sensitivities of this version");
    result.model = json.at("model");
    result.settings = json.at("settings");
    result.source = json.at("source");
    result.errors = json.at("errors");
    result.measure = json.at("measure");
    result.noise = json.at("noise");
    for (auto &[name, loss] : json.at("weights").items())
      result.weights[name] = loss.get<double>();
    if (json.contains("tables"))
      for (auto &[name, loss] : json.at("tables").items())
        result.tables[name] = loss.get<double>();
    for (const Json &pair : json.at("together"))
      result.together.emplace_back(pair.at(0).get<double>(), pair.at(1).get<double>());
  } catch (const Json::exception &) {
    return fail("is no file of sensitivities");
  }
  auto isBad = [](double x) { return !(x >= 0) || !std::isfinite(x); };
  if (!(result.noise > 0) || !std::isfinite(result.noise))
    return fail("'noise' must be above 0");
  for (auto *losses : {&result.weights, &result.tables})
    for (auto &[name, loss] : *losses)
      if (isBad(loss))
        return fail("the loss of '" + name + "' must be a number from 0 on");
  for (size_t i = 0; i < result.together.size(); ++i)
    if (isBad(result.together[i].first) || isBad(result.together[i].second) ||
        (i && (result.together[i].first <= result.together[i - 1].first ||
               result.together[i].second < result.together[i - 1].second)))
      return fail("'together' must be pairs of noise and loss, both ascending");
  return result;
}

std::string Sensitivities::json() const {
  Json json;
  json["format"] = kFormat.str();
  json["model"] = model;
  json["settings"] = settings;
  json["source"] = source;
  json["errors"] = errors;
  json["measure"] = measure;
  json["noise"] = noise;
  json["weights"] = weights;
  if (!tables.empty())
    json["tables"] = tables;
  json["together"] = together;
  return json.dump(1) + "\n";
}

double Sensitivities::foretell(double sum) const {
  double total = 0;
  for (auto &[name, loss] : weights)
    total += loss;
  if (together.empty() || total <= 0 || sum <= 0)
    return sum;
  // The noise that would give this sum on all weights; then between the points that were measured,
  // in logarithms.
  double at = sum / total * noise;
  double factor = 0; // of the loss to the noise, which is constant where losses add
  for (size_t i = 0; i < together.size(); ++i) {
    auto [n, loss] = together[i];
    if (i == 0 || at >= n)
      factor = loss / n;
    if (i != 0 && at < n && at >= together[i - 1].first) {
      auto [before, lossBefore] = together[i - 1];
      if (lossBefore <= 0 || loss <= lossBefore)
        return std::max(loss, lossBefore);
      double part = std::log(at / before) / std::log(n / before);
      return lossBefore * std::pow(loss / lossBefore, part);
    }
  }
  return factor * at;
}

} // namespace otf
