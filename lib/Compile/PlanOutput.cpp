// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/PlanOutput.h"

#include "lib/Compile/Report.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

using namespace mlir;
using otf::plan::SectionKind;

namespace otf {

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

LogicalResult PlanOutput::encode(StreamEncoder &weights) {
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
    (void)fail(file.path() + ": encoding its weights with " + llvm::Twine(options.threads) + " threads takes " +
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
  if (failed(weights.write(file.files(), statistics, sink, how)))
    return failure();
  if (writer)
    writer->endSection();
  return success();
}

/// All that decides the bytes of weights; threads and memory do not.
std::vector<Unfinished::Identity> PlanOutput::identityOf(const StreamEncoder &weights) const {
  std::string files, text;
  for (unsigned i = 0; i != file.files().size(); ++i)
    files += file.files().isSynthetic(i)
                 ? file.files().name(i).str() + "\n"
                 : Unfinished::describeFile((std::filesystem::path(file.folder().str()) / file.files().name(i).str()).string());
  llvm::raw_string_ostream out(text);
  for (const StoredWeight &stored : weights.stored()) {
    stored.weight->print(out, OpPrintingFlags().useLocalScope().assumeVerified());
    out << stored.content << stored.offset;
  }
  std::string known = statistics ? Unfinished::describeFile(statistics->path()) : "";
  return {{"compiler", Unfinished::hash(kProducer + Unfinished::describeFile("/proc/self/exe"))},
          {"model", Unfinished::hash(files)},
          {"recipe", Unfinished::hash(printRecipe(options.recipe))},
          {"statistics", Unfinished::hash(known)},
          {"weights", Unfinished::hash(text)}};
}

LogicalResult PlanOutput::begin(StreamEncoder &weights) {
  if (options.dryRun)
    return success();
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

LogicalResult PlanOutput::finish(const std::vector<PlanSection> &sections) {
  if (!writer)
    return success();
  progress.show("writing " + options.output);
  for (const PlanSection &section : sections) {
    writer->beginSection(section.kind);
    for (const std::string &part : section.parts)
      writer->append(part.data(), part.size());
    writer->endSection();
  }
  std::string error;
  if (!writer->finish(error))
    return fail(options.output + ": " + error);
  if (options.written)
    options.written();
  if (unfinished)
    unfinished->finish();
  unfinished.reset();
  return success();
}

} // namespace otf
