// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// One breach a section, in the order of the td files. Numbers are those of the rules in the descriptions there.

// expected-error@+1 {{#otf.dims has 1 sizes for 2 dynamic dimensions}}
func.func private @dims_count(tensor<?x?xf32, #otf.dims<"s">>)

// -----

// expected-error@+1 {{#otf.dims: "s / 2" is not a sum of products of symbols}}
func.func private @dims_text(tensor<?xf32, #otf.dims<"s / 2">>)

// -----

// expected-error@+1 {{#otf.dims: "s + b" is written "b + s"}}
func.func private @dims_canonical(tensor<?xf32, #otf.dims<"s + b">>)

// -----

// expected-error@+1 {{#otf.dims: "4" is a static dimension}}
func.func private @dims_constant(tensor<?xf32, #otf.dims<"4">>)

// -----

// expected-error@+1 {{a plain encoding has no group, got 32}}
func.func private @encoding_plain(!otf.matrix<8x32, #otf.encoding<f16, group = 32>>)

// -----

// expected-error@+1 {{group must be a multiple of 32, or 0 for a whole row, got 48}}
func.func private @encoding_group(!otf.matrix<8x32, #otf.encoding<int4, group = 48>>)

// -----

// expected-error@+1 {{outlier columns must ascend from 0, got 3 at place 1}}
"test.op"() {columns = #otf.outliers<[3, 3]>} : () -> ()

// -----

// expected-error@+1 {{file, offset and length of a blob are not negative, got 0, -4, 16}}
"test.op"() {blob = #otf.blob<file = 0, offset = -4, length = 16, type = f32>} : () -> ()

// -----

// expected-error@+1 {{elements of a blob are integers or floats, got 'index'}}
"test.op"() {blob = #otf.blob<file = 0, offset = 0, length = 16, type = index>} : () -> ()

// -----

// expected-error@+1 {{a matrix has two dimensions}}
func.func private @matrix_rank(!otf.matrix<8, #otf.encoding<f32>>)

// -----

// expected-error@+1 {{outliers must be from 0 to 32, got 33}}
func.func private @matrix_outliers(!otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 33>)

// -----

// expected-error@+1 {{a matrix has at most 2147483648 rows and columns, got 8x2147483649}}
func.func private @matrix_columns(!otf.matrix<8x2147483649, #otf.encoding<f32>>)

// -----

// expected-error@+1 {{a state has heads and width}}
func.func private @state_rank(!otf.state<3xf32>)

// -----

// expected-error@+1 {{must have a static shape}}
otf.weight @weight_shape : tensor<?xf32, #otf.dims<"s">> = #otf.blob<file = 0, offset = 0, length = 4, type = f32>

// -----

// otf.weight, rule 2
// expected-error@+1 {{only a matrix has an encoding, got 'tensor<4xf32>'}}
otf.weight @weight_vector : tensor<4xf32> = #otf.blob<file = 0, offset = 0, length = 16, type = f32>
    {encoding = #otf.encoding<f32>}

// -----

// expected-error@+1 {{has feedback, and no codes to choose}}
otf.weight @w : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32> {feedback = 0.01 : f64}

// -----

// expected-error@+1 {{feedback must be damped by a fraction above 0 and up to 1, got 2}}
otf.weight @w : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, feedback = 2.0 : f64}

// -----

// expected-error@+1 {{outlier column 32 is past the 32 columns}}
otf.weight @weight_outliers : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[1, 32]>}

// -----

// otf.weight, rule 1
// expected-error@+1 {{only a matrix has a scale, got 'tensor<4xf32>'}}
otf.weight @weight_rule_1 : tensor<4xf32> = #otf.blob<file = 0, offset = 0, length = 16, type = f32> {scale = @weight_rule_1}

// -----

// expected-error@+1 {{names no otf.weight as scale: @missing}}
otf.weight @weight_rule_1_name : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {scale = @missing}

// -----

// expected-error@+1 {{scale must have 32 elements, got 'tensor<8xf32>'}}
otf.weight @weight_rule_1_size : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {scale = @g}
otf.weight @g : tensor<8xf32> = #otf.blob<file = 0, offset = 0, length = 32, type = f32>

// -----

// expected-error@+1 {{a blob of 3, 3 elements of 'i4' has 5 bytes, got 4}}
otf.weight @weight_rule_3_packed : tensor<3x3xi8> = #otf.blob<file = 0, offset = 0, length = 4, type = i4>

// -----

// expected-error@+1 {{a blob of 8, 32 elements of 'f16' has 512 bytes, got 1024}}
otf.weight @weight_rule_3 : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f16>

// -----

func.func @use_of_nothing() {
  // expected-error@+1 {{names no otf.weight: @missing}}
  %0 = otf.use @missing : tensor<4xf32>
  return
}

// -----

otf.weight @w : tensor<4xf32> = #otf.blob<file = 0, offset = 0, length = 16, type = f32>
func.func @use_rule_1() {
  // expected-error@+1 {{expects 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %0 = otf.use @w : tensor<5xf32>
  return
}

// -----

otf.weight @w : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
func.func @use_rule_2() {
  // expected-error@+1 {{expects a matrix of 'tensor<8x32xf32>', got '!otf.matrix<32x8, #otf.encoding<f32>>'}}
  %0 = otf.use @w : !otf.matrix<32x8, #otf.encoding<f32>>
  return
}

// -----

func.func @state_of_nothing() {
  // expected-error@+1 {{names no otf.cache: @missing}}
  %0 = otf.state @missing : !otf.state<3x64xf32>
  return
}

// -----

func.func @size_text() {
  // expected-error@+1 {{"s / 2" is not a sum of products of symbols}}
  %0 = otf.size "s / 2"
  return
}

// -----

func.func @reshape_rule_1(%x: tensor<?x4xf32, #otf.dims<"s">>) {
  // expected-error@+1 {{must keep the number of elements, got 4*s and 5*s}}
  %0 = otf.reshape %x : tensor<?x4xf32, #otf.dims<"s">> -> tensor<?x5xf32, #otf.dims<"s">>
  return
}

// -----

func.func @linear_rule_1(%x: tensor<4x32xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>) {
  // expected-error@+1 {{input and result must agree but in the last dimension}}
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<5x8xf32>
  return
}

// -----

func.func @linear_rule_2(%x: tensor<4x31xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>) {
  // expected-error@+1 {{expects a last input dimension of 32, got 'tensor<4x31xf32>'}}
  %0 = otf.linear %x, %w : (tensor<4x31xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_rule_2_record(%x: tensor<4x32xi8>, %w: !otf.matrix<8x32, #otf.encoding<int4, group = 32>>) {
  // expected-error@+1 {{expects a last input dimension of 64, got 'tensor<4x32xi8>'}}
  %0 = otf.linear %x, %w : (tensor<4x32xi8>, !otf.matrix<8x32, #otf.encoding<int4, group = 32>>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_rule_3(%x: tensor<4x32xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>, %b: tensor<7xf32>) {
  // expected-error@+1 {{bias must have 8 elements, got 'tensor<7xf32>'}}
  %0 = otf.linear %x, %w bias %b : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>, tensor<7xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_rule_5_rank(%x: tensor<4x32xf32>, %w: !otf.matrix<8x96, #otf.encoding<f32>>) {
  // expected-error@+1 {{input and result of its window have rank 3 and one batch}}
  %0 = otf.linear %x, %w {window = #otf.window<[3] stride [1] dilation [1] before [1]>} : (tensor<4x32xf32>, !otf.matrix<8x96, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_rule_5_taps(%x: tensor<1x4x32xf32>, %w: !otf.matrix<8x97, #otf.encoding<f32>>) {
  // expected-error@+1 {{has windows of 3 taps that do not divide '!otf.matrix<8x97, #otf.encoding<f32>>'}}
  %0 = otf.linear %x, %w {window = #otf.window<[3] stride [1] dilation [1] before [1]>} : (tensor<1x4x32xf32>, !otf.matrix<8x97, #otf.encoding<f32>>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @linear_rule_5_records(%x: tensor<1x4x64xi8>, %w: !otf.matrix<8x72, #otf.encoding<int8, group = 32>>) {
  // expected-error@+1 {{into records}}
  %0 = otf.linear %x, %w {window = #otf.window<[3] stride [1] dilation [1] before [1]>} : (tensor<1x4x64xi8>, !otf.matrix<8x72, #otf.encoding<int8, group = 32>>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @linear_rule_5_channels(%x: tensor<1x4x31xf32>, %w: !otf.matrix<8x96, #otf.encoding<f32>>) {
  // expected-error@+1 {{expects a last input dimension of 32, got 'tensor<1x4x31xf32>'}}
  %0 = otf.linear %x, %w {window = #otf.window<[3] stride [1] dilation [1] before [1]>} : (tensor<1x4x31xf32>, !otf.matrix<8x96, #otf.encoding<f32>>) -> tensor<1x4x8xf32>
  return
}

// -----

// expected-error@+1 {{a window has from 1 to 3 axes, the same in every list, got 2, 1, 2 and 2}}
func.func private @window_rule_1_lists() attributes {w = #otf.window<[3, 3] stride [1] dilation [1, 1] before [1, 1]>}

// -----

// expected-error@+1 {{taps, strides and dilations of a window are positive}}
func.func private @window_rule_1_numbers() attributes {w = #otf.window<[3] stride [0] dilation [1] before [1]>}

// -----

func.func @linear_rule_4_arguments(%x: tensor<4x32xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>) {
  // expected-error@+1 {{the epilogue takes f32 and 2 indices}}
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32> epilogue {
  ^bb0(%sum: f32, %i: index):
    otf.yield %sum : f32
  }
  return
}

// -----

func.func @linear_rule_4_no_arguments(%x: tensor<4x32xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>, %c: f32) {
  // expected-error@+1 {{the epilogue takes f32 and 2 indices}}
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32> epilogue {
    otf.yield %c : f32
  }
  return
}

// -----

func.func @linear_rule_4_result(%x: tensor<4x32xf32>, %w: !otf.matrix<8x32, #otf.encoding<f32>>) {
  // expected-error@+1 {{the epilogue must yield 'f32'}}
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32> epilogue {
  ^bb0(%sum: f32, %i: index, %j: index):
    otf.yield %i : index
  }
  return
}

// -----

func.func @embedding_rule_1(%ids: tensor<4xi64>, %t: !otf.matrix<100x32, #otf.encoding<f32>>) {
  // expected-error@+1 {{expects 'tensor<4x32xf32>', got 'tensor<4x31xf32>'}}
  %0 = otf.embedding %ids, %t : (tensor<4xi64>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x31xf32>
  return
}

// -----

func.func @norm_kind(%x: tensor<4x32xf32>) {
  // expected-error@+1 {{must normalise: rms or layer}}
  %0 = otf.norm none %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return
}

// -----

func.func @norm_of_a_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{input must have a row, got 'tensor<f32>'}}
  %0 = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @norm_scale(%x: tensor<4x32xf32>, %g: tensor<4xf32>) {
  // expected-error@+1 {{scale must have 32 elements, got 'tensor<4xf32>'}}
  %0 = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<4xf32>) -> tensor<4x32xf32>
  return
}

// -----

func.func @prologue_rule_1(%x: tensor<4x32xf32>) {
  // expected-error@+1 {{expects records of 64 bytes, got 'tensor<4x48xi8>'}}
  %0 = otf.prologue none %x : (tensor<4x32xf32>) -> tensor<4x48xi8>
  return
}

// -----

func.func @prologue_rule_4(%x: tensor<4x32xf32>, %g: tensor<3xf32>) {
  // expected-error @+1 {{grid must be a scale and a zero point, got 'tensor<3xf32>'}}
  %0 = otf.prologue none %x grid %g : (tensor<4x32xf32>, tensor<3xf32>) -> tensor<4x64xi8>
  return
}

// -----

func.func @on_grid_rule_1(%x: tensor<4x32xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{grid must be a scale and a zero point, got 'tensor<f32>'}}
  %0 = otf.on_grid %x, %g : (tensor<4x32xf32>, tensor<f32>) -> tensor<4x32xf32>
  return
}

// -----

func.func @prologue_rule_2(%x: tensor<4x?xf32, #otf.dims<"k">>) {
  // expected-error@+1 {{input must have a static row of 1 to 2147483648 elements}}
  %0 = otf.prologue none %x : (tensor<4x?xf32, #otf.dims<"k">>) -> tensor<4x64xi8>
  return
}

// -----

func.func @prologue_rule_2_columns(%x: tensor<4x32xf32>, %w: !otf.matrix<8x64, #otf.encoding<int4, group = 32>, outliers = 1>) {
  // expected-error@+1 {{columns must be those of a matrix of 32}}
  %0 = otf.prologue none %x columns %w : (tensor<4x32xf32>, !otf.matrix<8x64, #otf.encoding<int4, group = 32>, outliers = 1>) -> tensor<4x64xi8>
  return
}

// -----

func.func @prologue_rule_3(%x: tensor<4x32xf32>, %g: tensor<32xf32>) {
  // expected-error@+1 {{has a scale or bias and no norm that they belong to}}
  %0 = otf.prologue none %x scale %g : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x64xi8>
  return
}

// -----

func.func @rope_rule_2(%x: tensor<1x4x5x16xf32>, %t: tensor<1x4x8xf32>) {
  // expected-error@+1 {{cos and sin must be [batch or 1, positions, rotated]}}
  %0 = otf.rope %x, %t, %t : (tensor<1x4x5x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @rope_rule_3(%x: tensor<1x4x5x16xf32>, %t: tensor<1x5x7xf32>) {
  // expected-error@+1 {{rotates an even width of at most 16, got 7}}
  %0 = otf.rope %x, %t, %t : (tensor<1x4x5x16xf32>, tensor<1x5x7xf32>, tensor<1x5x7xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @rope_rule_3_dynamic(%x: tensor<1x4x5x16xf32>, %t: tensor<1x5x?xf32, #otf.dims<"r">>) {
  // expected-error@+1 {{width and rotated width must be static}}
  %0 = otf.rope %x, %t, %t : (tensor<1x4x5x16xf32>, tensor<1x5x?xf32, #otf.dims<"r">>, tensor<1x5x?xf32, #otf.dims<"r">>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @observe_rule_1(%x: tensor<4x8xf32>, %r: tensor<1xi64>, %m: tensor<4x8xf64>, %h: tensor<4096xi64>, %p: tensor<36xf32>) {
  // expected-error@+1 {{expects rows of [1], moments of [5, 8] and a histogram of [4096], got 'tensor<1xi64>', 'tensor<4x8xf64>' and}}
  otf.observe %x into %r, %m, %h, %p : tensor<4x8xf32>, tensor<1xi64>, tensor<4x8xf64>, tensor<4096xi64>, tensor<36xf32>
  return
}

// -----

func.func @observe_rule_2(%x: tensor<4x8xf32>, %r: tensor<1xi64>, %m: tensor<5x8xf64>, %h: tensor<4096xi64>, %p: tensor<64xf32>) {
  // expected-error@+1 {{expects 36 products or none, got 'tensor<64xf32>'}}
  otf.observe %x into %r, %m, %h, %p : tensor<4x8xf32>, tensor<1xi64>, tensor<5x8xf64>, tensor<4096xi64>, tensor<64xf32>
  return
}

// -----

func.func @observe_rule_3(%x: tensor<4x8xf32>, %r: tensor<1xi64>, %m: tensor<5x8xf64>, %h: tensor<4096xi64>) {
  %p = arith.constant dense<0.0> : tensor<36xf32>
  // expected-error@+1 {{adds to memory that is no argument, or one of two statistics}}
  otf.observe %x into %r, %m, %h, %p : tensor<4x8xf32>, tensor<1xi64>, tensor<5x8xf64>, tensor<4096xi64>, tensor<36xf32>
  return
}

// -----

func.func @append_heads(%past: !otf.state<2x16xf32>, %x: tensor<1x3x5x16xf32>) {
  // expected-error@+1 {{cannot append 'tensor<1x3x5x16xf32>' to '!otf.state<2x16xf32>'}}
  %0 = otf.append %past, %x : (!otf.state<2x16xf32>, tensor<1x3x5x16xf32>) -> !otf.state<2x16xf32>
  return
}

// -----

func.func @read_rule_1(%s: !otf.state<2x16xf32>) {
  // expected-error@+1 {{cannot read '!otf.state<2x16xf32>' as 'tensor<1x3x5x16xf32>'}}
  %0 = otf.read %s : (!otf.state<2x16xf32>) -> tensor<1x3x5x16xf32>
  return
}

// -----

func.func @append_rule_1(%past: !otf.state<2x16xf32>, %x: tensor<1x2x5x16xf32>, %at: tensor<2xi64>) {
  // expected-error@+1 {{at must have one element for each batch entry}}
  %0 = otf.append %past, %x at %at : (!otf.state<2x16xf32>, tensor<1x2x5x16xf32>, tensor<2xi64>) -> !otf.state<2x16xf32>
  return
}

// -----

func.func @attention_rule_6(%q: tensor<1x4x5x16xf32>, %k: !otf.state<2x16xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{sink must have 4 elements, got 'tensor<2xf32>'}}
  %0 = otf.attention %q, %k, %k sink %s {scale = 1.0 : f32}
      : (tensor<1x4x5x16xf32>, !otf.state<2x16xf32>, !otf.state<2x16xf32>, tensor<2xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_2_sharing(%q: tensor<1x3x5x16xf32>, %k: !otf.state<2x16xf32>) {
  // expected-error@+1 {{3 query heads cannot share 2 heads}}
  %0 = otf.attention %q, %k, %k {scale = 1.0 : f32}
      : (tensor<1x3x5x16xf32>, !otf.state<2x16xf32>, !otf.state<2x16xf32>) -> tensor<1x3x5x16xf32>
  return
}

// -----

func.func @attention_rule_1(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x16xf32>, %v: tensor<1x4x6x16xf32>) {
  // expected-error@+1 {{key and value must have the query's batch and one length}}
  %0 = otf.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x4x6x16xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_1_batch(%q: tensor<1x4x5x16xf32>, %k: tensor<2x4x5x16xf32>, %v: tensor<2x4x5x16xf32>) {
  // expected-error@+1 {{key and value must have the query's batch and one length}}
  %0 = otf.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_2(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x16xf32>, %v: tensor<1x2x5x16xf32>) {
  // expected-error@+1 {{key and value must have equally many heads, got 4 and 2}}
  %0 = otf.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x2x5x16xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_3(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x8xf32>, %v: tensor<1x4x5x16xf32>) {
  // expected-error@+1 {{key and query must have one width, got 8 and 16}}
  %0 = otf.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_4(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x16xf32>, %v: tensor<1x4x5x16xf32>, %m: tensor<1x2x5x5xi1>) {
  // expected-error@+1 {{mask must be [1 or 1, 4 or 1, 5 or 1, 5], got 'tensor<1x2x5x5xi1>'}}
  %0 = otf.attention %q, %k, %v mask %m {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x2x5x5xi1>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_4_keys(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x16xf32>, %v: tensor<1x4x5x16xf32>, %m: tensor<1x1x5x1xi1>) {
  // expected-error@+1 {{mask must be [1 or 1, 4 or 1, 5 or 1, 5], got 'tensor<1x1x5x1xi1>'}}
  %0 = otf.attention %q, %k, %v mask %m {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x1x5x1xi1>) -> tensor<1x4x5x16xf32>
  return
}

// -----

func.func @attention_rule_5(%q: tensor<1x4x5x16xf32>, %k: tensor<1x4x5x16xf32>, %v: tensor<1x4x5x8xf32>) {
  // expected-error@+1 {{expects 'tensor<1x4x5x8xf32>', got 'tensor<1x4x5x16xf32>'}}
  %0 = otf.attention %q, %k, %v {scale = 1.0 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x5x16xf32>
  return
}

// -----

// expected-error@+1 {{must end in plan.return}}
plan.kernel @kernel_end(%x: tensor<4xf32>) {
  %0 = otf.size "4"
}

// -----

plan.kernel @kernel_results(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{must give 'tensor<5xf32>', got 'tensor<4xf32>'}}
  plan.return %x : tensor<4xf32>
}

// -----

func.func @call_of_nothing(%x: tensor<4xf32>) {
  // expected-error@+1 {{names no plan.kernel: @missing}}
  %0 = plan.call @missing(%x) sizes [] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

plan.kernel @norm_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.return %y : tensor<4xf32>
}
func.func @launch_operands() {
  %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
  // expected-error@+1 {{@norm_0 takes 1 and gives 1, got 1 and 0}}
  plan.launch @norm_0(%x) outs() sizes [] : (!plan.buffer<tensor<4xf32>>)
  return
}

// -----

plan.kernel @norm_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.return %y : tensor<4xf32>
}
func.func @launch_rule_1_element() {
  %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
  %y = plan.output "y" : !plan.buffer<tensor<4xf16>>
  // expected-error@+1 {{operand #1 must hold 'tensor<4xf32>', got 'tensor<4xf16>'}}
  plan.launch @norm_0(%x) outs(%y) sizes [] : (!plan.buffer<tensor<4xf32>>) outs(!plan.buffer<tensor<4xf16>>)
  return
}

// -----

plan.kernel @norm_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.return %y : tensor<4xf32>
}
func.func @launch_rule_1_rank() {
  %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
  %y = plan.output "y" : !plan.buffer<tensor<1x4xf32>>
  // expected-error@+1 {{operand #1 must hold 'tensor<4xf32>', got 'tensor<1x4xf32>'}}
  plan.launch @norm_0(%x) outs(%y) sizes [] : (!plan.buffer<tensor<4xf32>>) outs(!plan.buffer<tensor<1x4xf32>>)
  return
}

// -----

plan.kernel @norm_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.return %y : tensor<4xf32>
}
func.func @launch_rule_1_extent() {
  %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
  %y = plan.output "y" : !plan.buffer<tensor<5xf32>>
  // expected-error@+1 {{operand #1 must hold 'tensor<4xf32>', got 'tensor<5xf32>'}}
  plan.launch @norm_0(%x) outs(%y) sizes [] : (!plan.buffer<tensor<4xf32>>) outs(!plan.buffer<tensor<5xf32>>)
  return
}

// -----

func.func @bind_rule_1_count(%n: tensor<2xi64>) {
  // expected-error@+1 {{must have a value for each of 1 symbols, got 'tensor<2xi64>'}}
  otf.bind %n ["a"] : tensor<2xi64>
  return
}

// -----

func.func @bind_rule_2_reserved(%n: tensor<1xi64>) {
  // expected-error@+1 {{cannot bind "past"}}
  otf.bind %n ["past"] : tensor<1xi64>
  return
}

// -----

func.func @bind_rule_2_twice(%n: tensor<2xi64>) {
  // expected-error@+1 {{cannot bind "a" twice}}
  otf.bind %n ["a", "a"] : tensor<2xi64>
  return
}

// -----

func.func @compute_rule_1() {
  // expected-error@+1 {{extent "b / 2" is not a sum of products of symbols}}
  %y = otf.compute "b / 2" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf32>):
  }
  return
}

// -----

func.func @compute_rule_2_count() {
  // expected-error@+1 {{body must take an index and 1 handles, got 'index'}}
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index):
  }
  return
}

// -----

func.func @compute_rule_2_type() {
  // expected-error@+1 {{handle of 'tensor<4xf32>' must be 'memref<4xf32>', got 'memref<4xf64>'}}
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf64>):
  }
  return
}

// -----

func.func @compute_rule_3_store(%other: memref<4xf32>) {
  %c = arith.constant 1.0 : f32
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf32>):
    // expected-error@+1 {{must store to a handle of its otf.compute}}
    memref.store %c, %other[%i] : memref<4xf32>
  }
  return
}

// -----

func.func @compute_rule_3_load(%other: memref<4xf32>) {
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf32>):
    // expected-error@+1 {{must load from a handle of its otf.compute}}
    %v = memref.load %other[%i] : memref<4xf32>
  }
  return
}

// -----

func.func @compute_rule_3_use() {
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf32>):
    // expected-error@+1 {{cannot use a handle; only memref.load and memref.store can}}
    %v = memref.cast %out : memref<4xf32> to memref<?xf32>
  }
  return
}

// -----

func.func @compute_rule_4(%x: tensor<4xf32>) {
  %y = otf.compute "4" : tensor<4xf32> {
  ^bb0(%i: index, %out: memref<4xf32>):
    // expected-error@+1 {{cannot be part of an otf.compute}}
    %v = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  }
  return
}

// -----

// expected-error @+1 {{the block of a rotation must be a power of two of at most 8192, got block 48 and factor 1}}
func.func private @rotation_rule_1() attributes {r = #otf.rotation<block = 48>}

// -----

// expected-error @+1 {{the factor of a rotation must be from 1 to 63, got block 2 and factor 64}}
func.func private @rotation_rule_1_factor() attributes {r = #otf.rotation<block = 2, factor = 64>}

// -----

// expected-error @+1 {{a rotation takes at most 11264 columns together, got block 8192 and factor 3}}
func.func private @rotation_rule_1_segment() attributes {r = #otf.rotation<block = 8192, factor = 3>}

// -----

// expected-error @+1 {{rotates segments of 64 columns, which do not divide a row of 96}}
otf.weight @weight_rule_7 : tensor<8x96xf32> = #otf.blob<file = 0, offset = 0, length = 3072, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, rotation = #otf.rotation<block = 64>}

// -----

// expected-error @+1 {{has a rotation and outlier columns, which it would mix into the others (choose one of both)}}
otf.weight @weight_rule_7_outliers : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[1]>, rotation = #otf.rotation<block = 64>}

// -----

// expected-error @+1 {{only a matrix has a rotation, got 'tensor<64xf32>'}}
otf.weight @weight_rule_7_vector : tensor<64xf32> = #otf.blob<file = 0, offset = 0, length = 256, type = f32> {rotation = #otf.rotation<block = 64>}

// -----

// expected-error @+1 {{has a joint fit, which only ternary_sign knows}}
otf.weight @weight_rule_8 : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, joint_fit}

// -----

func.func @rotate_rule_1(%x: tensor<4x96xf32>) {
  // expected-error @+1 {{rotates segments of 64 columns, which do not divide a row of 96}}
  %0 = otf.rotate %x by <block = 64> : tensor<4x96xf32>
  return
}

// -----

func.func @rotate_rule_1_dynamic(%x: tensor<4x?xf32, #otf.dims<"k">>) {
  // expected-error @+1 {{rotates segments of 64 columns, which do not divide a row of unknown length}}
  %0 = otf.rotate %x by <block = 64> : tensor<4x?xf32, #otf.dims<"k">>
  return
}

// -----

func.func @prologue_rule_5(%x: tensor<4x32xf32>, %g: tensor<2xf32>) {
  // expected-error @+1 {{has a rotation and a grid, which it leaves}}
  %0 = otf.prologue none %x grid %g by <block = 32> : (tensor<4x32xf32>, tensor<2xf32>) -> tensor<4x64xi8>
  return
}

// -----

func.func @prologue_rule_5_segment(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{rotates segments of 64 columns, which do not divide a row of 32}}
  %0 = otf.prologue none %x by <block = 64> : (tensor<4x32xf32>) -> tensor<4x64xi8>
  return
}
