# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ file that defines `const char NAME[]` as the text of FILES, one after another. Raw string
# literals are cut at 8000 bytes: compilers need not take longer ones. A line number for NVRTC's messages follows.
set(body "")
foreach(file IN LISTS FILES)
  file(READ "${file}" text)
  get_filename_component(base "${file}" NAME)
  string(APPEND body "#line 1 \"${base}\"\n${text}")
endforeach()
string(LENGTH "${body}" length)
set(literals "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${body}" ${at} 8000 piece)
  string(APPEND literals "R\"otf~(${piece})otf~\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE "${OUTPUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = ${literals};\n")
