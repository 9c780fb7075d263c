// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-caches --split-input-file | FileCheck %s --check-prefix=CHOSEN
// RUN: otf-opt %s --otf-choose-caches=type=int8 --otf-encode-caches --split-input-file | FileCheck %s --check-prefix=INT8
// RUN: otf-opt %s --otf-encode-caches --split-input-file | FileCheck %s --check-prefix=ALONE
// RUN: %not otf-opt %s --otf-choose-caches=type=f32 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: otf-choose-caches: type must be f16 or int8, got "f32"

// CHOSEN: otf.cache @key : !otf.state<3x64xf32> {input = "past.key", otf.held = f16, output = "present.key"}
// CHOSEN: otf.append {{.*}} -> !otf.state<3x64xf32>
// INT8: otf.cache @key : !otf.state<3x64xi8> {input = "past.key", output = "present.key"}
// INT8: otf.state @key : <3x64xi8>
// INT8: otf.append {{.*}} -> !otf.state<3x64xi8>
// INT8: otf.attention {{.*}}, !otf.state<3x64xi8>, !otf.state<3x64xi8>) ->
// What nothing was decided for stays.
// ALONE: otf.cache @key : !otf.state<3x64xf32>
otf.cache @key : !otf.state<3x64xf32> {input = "past.key", output = "present.key"}
otf.cache @value : !otf.state<3x64xf32> {input = "past.value", output = "present.value"}
func.func @main(%q: tensor<1x9x?x64xf32, #otf.dims<"s">>, %x: tensor<1x3x?x64xf32, #otf.dims<"s">>) -> tensor<1x9x?x64xf32, #otf.dims<"s">> {
  %k0 = otf.state @key : !otf.state<3x64xf32>
  %v0 = otf.state @value : !otf.state<3x64xf32>
  %k = otf.append %k0, %x : (!otf.state<3x64xf32>, tensor<1x3x?x64xf32, #otf.dims<"s">>) -> !otf.state<3x64xf32>
  %v = otf.append %v0, %x : (!otf.state<3x64xf32>, tensor<1x3x?x64xf32, #otf.dims<"s">>) -> !otf.state<3x64xf32>
  %y = otf.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x9x?x64xf32, #otf.dims<"s">>, !otf.state<3x64xf32>, !otf.state<3x64xf32>) -> tensor<1x9x?x64xf32, #otf.dims<"s">>
  return %y : tensor<1x9x?x64xf32, #otf.dims<"s">>
}
