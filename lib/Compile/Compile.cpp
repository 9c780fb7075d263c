// SPDX-License-Identifier: Apache-2.0
//
// The stages in order, each a few passes, and then the sections of a plan in order. The weight
// section comes first and streams; the metadata comes last, since it says where everything lies.

#include "lib/Compile/Compile.h"

#include "dialects/OTF/Codes.h"
#include "lib/Analysis/Sensitivities.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Compile/DerivedWeights.h"
#include "lib/Compile/ErrorPrinter.h"
#include "lib/Compile/Footprint.h"
#include "lib/Compile/Generation.h"
#include "lib/Compile/KeepGiven.h"
#include "lib/Compile/ModelKey.h"
#include "lib/Compile/PlanAssembly.h"
#include "lib/Compile/Progress.h"
#include "lib/Compile/Report.h"
#include "lib/Compile/Targets.h"
#include "lib/Compile/Unfinished.h"
#include "lib/Compile/WeightRows.h"
#include "lib/Import/Importer.h"
#include "lib/Plan/Writer.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/Raise/Raise.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace mlir;
using otf::plan::SectionKind;

namespace otf {

static const char producer[] = "otf-compile 0.1.0";

namespace {

using Emit = CompileOptions::Emit;

struct Section {
  SectionKind kind;
  std::vector<std::string> parts; // one after another
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const std::string &part : parts)
      sum += part.size();
    return sum;
  }
};

class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(MLIRContext::Threading::DISABLED), errors(context, progress) {}

  CompileStatus run();
  CompileStatus identify(ModelIdentity &identity);

private:
  CompileStatus status(LogicalResult result);
  LogicalResult findStatistics();
  LogicalResult findSensitivities();
  LogicalResult import();
  LogicalResult runPasses(Emit stage);
  LogicalResult emitText(llvm::function_ref<void(llvm::raw_ostream &)> print);
  LogicalResult emitPlan();
  LogicalResult checkOutput();
  LogicalResult writeWeights(StreamEncoder &weights, plan::Writer *writer, Unfinished *unfinished);
  LogicalResult beginWriting(StreamEncoder &weights, std::optional<Unfinished> &unfinished,
                             std::unique_ptr<plan::Writer> &writer);
  std::vector<Unfinished::Identity> identityOf(const StreamEncoder &weights) const;
  LogicalResult fail(const llvm::Twine &message) {
    errors.print(message.str());
    return failure();
  }
  LogicalResult refuseHost(const std::map<std::string, std::string> &host);
  void summarise(const StreamEncoder &weights, const std::vector<Section> &sections);
  LogicalResult foretell(const plan::model::Plan &metadata);
  std::string modelName() const;

  const CompileOptions &options;
  Progress progress;
  MLIRContext context;
  ErrorPrinter errors;
  std::unique_ptr<ModelFile> file;
  OwningOpRef<ModuleOp> module;
  bool missing = false;
  std::optional<Statistics> statistics;
  std::string sensitivities; // a path; empty where nothing is chosen among
};

} // namespace

/// The folder's name for a folder or its model.onnx, else the file's without its extension.
std::string Compilation::modelName() const {
  std::filesystem::path path = std::filesystem::absolute(file->path().str()).lexically_normal();
  return path.filename() == "model.onnx" ? path.parent_path().filename().string()
                                         : path.stem().string();
}

LogicalResult Compilation::import() {
  progress.show("reading " + options.model);
  llvm::Expected<std::unique_ptr<ModelFile>> opened = ModelFile::open(options.model);
  if (!opened)
    return fail(llvm::toString(opened.takeError()));
  file = std::move(*opened);
  errors.setFile(file->path().str());
  if (options.syntheticSeed)
    file->files().synthesize(*options.syntheticSeed);
  module = importModel(*file, context);
  if (module && options.syntheticSeed && !file->files().hasSynthetic())
    return fail(file->path() + ": no weight is missing (leave --synthetic-weights out)");
  return success(bool(module));
}

