# SPDX-License-Identifier: Apache-2.0
# `otf_schema` is for whoever includes include/otf/plan_generated.h, the C++ header of plan.fbs.
if(NOT TARGET otf_plan_schema) # a build of the runtime alone
  add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/../../include/otf ${CMAKE_BINARY_DIR}/include/otf)
endif()
if(NOT TARGET otf_schema)
  add_library(otf_schema INTERFACE)
  add_dependencies(otf_schema otf_plan_schema)
  target_include_directories(otf_schema INTERFACE ${CMAKE_BINARY_DIR})
endif()
