# SPDX-License-Identifier: Apache-2.0
"""Writes the models that fuzzing starts from: each form in which a file says something, as small as it can be.

    build/venv/bin/python test/Fuzz/seeds.py
"""
import pathlib

import numpy as np
from onnx import AttributeProto, SparseTensorProto, TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
out = pathlib.Path(__file__).resolve().parent / "corpus"


def value(name, kind=FLOAT, shape=("n", 4)):
    return helper.make_tensor_value_info(name, kind, shape)


def write(name, nodes, inputs=None, outputs=("y",), weights=(), opset=18, functions=(), domains=(), sparse=()):
    graph = helper.make_graph(nodes, name, inputs or [value("x")], [value(o, shape=None) for o in outputs], list(weights))
    graph.sparse_initializer.extend(sparse)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))
    model.producer_name = ""
    (out / f"{name}.onnx").write_bytes(model.SerializeToString())


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def main():
    out.mkdir(exist_ok=True)
    w = numpy_helper.from_array(np.arange(32, dtype=np.float32).reshape(4, 8) / 8, "w")
    typed = TensorProto(name="w", data_type=FLOAT, dims=[4, 8], float_data=[0.5] * 32)
    outside = TensorProto(name="w", data_type=FLOAT, dims=[4, 8], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "model.onnx"), ("offset", "0"), ("length", "128")):
        outside.external_data.add(key=key, value=text)
    for name, weight in (("raw", w), ("typed", typed), ("external", outside)):
        write(name, [node("MatMul", "xw")], weights=[weight])
    small = [helper.make_tensor(n, INT64, [len(v)], v) for n, v in (("s", [0, 2, 2]), ("a", [1]), ("b", [3]))]
    write("shapes", [node("Shape", "x", "h"), node("Reshape", "xs", "r"), node("Slice", ("x", "a", "b", "a"), "c"),
                     node("Concat", "xx", "d", axis=-1), node("Gather", "xa", "g", axis=1), node("Transpose", "r", "y", perm=[2, 0, 1])],
          outputs="yhcdg", weights=small)
    write("elementwise", [node("Add", "xx", "a"), node("Tanh", "a", "b"), node("Where", "cab", "y"), node("Greater", "xa", "c"),
                          node("Softmax", "b", "z", axis=-1)], outputs="yz")
    write("reduce", [node("ReduceMean", "x", "m", keepdims=1), node("Sub", "xm", "y"), node("ReduceSum", "xa", "z", keepdims=0)],
          outputs="yz", weights=small)
    write("split", [node("Split", "x", "yz", axis=1, num_outputs=2)], outputs="yz")
    write("constants", [node("Constant", "", "c", value_floats=[1.0, 2.0, 3.0, 4.0]), node("Add", "xc", "y"),
                        node("Constant", "", "i", value_int=3), node("Cast", "i", "z", to=1),
                        node("Constant", "", "t", value=numpy_helper.from_array(np.float32(2)))], outputs="yzt")
    write("gemm", [node("Gemm", "xw", "y", alpha=0.5, transA=0)], weights=[w])
    write("cache", [node("Concat", "pk", "q", axis=2), node("Relu", "q", "y")], outputs="qy",
          inputs=[value("p", shape=("b", 2, "past", 4)), value("k", shape=("b", 2, "s", 4))])
    inner = AttributeProto(name="axis", ref_attr_name="axis", type=AttributeProto.INT)
    concat = node("Concat", "ab", "c")
    concat.attribute.append(inner)
    write("function", [node("Twice", "x", "y", domain="own", axis=1)], domains=["own"], functions=[
        helper.make_function("own", "Twice", ["a"], ["c"], [node("Neg", "a", "b"), concat], [helper.make_opsetid("", 18)], ["axis"])])
    branch = [helper.make_graph([node(op, "x", "r")], op, [], [value("r")]) for op in ("Neg", "Abs")]
    write("branches", [node("If", "c", "y", then_branch=branch[0], else_branch=branch[1])],
          inputs=[value("x"), value("c", TensorProto.BOOL, ())])
    write("quantized", [node("DequantizeLinear", "qst", "d", axis=0, block_size=2), node("MatMul", "xd")], opset=21, weights=[
        helper.make_tensor("q", TensorProto.INT4, [4, 8], bytes(range(16)), raw=True),
        helper.make_tensor("s", FLOAT, [2, 8], [0.5] * 16), helper.make_tensor("t", TensorProto.INT4, [2, 8], bytes(8), raw=True)])
    sparse = SparseTensorProto(dims=[4], values=helper.make_tensor("v", FLOAT, [1], [1.0]), indices=helper.make_tensor("", INT64, [1], [2]))
    write("sparse", [node("Add", "xv")], sparse=[sparse])
    write("strings", [node("StringConcat", "xs", "y")], inputs=[value("x", TensorProto.STRING)],
          weights=[helper.make_tensor("s", TensorProto.STRING, [1], [b"text"])], opset=20)
    write("old", [node("Add", "xw", "y", broadcast=1, axis=1)], opset=6, weights=[helper.make_tensor("w", FLOAT, [4], [1, 2, 3, 4])])
    write("cycle", [node("Add", "xb", "a", name="first"), node("Neg", "a", "b")], outputs="b")
    write("scalar", [node("Mul", "xx", "y")], inputs=[value("x", TensorProto.FLOAT16, ())])
    write("empty", [node("Neg", "x", "y")], inputs=[value("x", shape=(0, 4))])


main()