/// The passes that lead to `stage` from the one before.
static void addPasses(OpPassManager &passes, Emit stage, const CompileOptions &options,
                      const FileSet &files, const Statistics *statistics, const std::string &sensitivities) {
  const Recipe &recipe = options.recipe;
  auto orPlain = [](const std::string &encoding) {
    return encoding == "given" ? std::string("f32") : encoding;
  };
  switch (stage) {
  case Emit::imported:
    buildRaisePipeline(passes);
    return;
  case Emit::annotated: {
    DecideOptions decide;
    decide.linear = orPlain(recipe.linear);
    decide.vocabulary = orPlain(recipe.vocabulary);
    decide.group = recipe.group;
    decide.vocabularyGroup = recipe.vocabularyGroup;
    decide.outliers = recipe.outliers;
    decide.keepFirst = recipe.keepFirst;
    decide.keepLast = recipe.keepLast;
    decide.codedHead = recipe.head == "linear";
    decide.jointFit = recipe.fit == "joint";
    decide.rotation = recipe.rotation;
    decide.rotationBlock = recipe.rotationBlock;
    decide.seed = recipe.seed;
    decide.feedback = recipe.rounding == "feedback" ? recipe.damping : 0.0;
    decide.staticGrids = recipe.activations == "static";
    decide.activations = recipe.activations == "f32" || recipe.activations == "row" ? recipe.activations : "int8";
    decide.splitHead = recipe.tiedHead == "coded";
    decide.power = recipe.power;
    decide.center = recipe.center;
    decide.rank = recipe.rank;
    decide.rankGate = recipe.rankGate != "none";
    decide.sharedBase = recipe.base == "shared";
    decide.sweeps = recipe.sweeps;
    if (statistics)
      decide.statistics = statistics->path();
    if (!sensitivities.empty()) {
      decide.budget = recipe.budget;
      decide.choices = llvm::join(recipe.choices, "+");
      decide.sensitivities = sensitivities;
    }
    buildDecidePipeline(passes, decide, readWeightsFrom(files), capturedEnergyOf(files, statistics));
    passes.addPass(createKeepGiven({recipe.linear == "given", recipe.vocabulary == "given", recipe.activations == "int8"}, files));
    if (options.observed)
      passes.addPass(createInsertObservers());
    return;
  }
  case Emit::quantized:
    buildRewritePipeline(passes, !options.keepNorms);
    return;
  case Emit::fused:
    buildFusePipeline(passes);
    return;
  case Emit::planned:
    buildLowerPipeline(passes);
    return;
  default:
    return;
  }
}

LogicalResult Compilation::runPasses(Emit stage) {
  static const char *const doing[] = {
      "", "understanding operators", "choosing encodings", "rewriting", "fusing", "planning"};
  progress.show(doing[size_t(stage)]);
  PassManager passes(&context);
  addPasses(passes, stage, options, file->files(), statistics ? &*statistics : nullptr, sensitivities);
  if (succeeded(passes.run(*module)))
    return success();
  if (errors.count() != 0)
    return failure();
  return fail(file->path() + ": " + doing[size_t(stage)] +
              " failed (this is a bug of otf-compile)");
}

LogicalResult Compilation::emitText(llvm::function_ref<void(llvm::raw_ostream &)> print) {
  std::string output = options.output.empty() ? "-" : options.output;
  if (output == "-") { // llvm::outs() would end the process on a full disk
    std::string text;
    llvm::raw_string_ostream stream(text);
    print(stream);
    bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (std::fflush(stdout) != 0 || !written)
      return fail(llvm::Twine("standard output: cannot be written (") + std::strerror(errno) + ")");
    return success();
  }
  llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &out) {
    print(out);
    return llvm::Error::success();
  });
  if (error)
    return fail(output + ": cannot be written (" + llvm::toString(std::move(error)) + ")");
  return success();
}

/// The model's own files are not overwritten, by whatever name.
LogicalResult Compilation::checkOutput() {
  for (const std::string &output : {options.output, options.report})
    for (unsigned i = 0; i != file->files().size(); ++i) {
      std::error_code ignored;
      std::filesystem::path source = std::filesystem::path(file->folder().str()) / file->files().name(i).str();
      if (!output.empty() && std::filesystem::equivalent(output, source, ignored))
        return fail(output + ": is a file of the model (choose another name for what is written)");
    }
  return success();
}

/// Memory of this process that no file backs.
static int64_t anonymousMemory() {
  auto status = llvm::MemoryBuffer::getFileAsStream("/proc/self/status");
  if (!status)
    return 0;
  llvm::StringRef rest = (*status)->getBuffer();
  size_t at = rest.find("RssAnon:");
  int64_t kilobytes = 0;
  if (at != llvm::StringRef::npos && !(rest = rest.substr(at + 8).ltrim()).consumeInteger(10, kilobytes))
    return kilobytes * 1024;
  return 0;
}

