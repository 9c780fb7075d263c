# SPDX-License-Identifier: Apache-2.0
# LLVM, MLIR and lld 22 as static archives.
#
# Debian builds them with LLVM_LINK_LLVM_DYLIB, so every archive's link interface names libLLVM.so as well; linked as it
# is, a program holds two copies of LLVM. The loop takes the shared libraries out again, and with them z3, libedit and curl,
# which nothing here uses.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-22)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
foreach(target IN LISTS MLIR_EXPORTED_TARGETS LLD_EXPORTED_TARGETS LLVM_AVAILABLE_LIBS)
  if(TARGET ${target})
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    if(libraries)
      list(FILTER libraries EXCLUDE REGEX "^([$]<LINK_ONLY:)?(LLVM|MLIR)>?$")
      list(FILTER libraries EXCLUDE REGEX "libz3|LibEdit|CURL|LibXml2|^Polly")
      list(TRANSFORM libraries REPLACE "zstd::libzstd_shared" "libzstd.a")
      list(TRANSFORM libraries REPLACE "ZLIB::ZLIB" "libz.a")
      set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
    endif()
  endif()
endforeach()

# lld initialises every target that LLVM was built with; ours are X86 and (for nothing but its absence) no other. Empty
# functions for the rest keep 40 MB of code generators out of the binary.
set(stub "#include \"llvm/Plugins/PassPlugin.h\"\nllvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }\nextern \"C\" {\n")
foreach(target IN LISTS LLVM_TARGETS_TO_BUILD)
  if(NOT target STREQUAL "X86")
    foreach(part Target TargetInfo TargetMC AsmPrinter AsmParser Disassembler)
      string(APPEND stub "void LLVMInitialize${target}${part}() {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/llvm_stubs.cpp CONTENT "${stub}}\n" @ONLY)

include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})

# Reading MLIR's headers takes longer than compiling what stands behind them, so they are precompiled once for the targets
# that otf_reuse_mlir_headers() names. OTF_PCH=OFF finds sources that leave out a header.
option(OTF_PCH "precompile MLIR's headers" ON)
if(OTF_PCH)
  set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/mlir_headers.cpp CONTENT "" @ONLY)
  add_library(otf_mlir_headers OBJECT ${CMAKE_BINARY_DIR}/mlir_headers.cpp)
  target_precompile_headers(otf_mlir_headers PRIVATE ${CMAKE_CURRENT_LIST_DIR}/mlir.h)
  target_compile_options(otf_mlir_headers PRIVATE "SHELL:-Xclang -fno-pch-timestamp") # or ccache never finds it again
endif()
function(otf_reuse_mlir_headers)
  if(OTF_PCH)
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM otf_mlir_headers)
    endforeach()
  endif()
endfunction()
