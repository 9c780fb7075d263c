// SPDX-License-Identifier: Apache-2.0
//
// One module for each rule of the onnx dialect; the rules are numbered in ONNXDialect.td and ONNXOps.td.

// RUN: otf-opt %s --split-input-file --verify-diagnostics

// Blob, rule 1.
// expected-error@+1 {{blob expects numbers that are not negative}}
onnx.initializer @negative_offset = #onnx.blob<file = 0, offset = -1, length = 4, type = 1>

// -----

// Blob, rule 1.
// expected-error@+1 {{blob expects numbers that are not negative}}
onnx.initializer @negative_size = #onnx.blob<file = 0, offset = 0, length = 4, type = 1, dims = [-1]>

// -----

// expected-error@+1 {{blob's offset + length overflows}}
onnx.initializer @end_overflows = #onnx.blob<file = 0, offset = 9223372036854775807, length = 4, type = 1>

// -----

// Blob, rule 2.
// expected-error@+1 {{blob of type float expects 16 bytes but has a length of 15}}
onnx.initializer @short = #onnx.blob<file = 0, offset = 0, length = 15, type = 1, dims = [4]>

// -----

// Blob, rule 2.
// expected-error@+1 {{blob's size in bytes overflows}}
onnx.initializer @size_overflows = #onnx.blob<file = 0, offset = 0, length = 0, type = 1, dims = [4611686018427387904, 4]>

// -----

// Node, rule 1.
func.func @node_without_operator() {
  // expected-error@+1 {{expects the name of an operator but found ""}}
  %0 = onnx.node "" version 1 ()
  return
}

// -----

// Node, rule 2.
func.func @node_without_version() {
  // expected-error@+1 {{expects a version of at least 1 but found 0}}
  %0 = onnx.node "Relu" version 0 ()
  return
}

// -----

// Node, rule 3.
func.func @node_without_result() {
  // expected-error@+1 {{expects at least one result but has none}}
  onnx.node "Relu" version 1 ()
  return
}

// -----

// Node, rule 4.
func.func @node_with_other_attribute() {
  // expected-error@+1 {{expects attribute "axis" to be a number, string, tensor or array of these but found 1 : i32}}
  %0 = onnx.node "Softmax" version 13 () {axis = 1 : i32}
  return
}

// -----

// Initializer, rule 1.
// expected-error@+1 {{expects an #onnx.blob or an elements attribute but found 1 : i64}}
onnx.initializer @number = 1 : i64

// -----

// Get, rule 1.
func.func @get_of_nothing() {
  // expected-error@+1 {{expects the name of an onnx.initializer but found @missing}}
  %0 = onnx.get @missing
  return
}

// -----

// expected-error@+1 {{expects onnx.name to be a string but found 1 : i64}}
func.func @name_of_argument(%x: !onnx.value {onnx.name = 1 : i64}) {
  return
}

// -----

// expected-error@+1 {{expects onnx.type to be an i64 but found 1 : i32}}
func.func @type_of_argument(%x: !onnx.value {onnx.type = 1 : i32}) {
  return
}

// -----

// expected-error@+1 {{expects onnx.dims to hold strings and i64 that are not negative but found [-1]}}
func.func private @dims_of_result() -> (!onnx.value {onnx.dims = [-1]})
