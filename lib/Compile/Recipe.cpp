// SPDX-License-Identifier: Apache-2.0
//
// The JSON form of recipes. Everything about a recipe that can be wrong is found
// here, before a model is opened; each check names the key, what was found and what would do.

#include "lib/Compile/Recipe.h"
#include "lib/Analysis/Budget.h"
#include "lib/Encoding/Rotation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

namespace otf {

using Json = nlohmann::ordered_json;

static constexpr llvm::StringLiteral encodings[] = {"given",     "f32",       "f16",       "int8",      "int4",
                                                    "codebook2", "planes3x1", "planes3x2", "planes3x3", "planes3x4",
                                                    "planes4x1", "planes4x2", "planes4x3", "ternary_sign"};
static constexpr llvm::StringLiteral keys[] = {"name",     "linear",      "vocabulary",      "group",
                                               "outliers", "activations", "vocabulary-group",
                                               "head", "fit", "keep-first", "keep-last", "rotation", "rotation-block", "seed", "rounding", "damping",
                                               "rank", "rank-gate", "power", "center", "tied-head", "scope", "scale", "base", "sweeps", "cache", "choices", "vocabulary-choices", "budget"};

static std::string list(llvm::ArrayRef<llvm::StringLiteral> names) {
  return llvm::join(names, ", ");
}

static bool isPlain(llvm::StringRef encoding) {
  return encoding == "given" || encoding == "f32" || encoding == "f16";
}

llvm::Expected<Recipe> findRecipe(llvm::StringRef nameOrFile) {
  if (const Recipe *recipe = builtinRecipe(nameOrFile))
    return *recipe;
  // A recipe is a few lines; a device or a wrong file is not read for ever.
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(nameOrFile, status) &&
      (!llvm::sys::fs::is_regular_file(status) || status.getSize() > 1 << 20))
    return llvm::createStringError("recipe '" + nameOrFile + "': is no text file of at most 1 MiB");
  auto file = llvm::MemoryBuffer::getFile(nameOrFile, /*IsText=*/true);
  if (!file)
    return llvm::createStringError(
        "recipe '" + nameOrFile + "': neither a built-in recipe nor a file that can be read (" +
        file.getError().message() + "; built in are " + llvm::join(builtinRecipes(), ", ") + ")");
  return parseRecipe((*file)->getBuffer(), nameOrFile);
}

/// Whether some weight is coded in ternary_sign, which alone has a fit to choose.
static bool hasFit(const Recipe &recipe) {
  return recipe.linear == "ternary_sign" || recipe.vocabulary == "ternary_sign";
}

namespace {

/// Takes the keys of one recipe out of its JSON, keeping the first complaint.
class Reader {
public:
  Reader(const Json &json, llvm::StringRef source) : json(json), source(source) {}

  void complain(const llvm::Twine &what) {
    if (complaint.empty())
      complaint = ("recipe '" + source + "': " + what).str();
  }
  const Json *find(const char *key, Json::value_t wanted, const char *article) {
    auto it = json.find(key);
    if (it == json.end())
      return nullptr;
    bool number = wanted == Json::value_t::number_float && it->is_number();
    bool integer = wanted == Json::value_t::number_integer && it->is_number_integer();
    if (it->type() == wanted || number || integer)
      return &*it;
    complain("'" + llvm::Twine(key) + "' must be " + article + ", not " + it->dump(-1, ' ', true));
    return nullptr;
  }
  void encoding(const char *key, std::string &to) {
    const Json *found = find(key, Json::value_t::string, "a string");
    if (!found)
      return;
    to = found->get<std::string>();
    if (!llvm::is_contained(encodings, to))
      complain("'" + llvm::Twine(key) + "' names no encoding: '" + to + "' (there are " +
               list(encodings) + ")");
  }