LogicalResult Compilation::writeWeights(StreamEncoder &weights, plan::Writer *writer, Unfinished *unfinished) {
  double work = 0, before = 0; // of all weights, and of those before the one at hand
  for (const StoredWeight &weight : weights.stored())
    work += weight.isDone ? 0 : encodingWork(weight);
  uint64_t done = 0; // bytes of the weight at hand
  const StoredWeight *current = nullptr;
  auto sink = [&](std::span<const std::byte> bytes) {
    done += bytes.size();
    if (writer)
      writer->append(bytes);
    if (unfinished)
      unfinished->add(bytes);
    double part = current->size == 0 ? 0 : std::min(1.0, double(done) / double(current->size)) * encodingWork(*current);
    progress.show("encoding weights", uint64_t(before + part), uint64_t(work),
                  current->node.empty() ? current->name : current->node);
    return !writer || writer->ok();
  };
  constexpr int64_t margin = 4 << 20; // of what is done beside
  int64_t taken = anonymousMemory() + margin;
  bool refused = false;
  auto refuse = [&](int64_t needed) {
    refused = true;
    auto megabytes = [](int64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + "MB"; };
    (void)fail(file->path() + ": encoding its weights with " + llvm::Twine(options.threads) + " threads takes " +
               megabytes(needed + taken) + " of memory, and --max-host-memory allows " + megabytes(int64_t(options.hostMemory)) +
               (options.threads > 1 ? " (give more, or fewer --threads)" : " (give more)"));
  };
  WriteOptions how;
  how.threads = options.threads;
  how.memory = options.hostMemory == 0 ? 0 : std::max(int64_t(1), int64_t(options.hostMemory) - taken);
  how.refuse = refuse;
  auto begin = [&](const StoredWeight &weight) {
    current = &weight;
    done = 0;
  };
  auto told = [&](const StoredWeight &weight) {
    before += encodingWork(weight);
    if (unfinished) {
      writer->flush();
      unfinished->close(weight);
    }
    if (!options.verbose)
      return;
    progress.clear();
    llvm::errs() << describe(weight) << "\n";
  };
  how.begin = begin;
  how.done = told;
  return weights.write(file->files(), statistics ? &*statistics : nullptr, sink, how);
}

/// All that decides the bytes of weights; threads and memory do not.
std::vector<Unfinished::Identity> Compilation::identityOf(const StreamEncoder &weights) const {
  std::string files, text;
  for (unsigned i = 0; i != file->files().size(); ++i)
    files += file->files().isSynthetic(i)
                 ? file->files().name(i).str() + "\n"
                 : Unfinished::describeFile((std::filesystem::path(file->folder().str()) / file->files().name(i).str()).string());
  llvm::raw_string_ostream out(text);
  for (const StoredWeight &stored : weights.stored()) {
    stored.weight->print(out, OpPrintingFlags().useLocalScope().assumeVerified());
    out << stored.content << stored.offset;
  }
  std::string known = statistics ? Unfinished::describeFile(statistics->path()) : "";
  return {{"compiler", Unfinished::hash(producer + Unfinished::describeFile("/proc/self/exe"))},
          {"model", Unfinished::hash(files)},
          {"recipe", Unfinished::hash(printRecipe(options.recipe))},
          {"statistics", Unfinished::hash(known)},
          {"weights", Unfinished::hash(text)}};
}

std::string defaultStatistics(const std::string &modelFile) { return modelFile + ".calibration.safetensors"; }

/// Opens the statistics that the recipe uses, and sees that they are about this model.
LogicalResult Compilation::findStatistics() {
  const Recipe &recipe = options.recipe;
  const char *wanted = recipe.activations == "static"  ? "gives activations one range a tensor"
                       : recipe.rounding == "feedback" ? "rounds weights by what they multiply"
                       : recipe.power >= 0             ? "makes inputs relative to what they vary by"
                       : recipe.rank > 0 && recipe.base == "none" ? "gives back the low rank that inputs miss most"
                                                       : nullptr;
  bool isUsed = wanted || recipe.outliers > 0;
  std::string path = options.statistics;
  if (path.empty() && isUsed && !options.ignoreStatistics && options.observed == nullptr) {
    path = defaultStatistics(file->path().str());
    if (std::error_code ignored; !std::filesystem::exists(path, ignored))
      path.clear();
  }
  if (path.empty())
    return wanted && options.observed == nullptr
               ? fail(file->path() + ": recipe '" + recipe.name + "' " + wanted +
                      ", and nothing is known of activations (give --calibrate=TEXT, or a folder of .npy)")
               : success();
  llvm::Expected<Statistics> opened = Statistics::open(path);
  if (!opened)
    return fail(llvm::toString(opened.takeError()));
  std::string key = modelKey(*module, file->files());
  if (opened->model() != key)
    return fail(path + ": these statistics are of another model (they are of " + opened->model() + ", and " + file->path() + " is " + key +
                "; calibrate again, or leave them out with --calibrate=none)");
  statistics = std::move(*opened);
  return success();
}

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

