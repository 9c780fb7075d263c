// SPDX-License-Identifier: Apache-2.0
//
// Names come from locations: the importer gives each node and initializer its own. Notes that say
// where else are for compiler developers and are left out.

#include "lib/Compile/ErrorPrinter.h"

#include "lib/Compile/PlanAssembly.h"

#include <cstdio>

using namespace mlir;

namespace otf {

ErrorPrinter::ErrorPrinter(MLIRContext &context, Progress &progress)
    : progress(progress),
      handler(&context, [this](Diagnostic &diagnostic) { return handle(diagnostic); }) {}

void ErrorPrinter::line(const char *kind, std::string text) {
  progress.clear();
  for (char &c : text) // one line, whatever names hold
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  std::fprintf(stderr, "%s: %s\n", kind, text.c_str());
}

void ErrorPrinter::flush() {
  constexpr size_t kMost = 12;
  struct Problem {
    std::string what;
    std::vector<std::string> places;
  };
  std::vector<Problem> problems;
  size_t untold = 0;
  std::string prefix = file + ": ";
  bool inFile = false;
  for (llvm::StringRef message : messages) {
    if (!file.empty() && message.consume_front(prefix))
      inFile = true;
    auto [place, what] = message.split(": ");
    if (what.empty())
      std::swap(place, what);
    auto same = llvm::find_if(problems, [&, what = what](const Problem &p) { return p.what == what; });
    if (same == problems.end() && problems.size() == kMost) {
      ++untold;
      continue;
    }
    if (same == problems.end())
      same = problems.insert(same, Problem{what.str(), {}});
    if (!place.empty() && !llvm::is_contained(same->places, place))
      same->places.push_back(place.str());
  }
  messages.clear();
  if (problems.empty())
    return;
  std::string text = inFile ? prefix : "";
  for (const Problem &problem : problems) {
    text += &problem == &problems.front() ? "" : "; ";
    size_t told = std::min(problem.places.size(), kMost);
    for (size_t i = 0; i != told; ++i)
      text += (i ? ", " : "") + problem.places[i];
    if (told != problem.places.size())
      text += " and " + std::to_string(problem.places.size() - told) + " more";
    text += (told ? ": " : "") + problem.what;
  }
  if (untold)
    text += "; and " + std::to_string(untold) + " more";
  line("error", text);
}

LogicalResult ErrorPrinter::handle(Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error && diagnostic.getSeverity() != DiagnosticSeverity::Warning)
    return success();
  std::string message = diagnostic.str();
  if (!file.empty() && !llvm::StringRef(message).starts_with(file + ": ")) {
    std::string node = labelOf(diagnostic.getLocation());
    if (!node.empty() && node != file) // a module is called as its file is
      message = node + ": " + message;
    message = file + ": " + message;
  }
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
    if (!dropped)
      line("warning", message);
  } else {
    print(message);
  }
  return success();
}

} // namespace otf
