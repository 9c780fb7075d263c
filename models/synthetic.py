# SPDX-License-Identifier: Apache-2.0
"""Writes the graph of a known language model without its weights: model.onnx, whose weights are external data that is absent.
otf-compile --synthetic-weights=SEED makes values for them, so that a model can be measured where nobody has its weights.

    python3 models/synthetic.py qwen2.5-3b -o build/models/qwen2.5-3b
    otf-compile build/models/qwen2.5-3b --synthetic-weights=1 --recipe=rtn4 -o qwen3b.plan

Projections are separate MatMuls; norms, positions and attention with its cache are the operators of opset 23.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# hidden, layers, heads, key heads, width of a head, inner width, vocabulary, tied head, biases of q, k, v, base of positions
SHAPES = {
    "qwen2.5-3b": (2048, 36, 16, 2, 128, 11008, 151936, True, True, 1e6),
    "llama-3.1-8b": (4096, 32, 32, 8, 128, 14336, 128256, False, False, 5e5),
    "smollm2-135m": (576, 30, 9, 3, 64, 1536, 49152, True, False, 1e5),
    "tiny": (64, 2, 4, 2, 16, 96, 160, True, True, 1e4),
}


def graph(shape, context, layers=None):
    hidden, all_layers, heads, key_heads, width, inner, vocabulary, tied, biases, base = shape
    nodes, weights, inputs, outputs = [], [], [], []

    def node(kind, operands, results, domain="", **attributes):
        nodes.append(helper.make_node(kind, operands, results, domain=domain, name=results[0], **attributes))
        return results[0]

    def weight(name, *dims):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="absent.data")
        weights.append(tensor)
        return name

    def constant(name, value):
        weights.append(numpy_helper.from_array(value, name))
        return name

    def value(name, kind, *dims):
        return helper.make_tensor_value_info(name, kind, dims)

    inputs += [value(name, TensorProto.INT64, "batch_size", "sequence_length") for name in ("input_ids", "position_ids")]
    angles = np.outer(np.arange(context), base ** (-np.arange(0, width, 2) / width))
    cos, sin = constant("cos_cache", np.cos(angles).astype(np.float32)), constant("sin_cache", np.sin(angles).astype(np.float32))

    if tied:
        weight("lm_head.weight", hidden, vocabulary)
        table = node("Transpose", ["lm_head.weight"], ["table"], perm=[1, 0])
    else:
        table = weight("embed_tokens.weight", vocabulary, hidden)
        weight("lm_head.weight", hidden, vocabulary)
    x = node("Gather", [table, "input_ids"], ["embedded"], axis=0)
    for layer in range(layers or all_layers):
        at = f"layers.{layer}."

        def linear(name, source, k, n, bias=False):
            y = node("MatMul", [source, weight(f"{at}{name}.weight", k, n)], [f"{at}{name}"])
            return node("Add", [y, weight(f"{at}{name}.bias", n)], [f"{at}{name}.biased"]) if bias else y

        def norm(name, source):
            return node("RMSNormalization", [source, weight(f"{at}{name}.weight", hidden)], [f"{at}{name}"], axis=-1, epsilon=1e-6)

        h = norm("input_norm", x)
        qkv = [linear("q_proj", h, hidden, heads * width, biases), linear("k_proj", h, hidden, key_heads * width, biases),
               linear("v_proj", h, hidden, key_heads * width, biases)]
        past, present = [f"past_key_values.{layer}.{what}" for what in ("key", "value")], [f"present.{layer}.{what}" for what in ("key", "value")]
        inputs += [value(name, TensorProto.FLOAT, "batch_size", key_heads, "past_sequence_length", width) for name in past]
        outputs += [value(name, TensorProto.FLOAT, "batch_size", key_heads, "past_sequence_length + sequence_length", width) for name in present]
        for i, count in enumerate((heads, key_heads)):
            qkv[i] = node("RotaryEmbedding", [qkv[i], cos, sin, "position_ids"], [f"{at}rotary{i}"], num_heads=count)
        a = node("Attention", [*qkv, "", *past], [f"{at}attention", *present], q_num_heads=heads, kv_num_heads=key_heads, is_causal=1,
                 scale=width ** -0.5)
        x = node("Add", [x, linear("o_proj", a, heads * width, hidden)], [f"{at}after_attention"])
        h = norm("post_norm", x)
        gate = linear("gate_proj", h, hidden, inner)
        gate = node("Mul", [gate, node("Sigmoid", [gate], [f"{at}sigmoid"])], [f"{at}silu"])
        h = node("Mul", [gate, linear("up_proj", h, hidden, inner)], [f"{at}gated"])
        x = node("Add", [x, linear("down_proj", h, inner, hidden)], [f"{at}out"])
    x = node("RMSNormalization", [x, weight("norm.weight", hidden)], ["normed"], axis=-1, epsilon=1e-6)
    node("MatMul", [x, "lm_head.weight"], ["logits"])
    outputs.insert(0, value("logits", TensorProto.FLOAT, "batch_size", "sequence_length", vocabulary))
    return helper.make_graph(nodes, "model", inputs, outputs, weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="folder")
    parser.add_argument("--context", type=int, default=4096, help="positions of the tables of cosines and sines")
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    model = helper.make_model(graph(SHAPES[args.shape], args.context, args.layers), opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    (args.output / "model.onnx").write_bytes(model.SerializeToString())


main()