/// Finds what errors cost, for recipes that choose by it, and sees that it is about this model and such errors.
LogicalResult Compilation::findSensitivities() {
  const Recipe &recipe = options.recipe;
  if (recipe.choices.empty() || options.uniform)
    return success();
  std::string path = options.sensitivities.empty() ? defaultSensitivities(file->path().str()) : options.sensitivities;
  if (std::error_code ignored; options.sensitivities.empty() && !std::filesystem::exists(path, ignored))
    return fail(file->path() + ": recipe '" + recipe.name +
                "' spends its budget by what errors of each weight cost, which is not known (give --calibrate=TEXT, or a folder of .npy)");
  llvm::Expected<Sensitivities> opened = Sensitivities::open(path);
  if (!opened)
    return fail(llvm::toString(opened.takeError()));
  std::string key = modelKey(*module, file->files()), errors = describeErrors(recipe);
  if (opened->model != key)
    return fail(path + ": this was measured on another model (on " + opened->model + ", and " + file->path() + " is " + key + "; calibrate again)");
  if (opened->errors != errors)
    return fail(path + ": this was measured for other errors (" + opened->errors + ") than recipe '" + recipe.name + "' makes (" + errors +
                "; calibrate again)");
  sensitivities = path;
  return success();
}

void Compilation::summarise(const StreamEncoder &weights, const std::vector<Section> &sections) {
  uint64_t size = plan::kSectionAlignment + weights.sectionBytes();
  for (const Section &section : sections)
    size = llvm::alignTo(size, plan::kSectionAlignment) + section.bytes();
  Totals totals(weights);
  progress.clear();
  llvm::raw_ostream &out = llvm::outs();
  out << (options.dryRun ? "would write " : "wrote ");
  if (!options.output.empty())
    out << options.output << ": ";
  out << size << " bytes, " << llvm::format("%.3f bits a weight", totals.total.bits());
  if (totals.vocabulary.tensors)
    out << llvm::format(" (layers %.3f, vocabulary %.3f)", totals.layers.bits(),
                        totals.vocabulary.bits());
  out << llvm::format(", %.1f s\n", progress.seconds());
  if (auto foretold = (*module)->getAttrOfType<StringAttr>(kForetoldAttribute))
    out << options.recipe.budget << " were spent on " << foretold.getValue() << "\n";
}

/// What the plan of a dry run would take to run.
LogicalResult Compilation::foretell(const plan::model::Plan &metadata) {
  const bool grows = !metadata.states.empty();
  int64_t context = options.context ? options.context : defaultContext(metadata);
  std::optional<Footprint> footprint = footprintOf(metadata, context);
  if (!footprint)
    return fail(file->path() + ": its memory at a context of " + llvm::Twine(context) +
                " does not fit in 64 bits (give a smaller --context)");
  llvm::raw_ostream &out = llvm::outs();
  auto megabytes = [&](const char *what, uint64_t bytes) {
    out << llvm::format("%.1f MB ", double(bytes) / 1e6) << what;
  };
  out << (grows ? "one token: " : "one run with every symbolic size 1: ");
  megabytes("of weights read, ", footprint->read);
  if (footprint->atLeast)
    out << "at least ";
  megabytes("of scratch and outputs", footprint->scratch);
  if (grows) {
    out << ", ";
    megabytes("of cache for ", footprint->states);
    out << context << " positions";
  }
  out << "\n";
  return success();
}

