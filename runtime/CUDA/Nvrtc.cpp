// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/Nvrtc.h"

#include <charconv>
#include <cstdlib>
#include <dlfcn.h>

namespace otf::runtime {

// The few declarations of nvrtc.h that are used; its C interface has not changed since CUDA 11.
struct Nvrtc::Functions {
  using Program = struct NvrtcProgram *;
  const char *(*getErrorString)(int);
  int (*version)(int *, int *);
  int (*createProgram)(Program *, const char *, const char *, int, const char *const *,
                       const char *const *);
  int (*destroyProgram)(Program *);
  int (*compileProgram)(Program, int, const char *const *);
  int (*getProgramLogSize)(Program, size_t *);
  int (*getProgramLog)(Program, char *);
  int (*getCUBINSize)(Program, size_t *);
  int (*getCUBIN)(Program, char *);
  int (*getNumSupportedArchs)(int *);
  int (*getSupportedArchs)(int *);
};

namespace {

// -default-device: every function is device code. No fast-math: the CPU and the GPU agree to
// rounding, and the kernels are not bound by the functions it replaces. No contraction: what feeds
// int8 activations has the CPU's bits, and fma stands in the source where it is meant.
constexpr const char *kFixedOptions[] = {"--std=c++17", "-default-device", "--fmad=false",
                                         "--ptxas-options=-v", "-diag-suppress=177"};

unsigned numberBefore(std::string_view text, std::string_view what) {
  size_t at = text.find(what);
  if (at == text.npos)
    return 0;
  size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
    --begin;
  unsigned value = 0;
  std::from_chars(text.data() + begin, text.data() + at, value);
  return value;
}

} // namespace

std::vector<KernelUsage> parseUsage(std::string_view log) {
  std::vector<KernelUsage> kernels;
  while (!log.empty()) {
    size_t end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log = end == log.npos ? std::string_view() : log.substr(end + 1);
    constexpr std::string_view entry = "Compiling entry function '";
    if (size_t at = line.find(entry); at != line.npos) {
      std::string_view name = line.substr(at + entry.size());
      kernels.push_back({std::string(name.substr(0, name.find('\'')))});
    } else if (kernels.empty()) {
      continue;
    } else if (line.find(" bytes spill stores") != line.npos) {
      kernels.back().stack = numberBefore(line, " bytes stack frame");
      kernels.back().spillStores = numberBefore(line, " bytes spill stores");
      kernels.back().spillLoads = numberBefore(line, " bytes spill loads");
    } else if (line.find(" registers") != line.npos) {
      kernels.back().registers = numberBefore(line, " registers");
      kernels.back().shared = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

std::span<const char *const> Nvrtc::fixedOptions() { return kFixedOptions; }

Nvrtc::~Nvrtc() {
  if (library)
    dlclose(library);
}

Result<std::unique_ptr<Nvrtc>> Nvrtc::open(std::string_view directory) {
  std::vector<std::string> names;
  if (const char *named = std::getenv("OTF_NVRTC"); named && *named) {
    names.push_back(named); // and nothing else: a wrong name should be noticed
  } else {
    const char *const versions[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    std::vector<std::string> directories = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
    if (!directory.empty())
      directories.insert(directories.begin(), cat(directory, "/"));
    for (const std::string &d : directories)
      for (const char *v : versions)
        names.push_back(d + v);
  }
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc);
  for (const std::string &name : names)
    if ((nvrtc->library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)))
      break;
  if (!nvrtc->library) {
    const char *why = dlerror();
    return deviceError("NVRTC: cannot be loaded (", why ? why : "no reason given",
                       "; set OTF_NVRTC to libnvrtc.so.13 or .12)");
  }

  nvrtc->functions = std::make_unique<Functions>();
  Functions &f = *nvrtc->functions;
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(nvrtc->library, name));
    if (!function)
      missing = name;
  };
  find(f.getErrorString, "nvrtcGetErrorString");
  find(f.version, "nvrtcVersion");
  find(f.createProgram, "nvrtcCreateProgram");
  find(f.destroyProgram, "nvrtcDestroyProgram");
  find(f.compileProgram, "nvrtcCompileProgram");
  find(f.getProgramLogSize, "nvrtcGetProgramLogSize");
  find(f.getProgramLog, "nvrtcGetProgramLog");
  find(f.getCUBINSize, "nvrtcGetCUBINSize");
  find(f.getCUBIN, "nvrtcGetCUBIN");
  find(f.getNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  find(f.getSupportedArchs, "nvrtcGetSupportedArchs");
  if (missing)
    return deviceError("NVRTC: the library has no ", missing, " (version 12 or 13 is needed)");

  int count = 0;
  if (f.version(&nvrtc->major_, &nvrtc->minor_) != 0 || f.getNumSupportedArchs(&count) != 0)
    return deviceError("NVRTC: the library does not answer (is its installation complete?)");
  nvrtc->architectures_.resize(size_t(count));
  if (count && f.getSupportedArchs(nvrtc->architectures_.data()) != 0)
    return deviceError("NVRTC: the library does not answer (is its installation complete?)");
  return nvrtc;
}

Result<CudaBinary> Nvrtc::compile(const std::string &source, std::string_view architecture,
                                  std::span<const std::string> options) const {
  const Functions &f = *functions;
  const std::string target = cat("--gpu-architecture=", architecture);
  std::vector<const char *> arguments(std::begin(kFixedOptions), std::end(kFixedOptions));
  arguments.push_back(target.c_str());
  for (const std::string &option : options)
    arguments.push_back(option.c_str());

  struct Owner { // destroys the program on every way out
    const Functions &f;
    Functions::Program program = nullptr;
    ~Owner() {
      if (program)
        f.destroyProgram(&program);
    }
  } owner{f};
  auto failure = [&](int code, const char *call, const std::string &log) {
    return deviceError("NVRTC ", major_, ".", minor_, ", ", architecture, ": ", call, ": ",
                       f.getErrorString(code), log.empty() ? "" : "\n", log);
  };
  if (int code = f.createProgram(&owner.program, source.c_str(), "kernels.cu", 0, nullptr, nullptr))
    return failure(code, "nvrtcCreateProgram", "");
  const int compiled = f.compileProgram(owner.program, int(arguments.size()), arguments.data());

  CudaBinary binary;
  size_t size = 0;
  if (f.getProgramLogSize(owner.program, &size) == 0 && size > 1) {
    binary.log.resize(size);
    if (f.getProgramLog(owner.program, binary.log.data()) != 0)
      binary.log.clear();
    while (!binary.log.empty() && (binary.log.back() == '\0' || binary.log.back() == '\n'))
      binary.log.pop_back();
  }
  if (compiled)
    return failure(compiled, "nvrtcCompileProgram", binary.log);
  if (int code = f.getCUBINSize(owner.program, &size))
    return failure(code, "nvrtcGetCUBINSize", binary.log);
  binary.cubin.resize(size);
  if (int code = f.getCUBIN(owner.program, binary.cubin.data()))
    return failure(code, "nvrtcGetCUBIN", binary.log);
  binary.kernels = parseUsage(binary.log);
  return binary;
}

} // namespace otf::runtime
