# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the other scripts: where things are, and how builds use the compiler cache. One build warms the cache for
# a clone in another folder, because paths below the source root are cached as relative ones.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${OTF_BUILD_DIR:-$root/build}
python=$build/venv/bin/python
[ -x "$python" ] || python=python3 # before setup, and where a folder of built tools was brought alone
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 PYTHONDONTWRITEBYTECODE=1
export CCACHE_SLOPPINESS=pch_defines,time_macros # without these it does not cache what a precompiled header was used for
mkdir -p "$build"

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# NVRTC compiles CUDA kernels, also where there is no GPU. Tools look where the loader does and in /usr/local/cuda; a toolkit
# in another folder, or the library that setup put into the virtual environment, they are told of.
has_nvrtc() {
  [ -n "${OTF_NVRTC:-}" ] || ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so\.1[23]' ||
    compgen -G '/usr/local/cuda/lib*/libnvrtc.so.1[23]' >/dev/null
}
if ! has_nvrtc; then
  for found in "$build"/venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[23] /usr/local/cuda-*/lib*/libnvrtc.so.1[23]; do
    [ -e "$found" ] && export OTF_NVRTC=$found && break
  done
fi

# Configures once and builds the given targets, or everything.
build_otf() {
  [ -e "$build/build.ninja" ] || cmake -S "$root" -B "$build" -G Ninja \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >"$build/configure.log" 2>&1 ||
    { cat "$build/configure.log" >&2; die "cmake failed"; }
  ninja -C "$build" ${1+"$@"} >&2
}

# The SmolLM2-135M-Instruct folder of one element type and exporter: smollm2 f32|f16 [optimum|genai|opset23]. It appears
# under its name when it is complete.
smollm2() {
  local family=${2:-optimum} folder=$build/models/smollm2-$1
  [ "$family" = optimum ] || folder=$folder-$family
  if [ ! -e "$folder/config.json" ]; then
    say "making the SmolLM2-135M-Instruct ONNX folder ($1, $family)"
    rm -rf "$folder" "$folder.part"
    mkdir -p "$build/models"
    "$python" "$root/models/fetch_smollm2.py" --family "$family" --dtype "$1" --out "$folder.part" >&2 &&
      mv "$folder.part" "$folder" || die "the model folder could not be made"
  fi
  echo "$folder"
}
