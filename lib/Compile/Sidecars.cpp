// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/Sidecars.h"

#include "lib/Analysis/Sensitivities.h"

#include <filesystem>

namespace otf {

template <typename... Words> static llvm::Error complain(const Words &...words) {
  return llvm::createStringError((llvm::Twine(words) + ...));
}

std::string defaultStatistics(const std::string &modelFile) { return modelFile + ".calibration.safetensors"; }

std::string defaultSensitivities(const std::string &modelFile) { return modelFile + ".sensitivities.json"; }

std::string describeErrors(const Recipe &recipe) {
  std::string words = recipe.rounding == "feedback" ? "feedback, damping " + std::to_string(recipe.damping) : "nearest";
  if (recipe.rotation != "none")
    words += ", " + recipe.rotation + " rotation of " + std::to_string(recipe.rotationBlock) + ", seed " + std::to_string(recipe.seed);
  // Which weights are coded at all.
  if (recipe.keepFirst || recipe.keepLast)
    words += ", blocks kept " + std::to_string(recipe.keepFirst) + " and " + std::to_string(recipe.keepLast);
  if (recipe.head != "vocabulary")
    words += ", head as " + recipe.head + ", " + recipe.tiedHead;
  return words;
}

llvm::Expected<std::optional<Statistics>> findStatistics(const CompileOptions &options, const std::string &modelFile,
                                                         llvm::function_ref<std::string()> modelKey) {
  const Recipe &recipe = options.recipe;
  const char *wanted = recipe.activations == "static"  ? "gives activations one range a tensor"
                       : recipe.rounding == "feedback" ? "rounds weights by what they multiply"
                       : recipe.power >= 0             ? "makes inputs relative to what they vary by"
                       : recipe.rank > 0 && recipe.base == "none" ? "gives back the low rank that inputs miss most"
                                                       : nullptr;
  bool isUsed = wanted || recipe.outliers > 0;
  std::string path = options.statistics;
  if (path.empty() && isUsed && !options.ignoreStatistics && options.observed == nullptr) {
    path = defaultStatistics(modelFile);
    if (std::error_code ignored; !std::filesystem::exists(path, ignored))
      path.clear();
  }
  if (path.empty()) {
    if (wanted && options.observed == nullptr)
      return complain(modelFile, ": recipe '", recipe.name, "' ", wanted,
                      ", and nothing is known of activations (give --calibrate=TEXT, or a folder of .npy)");
    return std::nullopt;
  }
  llvm::Expected<Statistics> opened = Statistics::open(path);
  if (!opened)
    return opened.takeError();
  if (std::string key = modelKey(); opened->model() != key)
    return complain(path, ": these statistics are of another model (they are of ", opened->model(), ", and ", modelFile, " is ", key,
                    "; calibrate again, or leave them out with --calibrate=none)");
  return std::optional<Statistics>(std::move(*opened));
}

llvm::Expected<std::string> findSensitivities(const CompileOptions &options, const std::string &modelFile,
                                              llvm::function_ref<std::string()> modelKey) {
  const Recipe &recipe = options.recipe;
  if (recipe.choices.empty() || options.uniform)
    return std::string();
  std::string path = options.sensitivities.empty() ? defaultSensitivities(modelFile) : options.sensitivities;
  if (std::error_code ignored; options.sensitivities.empty() && !std::filesystem::exists(path, ignored))
    return complain(modelFile, ": recipe '", recipe.name,
                    "' spends its budget by what errors of each weight cost, which is not known (give --calibrate=TEXT, or a folder of .npy)");
  llvm::Expected<Sensitivities> opened = Sensitivities::open(path);
  if (!opened)
    return opened.takeError();
  std::string key = modelKey(), errors = describeErrors(recipe);
  if (opened->model != key)
    return complain(path, ": this was measured on another model (on ", opened->model, ", and ", modelFile, " is ", key, "; calibrate again)");
  if (opened->errors != errors)
    return complain(path, ": this was measured for other errors (", opened->errors, ") than recipe '", recipe.name, "' makes (", errors,
                    "; calibrate again)");
  return path;
}

} // namespace otf
