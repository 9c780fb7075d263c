# SPDX-License-Identifier: Apache-2.0
#
# lit configuration: test files are those with a RUN line in a language of ours. Tools are named in full, so a test never
# runs another build's.
import os
import sys

import lit.formats

llvm_tools = "/usr/lib/llvm-22/bin"

config.name = "OTF"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.otf_binary_dir, "test")

for tool in ("otf-compile", "otf-exec", "otf-opt"):
    config.substitutions.append((r"\b%s\b" % tool, os.path.join(config.otf_binary_dir, "bin", tool)))
    if os.path.exists(os.path.join(config.otf_binary_dir, "bin", tool)):
        config.available_features.add(tool)
for tool in ("FileCheck", "split-file"):
    config.substitutions.append((r"\b%s\b" % tool, os.path.join(llvm_tools, tool)))
config.substitutions.append((r"%not\b", os.path.join(llvm_tools, "not")))

config.substitutions.append((r"%python\b", sys.executable))
config.substitutions.append((r"%llvm-tools\b", llvm_tools))

# The micro-kernels as bitcode.
kernels = os.path.join(config.otf_binary_dir, "lib/Codegen/CPU/kernels")
config.substitutions.append((r"%kernels\b", kernels))
if os.path.exists(os.path.join(kernels, "avx2.bc")):
    config.available_features.add("kernels")

# otf-opt reads weights and ONNX files only where the libraries for it were built.
for feature, library in (("weights", "lib/Compile"), ("raise", "passes/Raise")):
    if os.path.isdir(os.path.join(config.otf_binary_dir, library)):
        config.available_features.add(feature)

# Instruction sets of this machine that tests may ask for, and a GPU.
for feature in config.otf_cpu_features:
    if feature:
        config.available_features.add(feature)
if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda")