  /// Whether it is there.
  bool group(const char *key, int64_t &to) {
    const Json *found = find(key, Json::value_t::number_integer, "an integer");
    if (!found)
      return false;
    // An unsigned value past int64 would wrap; no weight has that many columns anyway.
    to = *found > int64_t(1) << 31 ? -1 : found->get<int64_t>();
    if (to < 0 || to % 32 != 0)
      complain("'" + llvm::Twine(key) + "' must be a multiple of 32, or 0 for a whole row, not " +
               llvm::Twine(found->dump()));
    return true;
  }

  const Json &json;
  llvm::StringRef source;
  std::string complaint;
};

} // namespace

static void readRotation(Reader &reader, Recipe &recipe) {
  if (const Json *rotation = reader.find("rotation", Json::value_t::string, "a string")) {
    recipe.rotation = rotation->get<std::string>();
    if (recipe.rotation != "none" && recipe.rotation != "hadamard" && recipe.rotation != "kronecker")
      reader.complain("'rotation' must be none, hadamard or kronecker, not " + llvm::Twine(rotation->dump()));
  }
  bool rotates = recipe.rotation != "none";
  if (rotates && (recipe.linear == "given" || recipe.linear == "f16"))
    reader.complain("'rotation' changes the weights of linears, but linear is " + recipe.linear +
                    " (name an encoding with codes; or f32, which shows what a rotation alone does)");
  if (rotates && recipe.outliers > 0)
    reader.complain("'rotation' would mix 'outliers' into the other columns (choose one of both)");
  if (const Json *block = reader.find("rotation-block", Json::value_t::number_integer, "an integer")) {
    recipe.rotationBlock = *block > int64_t(1) << 31 ? -1 : block->get<int64_t>();
    if (problemOf(Rotation{recipe.rotationBlock, 1, 0}))
      reader.complain("'rotation-block' must be a power of two of at most 8192, not " + llvm::Twine(block->dump()));
    if (!rotates)
      reader.complain("'rotation-block' needs a rotation");
  }
  if (const Json *seed = reader.find("seed", Json::value_t::number_integer, "an integer")) {
    if (seed->is_number_unsigned() || seed->get<int64_t>() >= 0)
      recipe.seed = seed->get<uint64_t>();
    else
      reader.complain("'seed' must not be negative, and is " + llvm::Twine(seed->dump()));
    if (!rotates)
      reader.complain("'seed' needs a rotation");
  }
}

static void readRelative(Reader &reader, Recipe &recipe) {
  if (const Json *power = reader.find("power", Json::value_t::number_float, "a number")) {
    recipe.power = power->get<double>();
    if (!(recipe.power >= 0 && recipe.power <= 2))
      reader.complain("'power' of a channel's deviation is from 0 to 2, not " + llvm::Twine(power->dump()));
    if (isPlain(recipe.linear))
      reader.complain("'power' changes what is coded, but linear is " + recipe.linear);
    if (recipe.outliers > 0)
      reader.complain("'power' and 'outliers' do not go together (choose one of both)");
    if (recipe.activations == "static")
      reader.complain("'power' and 'activations' of static do not go together: ranges are of inputs that are not relative");
  }
  if (const Json *center = reader.find("center", Json::value_t::boolean, "true or false")) {
    recipe.center = center->get<bool>();
    if (recipe.power < 0)
      reader.complain("'center' needs 'power' (0 leaves units alone)");
  }
}

