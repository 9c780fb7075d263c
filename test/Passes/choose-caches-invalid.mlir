// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-caches=type=int8 --split-input-file --verify-diagnostics

// expected-error @below {{the model has no cache of keys and values to hold as int8 (leave "cache" out of the recipe)}}
module {
}

// -----

otf.cache @key : !otf.state<3x64xf32> {input = "past.key", output = "present.key"}
func.func @read(%x: tensor<1x3x?x64xf32, #otf.dims<"s">>) -> tensor<1x3x?x64xf32, #otf.dims<"past + s">> {
  %k0 = otf.state @key : !otf.state<3x64xf32>
  %k = otf.append %k0, %x : (!otf.state<3x64xf32>, tensor<1x3x?x64xf32, #otf.dims<"s">>) -> !otf.state<3x64xf32>
  // expected-error @below {{reads cache @key outside attention, so the cache cannot be held as int8 (leave "cache" out of the recipe)}}
  %t = otf.read %k : (!otf.state<3x64xf32>) -> tensor<1x3x?x64xf32, #otf.dims<"past + s">>
  return %t : tensor<1x3x?x64xf32, #otf.dims<"past + s">>
}

// -----

otf.cache @key : !otf.state<3x64xf32> {input = "past.key", output = "present.key"}
func.func @beside(%q: tensor<1x9x?x64xf32, #otf.dims<"s">>, %v: tensor<1x3x?x64xf32, #otf.dims<"t">>) -> tensor<1x9x?x64xf32, #otf.dims<"s">> {
  %k = otf.state @key : !otf.state<3x64xf32>
  // expected-error @below {{reads cache @key beside keys or values that are in none, so the cache cannot be held as int8}}
  %y = otf.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<1x9x?x64xf32, #otf.dims<"s">>, !otf.state<3x64xf32>, tensor<1x3x?x64xf32, #otf.dims<"t">>) -> tensor<1x9x?x64xf32, #otf.dims<"s">>
  return %y : tensor<1x9x?x64xf32, #otf.dims<"s">>
}
