// SPDX-License-Identifier: Apache-2.0
//
// otf-exec run: arrays in, arrays out. Without a folder for them, outputs are summarised.
#include "tools/otf-exec/Common.h"
#include "tools/otf-exec/StepProfile.h"

#include "runtime/CPU/Cores.h"
#include "runtime/Npy.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace otf::exec {

using namespace runtime;

/// A name may hold anything, also what a file name may not. Where it is too long, or has become
/// equal to another, the output's number says which it is.
static std::string fileName(std::string_view tensor, size_t index, std::set<std::string> &used) {
  std::string name(tensor);
  for (char &c : name)
    if (c == '/' || uint8_t(c) < 0x20 || c == 0x7f)
      c = '_';
  name = (name.empty() || name[0] == '.' ? "_" + name : name) + ".npy";
  std::string number = cat("output-", index);
  if (name.size() > NAME_MAX)
    name = number + ".npy";
  for (size_t again = 0; !used.insert(name).second; ++again) // an output may be called output-0
    name = cat(number, again ? cat("-", again) : "", ".npy");
  return name;
}

static std::string shapeText(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += cat(text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

/// Whether a run with these inputs hands in states, whose successors are then wanted.
static bool givesStates(const PlanFile &plan, const RunOptions &options) {
  for (const StateInfo &state : plan.states)
    for (const std::string &input : options.inputs)
      if (input.starts_with(cat(state.input, "=")))
        return true;
  return false;
}

Status checkInputs(const std::vector<std::string> &inputs) {
  std::set<std::string> names;
  for (const std::string &input : inputs) {
    size_t equals = input.rfind('=');
    if (equals == input.npos || equals == 0)
      return usageError("--input ", input, ": expected name=file.npy");
    if (std::string name = input.substr(0, equals); !names.insert(name).second)
      return usageError("--input ", name, ": is given twice");
  }
  return {};
}

Failure giveInputs(Session &session, const std::string &plan,
                   const std::vector<std::string> &inputs) {
  for (const std::string &input : inputs) {
    size_t equals = input.rfind('=');
    const std::string name = input.substr(0, equals), path = input.substr(equals + 1);
    Result<NpyArray> array = readNpy(path);
    if (!array.ok())
      return {path, array.status()};
    NpyArray &a = array.value();
    for (const TensorInfo &t : session.plan.inputs)
      if (t.name == name)
        a.readAs(t.type);
    if (a.isBits)
      return {path, badInput("npy: its elements are bits of an unknown type, and input '", name,
                             "' needs numbers (save them as a type of numpy)")};
    if (Status status = session.setInput(name, {a.type, a.shape, a.bytes.data()}); !status.ok())
      return {plan, status};
  }
  return {};
}

static Status writeOutputs(Session &session, size_t count, const std::string &folder) {
  std::set<std::string> used;
  for (size_t i = 0; i < count; ++i) {
    Result<TensorView> output = session.output(i);
    if (!output.ok())
      return output.status();
    const TensorView &view = output.value();
    std::string name = fileName(session.outputName(i), i, used);
    if (Status status = writeNpy(folder + "/" + name, view.type, view.shape, view.data);
        !status.ok())
      return Status(status.code(), cat(name, ": ", status.message()));
  }
  return {};
}

/// Runs on the same inputs again, and prints what each run took.
static Status timeRuns(Session &session, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    auto start = std::chrono::steady_clock::now();
    if (Status status = session.run(); !status.ok())
      return status;
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    text += cat(i ? ", " : "", std::to_string(taken.count()));
  }
  std::printf("milliseconds [%s]\n", text.c_str());
  return {};
}

/// `previous` is replaced by what this run opened, and ends only when that is open.
static int run(const RunOptions &options, Opened &previous) {
  if (Status status = checkInputs(options.inputs); !status.ok())
    return fail("command line", status);
  {
    Result<Opened> opened = open(options);
    if (!opened.ok())
      return fail(options.plan, opened.status());
    std::swap(previous, opened.value());
  }
  Session &session = *previous.session;

  if (Failure failure = giveInputs(session, options.plan, options.inputs); !failure.status.ok())
    return fail(failure.file, failure.status);
  if (options.repeat > 0 && !session.plan.states.empty())
    return fail("command line", usageError("--repeat: a run of this model changes its states"));
  if (options.profile && options.repeat == 0)
    return fail("command line", usageError("--profile: needs --repeat with a number of runs"));
  bool withStates = givesStates(session.plan, options);
  if (Status status = session.run(); !status.ok())
    return fail(options.plan, status);

  std::vector<StepEvent> events;
  if (options.profile)
    session.timeSteps(&events);
  if (options.repeat > 0)
    if (Status status = timeRuns(session, options.repeat); !status.ok())
      return fail(options.plan, status);

  session.timeSteps(nullptr);
  if (options.profile) {
    const unsigned threads = options.threads ? options.threads : availableCores();
    StepProfile profile(session, events, size_t(options.repeat), 1, session.hostVisible() ? threads : 0);
    if (profile.empty())
      return fail(options.plan, deviceError("--profile: this device does not say what a step takes (use the CPU)"));
    profile.print(/*each=*/true, std::nullopt);
  }

  size_t outputs = withStates ? session.outputCount() : session.plan.outputs.size();
  const std::string &folder = options.outputFolder;
  if (folder.empty()) {
    for (size_t i = 0; i < outputs; ++i) {
      Result<TensorView> output = session.output(i);
      if (!output.ok())
        return fail(options.plan, output.status());
      std::printf("%s %s%s\n", printable(session.outputName(i)).c_str(),
                  elementName(output.value().type), shapeText(output.value().shape).c_str());
    }
    return finishOutput();
  }
  bool isNew = mkdir(folder.c_str(), 0777) == 0;
  if (!isNew && errno != EEXIST)
    return fail(folder, badInput("cannot be created (", std::strerror(errno), ")"));
  Status status = writeOutputs(session, outputs, folder);
  if (status.ok())
    return 0;
  if (isNew)
    rmdir(folder.c_str()); // unless outputs before this one are in it
  return fail(folder, status);
}

int run(const RunOptions &options) {
  Opened opened;
  return run(options, opened);
}

/// One line of a batch; false if it is none.
static bool readLine(const std::string &line, RunOptions &to) {
  auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("plan") || !json["plan"].is_string() ||
      !json.contains("output_dir") || !json["output_dir"].is_string() ||
      !json.contains("inputs") || !json["inputs"].is_object())
    return false;
  to.plan = json["plan"].get<std::string>();
  to.outputFolder = json["output_dir"].get<std::string>();
  if (to.outputFolder.empty()) // what is printed instead would stand between the statuses
    return false;
  for (auto &[name, path] : json["inputs"].items()) {
    if (!path.is_string())
      return false;
    to.inputs.push_back(cat(name, "=", path.get<std::string>()));
  }
  return true;
}

int batch(const PlanOptions &options) {
  Opened opened;
  for (std::string line; std::getline(std::cin, line);) {
    RunOptions one;
    static_cast<PlanOptions &>(one) = options;
    if (!readLine(line, one))
      return fail("standard input",
                  usageError("expected {\"plan\", \"inputs\", \"output_dir\"}, found '", line, "'"));
    int status = run(one, opened);
    std::printf("%d\n", status);
    std::fflush(stdout);
    if (status == int(Code::device)) // a GPU that failed once fails for the rest of the process
      return status;
  }
  return finishOutput();
}

} // namespace otf::exec
