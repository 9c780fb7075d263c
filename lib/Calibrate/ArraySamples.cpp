// SPDX-License-Identifier: Apache-2.0
#include "lib/Calibrate/Samples.h"

#include "runtime/Npy.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace otf {

using runtime::badInput;
using runtime::cat;
using runtime::Result;
using runtime::Status;

namespace {

class ArraySamples : public Samples {
public:
  Status create(const runtime::PlanFile &plan, const Sidecar *sidecar, const std::string &folder);

  size_t count() const override { return samples; }
  Status run(runtime::Session &session, size_t index) override;
  std::string words() const override { return cat(samples, samples == 1 ? " sample of " : " samples of ", name); }
  std::string warning(int64_t) const override { return {}; }

private:
  struct Input {
    std::string_view name;
    runtime::NpyArray array;
    std::vector<int64_t> shape; // of one sample
    size_t bytes = 0;           // of one sample
  };
  Status addInput(const runtime::PlanFile &plan, const runtime::TensorInfo &info, const std::string &path);

  std::string name;
  std::vector<Input> inputs;
  size_t samples = 0;
};

Status ArraySamples::addInput(const runtime::PlanFile &plan, const runtime::TensorInfo &info, const std::string &path) {
  Result<runtime::NpyArray> read = runtime::readNpy(path);
  if (!read.ok())
    return badInput(path, ": ", read.status().message());
  Input &input = inputs.emplace_back();
  input.name = info.name;
  input.array = std::move(read.value());
  input.array.readAs(info.type);
  const std::vector<int64_t> &shape = input.array.shape;
  size_t rank = info.shape.size();
  if (shape.empty() || (shape.size() != rank && shape.size() != rank + 1))
    return badInput(path, ": has ", shape.size(), " axes, and input '", info.name, "' has ", rank, " (give that many or one more, the first of which counts samples)");
  int64_t together = 1;
  input.shape.assign(shape.begin() + 1, shape.end());
  if (shape.size() == rank) {
    const runtime::Polynomial &batch = plan.sizes[info.shape[0]];
    if (batch.size() == 1 && batch[0].symbols.empty())
      together = std::max<int64_t>(batch[0].coefficient, 1);
    input.shape.insert(input.shape.begin(), together);
  }
  size_t count = size_t(shape[0] / together);
  if (count == 0)
    return badInput(path, ": has ", shape[0], " samples, and input '", info.name, "' takes ", together, " at a time");
  if (inputs.size() > 1 && count != samples)
    return badInput(path, ": has ", count, " samples, and ", inputs.front().name, ".npy has ", samples);
  samples = count;
  input.bytes = input.array.bytes.size() / size_t(shape[0]) * size_t(together);
  return {};
}

Status ArraySamples::create(const runtime::PlanFile &plan, const Sidecar *sidecar, const std::string &folder) {
  name = folder;
  std::set<std::string> known;
  for (const runtime::TensorInfo &input : plan.inputs) {
    if (sidecar && sidecar->owns(input.name))
      continue;
    std::string file(input.name);
    std::replace(file.begin(), file.end(), '/', '_');
    known.insert(file + ".npy");
    std::string path = folder + "/" + file + ".npy";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      return badInput(folder, ": has no ", file, ".npy for input '", input.name, "' (give a file for each input; its first axis counts samples)");
    OTF_TRY(addInput(plan, input, path));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::string file = at->path().filename().string(); file.ends_with(".npy") && !known.count(file))
      return badInput(folder, "/", file, ": is no input of the model (take it away, or check its name)");
  return inputs.empty() ? badInput(folder, ": the model has no inputs, so nothing about it varies") : Status();
}

Status ArraySamples::run(runtime::Session &session, size_t index) {
  OTF_TRY(session.truncateStates(0));
  for (const Input &input : inputs)
    OTF_TRY(session.setInput(input.name, {input.array.type, input.shape, input.array.bytes.data() + index * input.bytes}));
  return session.run();
}

} // namespace

Result<std::unique_ptr<Samples>> makeSamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const Source &source,
                                             const SampleOptions &options) {
  return source.folder.empty() ? makeTextSamples(plan, sidecar, source, options) : makeArraySamples(plan, sidecar, source.folder);
}

Result<std::unique_ptr<Samples>> makeArraySamples(const runtime::PlanFile &plan, const Sidecar *sidecar, const std::string &folder) {
  auto samples = std::make_unique<ArraySamples>();
  if (Status status = samples->create(plan, sidecar, folder); !status.ok())
    return status;
  return std::unique_ptr<Samples>(std::move(samples));
}

} // namespace otf
