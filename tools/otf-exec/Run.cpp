// SPDX-License-Identifier: Apache-2.0
//
// otf-exec run: arrays in, arrays out. Without a folder for them, outputs are summarised.
#include "tools/otf-exec/Common.h"

#include "runtime/Npy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace otf::exec {

using namespace runtime;

/// A name may hold anything, also what a file name may not.
static std::string fileName(std::string_view tensor) {
  std::string name(tensor);
  for (char &c : name)
    if (c == '/' || c == '\0')
      c = '_';
  return (name.empty() || name[0] == '.' ? "_" + name : name) + ".npy";
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

int run(const RunOptions &options) {
  Result<Opened> opened = open(options);
  if (!opened.ok())
    return fail(options.plan, opened.status());
  Session &session = *opened.value().session;

  for (const std::string &input : options.inputs) {
    size_t equals = input.rfind('=');
    if (equals == input.npos || equals == 0)
      return fail(options.plan, usageError("--input ", input, ": expected name=file.npy"));
    std::string name = input.substr(0, equals), path = input.substr(equals + 1);
    Result<NpyArray> array = readNpy(path);
    if (!array.ok())
      return fail(path, array.status());
    NpyArray &a = array.value();
    // numpy has no bf16; its bits come as u16.
    for (const TensorInfo &t : opened.value().plan->inputs)
      if (t.name == name && t.type == ElementType::bf16 && a.type == ElementType::u16)
        a.type = t.type;
    if (Status status = session.setInput(name, {a.type, a.shape, a.bytes.data()}); !status.ok())
      return fail(options.plan, status);
  }
  bool withStates = givesStates(*opened.value().plan, options);
  if (Status status = session.run(); !status.ok())
    return fail(options.plan, status);

  if (!options.outputFolder.empty() && mkdir(options.outputFolder.c_str(), 0777) != 0 &&
      errno != EEXIST)
    return fail(options.outputFolder, badInput("cannot be created (", std::strerror(errno), ")"));
  size_t outputs = withStates ? session.outputCount() : session.plan.outputs.size();
  for (size_t i = 0; i < outputs; ++i) {
    Result<TensorView> output = session.output(i);
    if (!output.ok())
      return fail(options.plan, output.status());
    const TensorView &view = output.value();
    std::string_view name = session.outputName(i);
    if (options.outputFolder.empty()) {
      std::printf("%.*s %s%s\n", int(name.size()), name.data(), elementName(view.type),
                  shapeText(view.shape).c_str());
      continue;
    }
    std::string path = options.outputFolder + "/" + fileName(name);
    if (Status status = writeNpy(path, view.type, view.shape, view.data); !status.ok())
      return fail(path, status);
  }
  return 0;
}

} // namespace otf::exec