/// The first launch of a kernel that only the host can run, as an error.
LogicalResult Compilation::refuseHost(const std::map<std::string, std::string> &host) {
  LogicalResult result = success();
  module->walk([&](plan::LaunchOp launch) {
    auto found = host.find(launch.getKernel().str());
    if (found == host.end())
      return WalkResult::advance();
    std::string node = labelOf(launch.getLoc());
    result = fail(file->path() + ": " + (node.empty() ? "" : node + ": ") + "kernel '" + found->first +
                  "' has no CUDA form: " + found->second +
                  " (leave out --strict-placement, and the host runs it)");
    return WalkResult::interrupt();
  });
  return result;
}

LogicalResult Compilation::beginWriting(StreamEncoder &weights, std::optional<Unfinished> &unfinished,
                                        std::unique_ptr<plan::Writer> &writer) {
  if (options.quiet) { // for this process alone, so a killed one leaves nothing
    writer = std::make_unique<plan::Writer>(options.output);
    writer->beginSection(SectionKind::weights);
    return success();
  }
  std::string name = Unfinished::fileOf(options.output);
  auto opened = std::make_unique<plan::Writer>(options.output, name);
  if (std::string error; !opened->ok()) {
    (void)opened->finish(error);
    return fail(options.output + ": " + error);
  }
  // From here on the unfinished file is ours, to remove too.
  unfinished.emplace(options.output, identityOf(weights));
  size_t done = 0;
  if (options.resume)
    if (std::string why = unfinished->read(weights, done); !why.empty()) {
      unfinished->keep();
      return fail(name + ": cannot be resumed (" + why + "; leave out --resume to start anew)");
    }
  writer = std::move(opened);
  writer->beginSection(SectionKind::weights);
  if (done)
    writer->adopt(weights.stored()[done - 1].offset + weights.stored()[done - 1].size);
  unfinished->begin(weights, done);
  if (options.resume) {
    progress.clear();
    llvm::outs() << "resumed: " << done << " of " << weights.stored().size() << " weights were there\n";
  }
  return success();
}

LogicalResult Compilation::emitPlan() {
  // Everything that may fail for the model's or the machine's sake comes before the long work.
  llvm::Expected<std::string> generation = generationSettings(file->companions());
  if (!generation)
    return fail(llvm::toString(generation.takeError()));
  llvm::Expected<std::string> tokenizer = readWhole(file->companions().tokenizer);
  if (!tokenizer)
    return fail(llvm::toString(tokenizer.takeError()));
  FailureOr<StreamEncoder> weights = StreamEncoder::plan(*module);
  if (failed(weights))
    return failure();

  AssemblyOptions assembly{producer, modelName(), *generation, options.cpu, options.cuda, {}, {}, {}};
  std::vector<CodeBlob> objects;
  CudaCode cuda;
  if (options.cpu) {
    progress.show("generating code for cpu");
    FailureOr<std::vector<CodeBlob>> generated = generateCpu(*module);
    if (failed(generated))
      return failure();
    objects = std::move(*generated);
  }
  if (options.cuda) {
    progress.show("generating code for cuda");
    FailureOr<CudaCode> generated = generateCuda(*module, options.cudaArchitectures, missing);
    if (failed(generated))
      return failure();
    cuda = std::move(*generated);
    assembly.geometry = cuda.geometry;
    assembly.host = cuda.host;
    assembly.merged = cuda.merged;
    if (options.strictPlacement && failed(refuseHost(cuda.host)))
      return failure();
    if (!options.cpu && !cuda.host.empty()) {
      FailureOr<std::vector<CodeBlob>> generated = generateHost(*module, cuda.host);
      if (failed(generated))
        return failure();
      objects = std::move(*generated);
    }
  }
  FailureOr<plan::model::Plan> metadata = assemblePlan(*module, *weights, assembly);
  if (failed(metadata))
    return failure();

  std::unique_ptr<plan::Writer> writer; // keeps others from the unfinished file until that is removed
  std::optional<Unfinished> unfinished;
  if (!options.dryRun && failed(beginWriting(*weights, unfinished, writer)))
    return failure();
  if (failed(writeWeights(*weights, writer.get(), unfinished ? &*unfinished : nullptr)))
    return failure();
  if (writer)
    writer->endSection();

  std::string report = makeReport(*weights, options.recipe, producer, assembly.model, statistics ? &*statistics : nullptr);
  std::vector<Section> sections;
  auto addCode = [&](SectionKind kind, std::vector<CodeBlob> &blobs,
                     std::vector<plan::model::Code> &table) {
    if (blobs.empty())
      return;
    Section &section = sections.emplace_back();
    section.kind = kind;
    for (CodeBlob &blob : blobs) {
      // Objects are loaded and cubins handed to the driver from where they lie.
      blob.bytes.resize(llvm::alignTo(blob.bytes.size(), plan::kWeightAlignment));
      table.push_back({blob.level, section.bytes(), blob.bytes.size()});
      section.parts.push_back(std::move(blob.bytes));
    }
  };
  addCode(SectionKind::objects, objects, metadata->objects);
  if (options.cuda)
    sections.push_back({SectionKind::cudaSource, {std::move(cuda.source)}});
  addCode(SectionKind::cubins, cuda.cubins, metadata->cubins);
  if (!tokenizer->empty())
    sections.push_back({SectionKind::tokenizer, {std::move(*tokenizer)}});
  sections.push_back({SectionKind::recipe, {printRecipe(options.recipe)}});
  sections.push_back({SectionKind::report, {report}});
  std::vector<std::byte> serialized = plan::model::serialize(*metadata);
  sections.push_back(
      {SectionKind::metadata,
       {std::string(reinterpret_cast<const char *>(serialized.data()), serialized.size())}});

  if (writer) {
    progress.show("writing " + options.output);
    for (const Section &section : sections) {
      writer->beginSection(section.kind);
      for (const std::string &part : section.parts)
        writer->append(part.data(), part.size());
      writer->endSection();
    }
    std::string error;
    if (!writer->finish(error))
      return fail(options.output + ": " + error);
    if (unfinished)
      unfinished->finish();
    unfinished.reset();
  }
  // Last, so that a report is never newer than its plan; writeToOutput renames a finished file.
  if (!options.report.empty()) {
    llvm::Error error = llvm::writeToOutput(options.report, [&](llvm::raw_ostream &out) {
      out << report;
      return llvm::Error::success();
    });
    if (error)
      return fail(options.report + ": cannot be written (" + llvm::toString(std::move(error)) +
                  ")");
  }
  if (options.observed)
    for (auto weight : module->getOps<WeightOp>())
      if (auto set = weight->getAttrOfType<StringAttr>("otf.observed"))
        (*options.observed)[weight.getSymName().str()] = set.getValue().str();
  if (options.quiet)
    return success();
  summarise(*weights, sections);
  if (options.dryRun && failed(foretell(*metadata)))
    return failure();
  if (!options.report.empty())
    llvm::outs() << reportTable(*weights);
  for (const auto &[kernel, reason] : cuda.host)
    llvm::outs() << "on the host: " << kernel << ": " << reason << "\n";
  return success();
}