static void readRank(Reader &reader, Recipe &recipe) {
  auto count = [&](const char *key, int64_t most, int64_t &to) {
    const Json *found = reader.find(key, Json::value_t::number_integer, "an integer");
    if (!found)
      return false;
    to = *found > most ? -1 : found->get<int64_t>();
    if (to < 0)
      reader.complain("'" + llvm::Twine(key) + "' is from 0 to " + llvm::Twine(most) + ", not " + llvm::Twine(found->dump()));
    return true;
  };
  if (const Json *base = reader.find("base", Json::value_t::string, "a string")) {
    recipe.base = base->get<std::string>();
    if (recipe.base != "none" && recipe.base != "shared")
      reader.complain("'base' must be none or shared, not " + llvm::Twine(base->dump()));
  }
  bool shared = recipe.base == "shared";
  if (count("rank", 4096, recipe.rank) && recipe.rank != 0 && isPlain(recipe.linear) && !shared)
    reader.complain("'rank' gives back what coding loses, but linear is " + recipe.linear);
  if (recipe.rank != 0 && recipe.activations == "static")
    reader.complain("'rank' and 'activations' of static do not go together (choose one of both)");
  if (const Json *gate = reader.find("rank-gate", Json::value_t::string, "a string")) {
    recipe.rankGate = gate->get<std::string>();
    if (recipe.rankGate != "none" && recipe.rankGate != "break-even")
      reader.complain("'rank-gate' must be none or break-even, not " + llvm::Twine(gate->dump()));
    if (recipe.rank == 0 || shared)
      reader.complain("'rank-gate' needs a 'rank' of coded linears");
  }
  if (count("sweeps", 100, recipe.sweeps) && !shared)
    reader.complain("'sweeps' needs 'base' of shared");
  if (shared && (recipe.linear != "f16" || recipe.rank == 0))
    reader.complain("'base' of shared needs 'linear' of f16 and a 'rank'");
}

static void readHeads(Reader &reader, Recipe &recipe) {
  if (const Json *tied = reader.find("tied-head", Json::value_t::string, "a string")) {
    recipe.tiedHead = tied->get<std::string>();
    if (recipe.tiedHead != "shared" && recipe.tiedHead != "coded")
      reader.complain("'tied-head' must be shared or coded, not " + llvm::Twine(tied->dump()));
    if (recipe.tiedHead == "coded" && recipe.head != "linear")
      reader.complain("'tied-head' of coded needs 'head' of linear");
  }
  const Json *scope = reader.find("scope", Json::value_t::string, "a string");
  if (scope && *scope != "linear")
    reader.complain("'scope' must be linear, not " + llvm::Twine(scope->dump()) + " (one order of channels for the whole model is not supported; each linear orders its own)");
}

/// Scales of f32 are those of grids that files have, so what has no such kernels is refused.
static void readScale(Reader &reader, Recipe &recipe) {
  const Json *scale = reader.find("scale", Json::value_t::string, "a string");
  if (!scale)
    return;
  recipe.scale = scale->get<std::string>();
  if (recipe.scale != "f16" && recipe.scale != "f32")
    reader.complain("'scale' must be f16 or f32, not " + llvm::Twine(scale->dump()));
  if (recipe.scale != "f32")
    return;
  auto isInteger = [](const std::string &encoding) { return encoding == "int8" || encoding == "int4"; };
  if (!isInteger(recipe.linear))
    reader.complain("'scale' of f32 is for 'linear' of int8 or int4, and it is " + recipe.linear);
  if (!isInteger(recipe.vocabulary) && !isPlain(recipe.vocabulary))
    reader.complain("'scale' of f32 is for 'vocabulary' of int8, int4 or floats, and it is " + recipe.vocabulary);
  if (recipe.outliers > 0 || recipe.rounding == "feedback" || recipe.activations == "static" || !recipe.choices.empty())
    reader.complain("'scale' of f32 goes with none of 'outliers', 'rounding' of feedback, 'activations' of static and 'choices'");
}

llvm::Error setBudget(Recipe &recipe, llvm::StringRef budget) {
  if (recipe.choices.empty())
    return llvm::createStringError("recipe '" + recipe.name + "' has nothing to choose among, so it takes no budget (take auto, or a file with \"choices\")");
  if (llvm::Expected<Budget> parsed = parseBudget(budget); !parsed)
    return parsed.takeError();
  recipe.budget = budget.str();
  return llvm::Error::success();
}

