# SPDX-License-Identifier: Apache-2.0
# Sources and flags of the micro-kernels, for the bitcode and for native builds of the same code
# (tests, benchmarks).
set(OTF_KERNEL_DIR ${CMAKE_CURRENT_LIST_DIR})
set(OTF_KERNEL_SOURCES
  Append.cpp Attention.cpp Math.cpp Norm.cpp Observe.cpp Record.cpp Rope.cpp Rotate.cpp Row.cpp
  TileCodebook2.cpp TileFloat.cpp TileInt4.cpp TileInt8.cpp TilePlain.cpp
  TilePlanes.cpp TileTernarySign.cpp Window.cpp)
set(OTF_KERNEL_LEVELS avx2 avx512vnni)
set(OTF_KERNEL_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(OTF_KERNEL_FLAGS_avx512vnni ${OTF_KERNEL_FLAGS_avx2}
  -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=256)
# No tables for unwinding and no stack protector: a kernel calls nothing that could need them. No
# loops turned into calls of memcpy and memset either. No multiplication and addition becomes one
# instruction by itself: the arithmetic is canonical (docs/Architecture.md), and says fma where it is.
set(OTF_KERNEL_FLAGS -std=c++20 -O2 -Wall -Wextra -fno-exceptions -fno-rtti -fno-math-errno
  -ffp-contract=off
  -fomit-frame-pointer -fno-stack-protector -fno-asynchronous-unwind-tables
  -fno-threadsafe-statics -fPIC)
set(OTF_KERNEL_LLVM_FLAGS
  -mllvm -disable-loop-idiom-memcpy -mllvm -disable-loop-idiom-memset)

# A library of native code for one level: otf_native_kernels(<target> <MODULE|STATIC> <level>)
function(otf_native_kernels target type level)
  list(TRANSFORM OTF_KERNEL_SOURCES PREPEND ${OTF_KERNEL_DIR}/ OUTPUT_VARIABLE sources)
  add_library(${target} ${type} ${sources})
  target_include_directories(${target} PUBLIC ${OTF_KERNEL_DIR}
    PRIVATE ${OTF_KERNEL_DIR}/../../..)
  target_compile_options(${target} PRIVATE ${OTF_KERNEL_FLAGS} ${OTF_KERNEL_FLAGS_${level}})
endfunction()