CompileStatus Compilation::status(LogicalResult result) {
  progress.clear();
  errors.flush();
  return succeeded(result) ? CompileStatus::done
         : missing         ? CompileStatus::missing
                           : CompileStatus::badInput;
}

CompileStatus Compilation::identify(ModelIdentity &identity) {
  if (failed(import()))
    return status(failure());
  identity = {modelKey(*module, file->files()), file->path().str()};
  return status(success());
}

CompileStatus Compilation::run() {
  if (failed(import()) || failed(checkOutput()) || failed(findStatistics()) || failed(findSensitivities()))
    return status(failure());
  Emit last = options.emit > Emit::planned ? Emit::planned : options.emit;
  for (int stage = int(Emit::imported); stage <= int(last); ++stage)
    if (failed(runPasses(Emit(stage))))
      return status(failure());

  switch (options.emit) {
  case Emit::cuda: {
    FailureOr<CudaCode> code = generateCuda(*module, {}, missing);
    return status(failed(code) ? failure() : emitText([&](auto &out) {
      out << code->source;
      for (auto &[kernel, reason] : code->host)
        out << "// " << kernel << " is the host's: " << reason << "\n";
    }));
  }
  case Emit::llvm: {
    FailureOr<std::string> text = generateLlvmText(*module);
    return status(failed(text) ? failure() : emitText([&](auto &out) { out << *text; }));
  }
  case Emit::plan:
    return status(emitPlan());
  default:
    if (options.decided) {
      options.decided(*module);
      return status(success());
    }
    return status(emitText([&](auto &out) { module->print(out); }));
  }
}

CompileStatus identifyModel(const std::string &model, ModelIdentity &identity) {
  CompileOptions options;
  options.model = model;
  return Compilation(options).identify(identity);
}

CompileStatus compile(const CompileOptions &options) { return Compilation(options).run(); }

} // namespace otf