static void readChoices(Reader &reader, Recipe &recipe) {
  if (const Json *choices = reader.find("choices", Json::value_t::array, "an array of encodings")) {
    for (const Json &choice : *choices) {
      std::string name = choice.is_string() ? choice.get<std::string>() : choice.dump();
      bool isKnown = name == "int8" || name == "int4" || llvm::StringRef(name).starts_with("planes");
      if (!choice.is_string() || !isKnown || !llvm::is_contained(encodings, name))
        reader.complain("'choices' names '" + name + "', and may name int4, int8 and planes");
      if (llvm::is_contained(recipe.choices, name))
        reader.complain("'choices' names '" + name + "' twice");
      recipe.choices.push_back(name);
    }
    if (!llvm::is_contained(recipe.choices, recipe.linear))
      reader.complain("'linear' must be one of 'choices', and is " + recipe.linear);
    if (recipe.outliers > 0 || recipe.power >= 0 || recipe.base != "none" || recipe.activations == "static")
      reader.complain("'choices' go with none of 'outliers', 'power', 'base' and 'activations' of static");
  }
  if (const Json *choices = reader.find("vocabulary-choices", Json::value_t::array, "an array of encodings with their groups")) {
    for (const Json &choice : *choices) {
      std::string text = choice.is_string() ? choice.get<std::string>() : choice.dump();
      auto [name, columns] = llvm::StringRef(text).split(':');
      int64_t together;
      if (!choice.is_string() || (name != "int8" && name != "int4") || columns.getAsInteger(10, together) || together < 0 || together % 32)
        reader.complain("'vocabulary-choices' names '" + text + "', and may name int4 and int8, each with its group: int8:32, or int8:0 for a scale a row");
      recipe.vocabularyChoices.push_back(text);
    }
    std::string own = recipe.vocabulary + ":" + std::to_string(recipe.vocabularyGroup < 0 ? recipe.group : recipe.vocabularyGroup);
    if (recipe.choices.empty())
      reader.complain("'vocabulary-choices' need 'choices'");
    else if (!choices->empty() && !llvm::is_contained(recipe.vocabularyChoices, own))
      reader.complain("'vocabulary' must be one of 'vocabulary-choices', and is " + own);
  }
  if (const Json *budget = reader.find("budget", Json::value_t::string, "a string")) {
    if (recipe.choices.empty())
      reader.complain("'budget' needs 'choices'");
    else if (llvm::Error error = setBudget(recipe, budget->get<std::string>()))
      reader.complain("'budget': " + llvm::toString(std::move(error)));
  } else if (!recipe.choices.empty())
    reader.complain("'choices' need a 'budget'");
}

