// SPDX-License-Identifier: Apache-2.0
//
// The stages in order, each a few passes, and then the sections of a plan in order. The weight
// section comes first and streams; the metadata comes last, since it says where everything lies.

#include "lib/Compile/Compile.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Observed.h"
#include "lib/Analysis/Statistics.h"
#include "lib/Compile/DerivedWeights.h"
#include "lib/Compile/ErrorPrinter.h"
#include "lib/Compile/Foretell.h"
#include "lib/Compile/Generation.h"
#include "lib/Compile/KeepGiven.h"
#include "lib/Compile/ModelKey.h"
#include "lib/Compile/PlanAssembly.h"
#include "lib/Compile/PlanOutput.h"
#include "lib/Compile/Progress.h"
#include "lib/Compile/Report.h"
#include "lib/Compile/Sidecars.h"
#include "lib/Compile/Targets.h"
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
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace mlir;
using otf::plan::SectionKind;

namespace otf {

namespace {

using Emit = CompileOptions::Emit;

class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(MLIRContext::Threading::DISABLED), errors(context, progress) {
    if (options.quiet)
      errors.dropWarnings();
  }

  CompileStatus run();
  CompileStatus identify(ModelIdentity &identity);

private:
  CompileStatus status(LogicalResult result);
  LogicalResult findSidecars();
  LogicalResult import();
  LogicalResult runPasses(Emit stage);
  LogicalResult emitText(llvm::function_ref<void(llvm::raw_ostream &)> print);
  LogicalResult emitPlan();
  LogicalResult checkOutput();
  LogicalResult fail(const llvm::Twine &message) {
    errors.print(message.str());
    return failure();
  }
  LogicalResult refuseHost(const std::map<std::string, std::string> &host);
  void summarise(const StreamEncoder &weights, const std::vector<PlanSection> &sections);
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
  if (module && options.syntheticSeed && !file->files().syntheticCount())
    return fail(file->path() + ": no weight is missing (leave --synthetic-weights out)");
  return success(bool(module));
}

/// The passes that lead to `stage` from the one before.
static void addPasses(OpPassManager &passes, Emit stage, const CompileOptions &options,
                      const FileSet &files, const Statistics *statistics, const std::string &sensitivities) {
  const Recipe &recipe = options.recipe;
  auto coded = [&](const std::string &encoding) {
    if (recipe.scale == "f32" && (encoding == "int8" || encoding == "int4"))
      return encoding == "int8" ? std::string("grid8") : std::string("grid4");
    return encoding == "given" ? std::string("f32") : encoding;
  };
  switch (stage) {
  case Emit::imported:
    buildRaisePipeline(passes);
    return;
  case Emit::annotated: {
    DecideOptions decide;
    decide.linear = coded(recipe.linear);
    decide.vocabulary = coded(recipe.vocabulary);
    decide.group = recipe.group;
    decide.vocabularyGroup = recipe.vocabularyGroup;
    decide.outliers = recipe.outliers;
    decide.keepFirst = recipe.keepFirst;
    decide.keepLast = recipe.keepLast;
    decide.keepNonfinite = options.allowNonfinite;
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
    decide.cache = recipe.cache;
    if (statistics)
      decide.statistics = statistics->path();
    if (!sensitivities.empty()) {
      decide.budget = recipe.budget;
      decide.choices = llvm::join(recipe.choices, "+");
      decide.tables = llvm::join(recipe.vocabularyChoices, "+");
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

LogicalResult Compilation::findSidecars() {
  auto key = [&] { return modelKey(*module, file->files()); };
  llvm::Expected<std::optional<Statistics>> found = findStatistics(options, file->path().str(), key);
  if (!found)
    return fail(llvm::toString(found.takeError()));
  statistics = std::move(*found);
  llvm::Expected<std::string> measured = findSensitivities(options, file->path().str(), key);
  if (!measured)
    return fail(llvm::toString(measured.takeError()));
  sensitivities = *measured;
  return success();
}

void Compilation::summarise(const StreamEncoder &weights, const std::vector<PlanSection> &sections) {
  uint64_t size = plan::kSectionAlignment + weights.sectionBytes();
  for (const PlanSection &section : sections)
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
  if (size_t made = file->files().syntheticCount())
    out << made << " weights are made up, with seed " << *options.syntheticSeed << ": speed and memory are a model's, answers are not\n";
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

  AssemblyOptions assembly{kProducer, modelName(), *generation, options.cpu, options.cuda, {}, {}, {}};
  std::vector<CodeBlob> objects;
  CudaCode cuda;
  if (options.cpu) {
    progress.show("generating code for cpu");
    FailureOr<std::vector<CodeBlob>> generated = generateCpu(*module, options.cpuLevels);
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
      FailureOr<std::vector<CodeBlob>> generated = generateHost(*module, cuda.host, options.cpuLevels);
      if (failed(generated))
        return failure();
      objects = std::move(*generated);
    }
  }
  FailureOr<plan::model::Plan> metadata = assemblePlan(*module, *weights, assembly);
  if (failed(metadata))
    return failure();

  PlanOutput output(options, *file, statistics ? &*statistics : nullptr, progress, [&](const llvm::Twine &message) { return fail(message); });
  if (failed(output.begin(*weights)) || failed(output.encode(*weights)))
    return failure();

  std::string report = makeReport(*weights, options.recipe, kProducer, assembly.model, statistics ? &*statistics : nullptr);
  std::vector<PlanSection> sections;
  auto addCode = [&](SectionKind kind, std::vector<CodeBlob> &blobs,
                     std::vector<plan::model::Code> &table) {
    if (blobs.empty())
      return;
    PlanSection &section = sections.emplace_back();
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

  if (failed(output.finish(sections)))
    return failure();
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
  if (options.observed) {
    for (auto weight : module->getOps<WeightOp>())
      if (auto set = weight->getAttrOfType<StringAttr>(kObservedAttribute))
        (*options.observed)[weight.getSymName().str()] = set.getValue().str();
    if (auto others = (*module)->getAttrOfType<ArrayAttr>(kObservedValuesAttribute))
      for (auto set : others.getAsRange<StringAttr>())
        (*options.observed)[set.getValue().str()] = set.getValue().str();
  }
  if (options.quiet)
    return success();
  summarise(*weights, sections);
  if (options.dryRun)
    if (std::string why = foretell(*metadata, options, llvm::outs()); !why.empty())
      return fail(file->path() + ": " + why);
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
  if (failed(import()) || failed(checkOutput()) || failed(findSidecars()))
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
    FailureOr<std::string> text = generateLlvmText(*module, options.cpuLevels.front());
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