llvm::Expected<Recipe> parseRecipe(llvm::StringRef text, llvm::StringRef source) {
  Json json;
  try {
    json = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error &error) {
    return llvm::createStringError("recipe '" + source + "': not JSON (byte " +
                                   llvm::Twine(error.byte) + " cannot be read)");
  }
  if (!json.is_object())
    return llvm::createStringError("recipe '" + source + "': must be a JSON object, not " +
                                   llvm::Twine(json.type_name()));
  Recipe recipe;
  Reader reader(json, source);
  for (const auto &item : json.items())
    if (!llvm::is_contained(keys, item.key()))
      reader.complain("unknown key '" + item.key() + "' (known are " + list(keys) + ")");
  if (const Json *name = reader.find("name", Json::value_t::string, "a string"))
    recipe.name = name->get<std::string>();
  else
    reader.complain("'name' is missing");
  if (!json.contains("linear"))
    reader.complain("'linear' is missing (how weights of linears are coded)");
  reader.encoding("linear", recipe.linear);
  reader.encoding("vocabulary", recipe.vocabulary);
  reader.group("vocabulary-group", recipe.vocabularyGroup);
  if (recipe.vocabularyGroup >= 0 && isPlain(recipe.vocabulary))
    reader.complain("'vocabulary-group' needs an encoding with scales, but vocabulary is " + recipe.vocabulary);
  if (reader.group("group", recipe.group)) {
    if (isPlain(recipe.linear) && isPlain(recipe.vocabulary))
      reader.complain("'group' needs an encoding with scales (linear is " + recipe.linear +
                      ", vocabulary " + recipe.vocabulary + ")");
  }
  if (const Json *outliers = reader.find("outliers", Json::value_t::number_float, "a number")) {
    recipe.outliers = outliers->get<double>();
    if (!(recipe.outliers >= 0 && recipe.outliers < 1))
      reader.complain("'outliers' is a fraction of columns from 0 to below 1, not " +
                      llvm::Twine(outliers->dump()));
    if (recipe.outliers > 0 && isPlain(recipe.linear))
      reader.complain("'outliers' keeps columns of coded linears in f16, but linear is " +
                      recipe.linear);
  }
  if (const Json *activations = reader.find("activations", Json::value_t::string, "a string")) {
    recipe.activations = activations->get<std::string>();
    if (recipe.activations == "static" && (recipe.linear != "int8" || recipe.group != 0 || recipe.outliers != 0))
      reader.complain("'activations' of static need 'linear' of int8, 'group' of 0 and no outliers");
    if (recipe.activations != "given" && recipe.activations != "int8" && recipe.activations != "static" && recipe.activations != "f32" && recipe.activations != "row")
      reader.complain("'activations' must be given, int8, static, f32 or row, not " + llvm::Twine(activations->dump()));
    if (recipe.activations == "f32" && (recipe.linear != "int8" && recipe.linear != "int4"))
      reader.complain("'activations' of f32 need 'linear' of int8 or int4, but it is " + recipe.linear);
    if (recipe.activations == "row" && isPlain(recipe.linear))
      reader.complain("'activations' of row are for coded linears, but linear is " + recipe.linear);
    if ((recipe.activations == "f32" || recipe.activations == "row") && recipe.outliers > 0)
      reader.complain("'activations' of " + recipe.activations + " and 'outliers' do not go together (records of int8 have room for both; leave out 'activations')");
  }
  if (const Json *rounding = reader.find("rounding", Json::value_t::string, "a string")) {
    recipe.rounding = rounding->get<std::string>();
    if (recipe.rounding != "nearest" && recipe.rounding != "feedback")
      reader.complain("'rounding' must be nearest or feedback, not " + llvm::Twine(rounding->dump()));
    if (recipe.rounding == "feedback" && isPlain(recipe.linear))
      reader.complain("'rounding' of feedback chooses codes of linears, but linear is " + recipe.linear);
    if (recipe.rounding == "feedback" && recipe.activations == "static")
      reader.complain("'rounding' of feedback and 'activations' of static do not go together (choose one of both)");
  }
  if (const Json *damping = reader.find("damping", Json::value_t::number_float, "a number")) {
    recipe.damping = damping->get<double>();
    if (!(recipe.damping > 0 && recipe.damping <= 1))
      reader.complain("'damping' is a fraction above 0 and at most 1, not " + llvm::Twine(damping->dump()));
    if (recipe.rounding != "feedback")
      reader.complain("'damping' needs 'rounding' of feedback");
  }
  if (const Json *fit = reader.find("fit", Json::value_t::string, "a string")) {
    recipe.fit = fit->get<std::string>();
    if (recipe.fit != "published" && recipe.fit != "joint")
      reader.complain("'fit' must be published or joint, not " + llvm::Twine(fit->dump()));
    if (!hasFit(recipe))
      reader.complain("'fit' is of ternary_sign, but linear is " + recipe.linear);
  }
  if (const Json *head = reader.find("head", Json::value_t::string, "a string")) {
    recipe.head = head->get<std::string>();
    if (recipe.head != "vocabulary" && recipe.head != "linear")
      reader.complain("'head' must be vocabulary or linear, not " + llvm::Twine(head->dump()));
  }
  for (auto [key, count] : {std::pair("keep-first", &recipe.keepFirst), {"keep-last", &recipe.keepLast}})
    if (const Json *blocks = reader.find(key, Json::value_t::number_integer, "an integer")) {
      *count = *blocks > int64_t(1) << 31 ? -1 : blocks->get<int64_t>();
      if (*count < 0)
        reader.complain("'" + llvm::Twine(key) + "' is a number of blocks, not " + llvm::Twine(blocks->dump()));
      if (isPlain(recipe.linear))
        reader.complain("'" + llvm::Twine(key) + "' keeps blocks in f16, but linear is " + recipe.linear + " anyway");
    }
  if (const Json *cache = reader.find("cache", Json::value_t::string, "a string")) {
    recipe.cache = cache->get<std::string>();
    if (recipe.cache != "f32" && recipe.cache != "f16" && recipe.cache != "int8")
      reader.complain("'cache' must be f32, f16 or int8, not " + llvm::Twine(cache->dump()));
  }
  readRotation(reader, recipe);
  readRelative(reader, recipe);
  readRank(reader, recipe);
  readHeads(reader, recipe);
  readChoices(reader, recipe);
  readScale(reader, recipe);
  if (!recipe.choices.empty() && (recipe.rank != 0 || recipe.power >= 0 || recipe.activations == "f32"))
    reader.complain("'choices' go with none of 'rank', 'power' and 'activations' of f32: a budget counts codes alone, and those of planes multiply int8");
  if (!reader.complaint.empty())
    return llvm::createStringError(reader.complaint);
  return recipe;
}

std::string printRecipe(const Recipe &recipe) {
  Json json;
  json["name"] = recipe.name;
  json["linear"] = recipe.linear;
  json["vocabulary"] = recipe.vocabulary;
  if (!isPlain(recipe.linear) || !isPlain(recipe.vocabulary))
    json["group"] = recipe.group;
  if (recipe.vocabularyGroup >= 0)
    json["vocabulary-group"] = recipe.vocabularyGroup;
  if (!isPlain(recipe.linear))
    json["outliers"] = recipe.outliers;
  if (recipe.scale != "f16")
    json["scale"] = recipe.scale;
  if (recipe.activations != "given")
    json["activations"] = recipe.activations;
  if (recipe.rounding != "nearest") {
    json["rounding"] = recipe.rounding;
    json["damping"] = recipe.damping;
  }
  if (recipe.head != "vocabulary")
    json["head"] = recipe.head;
  if (hasFit(recipe))
    json["fit"] = recipe.fit;
  if (recipe.keepFirst != 0)
    json["keep-first"] = recipe.keepFirst;
  if (recipe.keepLast != 0)
    json["keep-last"] = recipe.keepLast;
  if (recipe.rotation != "none") {
    json["rotation"] = recipe.rotation;
    json["rotation-block"] = recipe.rotationBlock;
    json["seed"] = recipe.seed;
  }
  if (recipe.power >= 0) {
    json["power"] = recipe.power;
    json["center"] = recipe.center;
  }
  if (recipe.base != "none") {
    json["base"] = recipe.base;
    json["sweeps"] = recipe.sweeps;
  }
  if (recipe.rank != 0)
    json["rank"] = recipe.rank;
  if (recipe.rankGate != "none")
    json["rank-gate"] = recipe.rankGate;
  if (recipe.tiedHead != "shared")
    json["tied-head"] = recipe.tiedHead;
  if (recipe.cache != "f32")
    json["cache"] = recipe.cache;
  if (!recipe.choices.empty()) {
    json["choices"] = recipe.choices;
    if (!recipe.vocabularyChoices.empty())
      json["vocabulary-choices"] = recipe.vocabularyChoices;
    json["budget"] = recipe.budget;
  }
  return json.dump(2) + "\n";
}

} // namespace otf
