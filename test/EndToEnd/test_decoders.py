# SPDX-License-Identifier: Apache-2.0
"""Decoders in the forms that exporters merge or split them into, made here in their style, against onnx's reference.

A merged decoder is two in one file: `use_cache_branch` picks the branch of an `If` that appends to a past, or the one that has
none. Where a past of length 0 says the same, OTF takes the first branch alone, with states. Where the other branch makes a cross
attention's keys and values both stay, and the values are inputs and outputs.
"""
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import otf

VOCABULARY, HIDDEN, HEADS, WIDTH = 40, 16, 2, 8
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """Nodes as they are called for, and constants by what they are."""

    def __init__(self, prefix=""):
        self.prefix, self.nodes, self.constants = prefix, [], {}

    def __getattr__(self, operator):
        def node(*inputs, out=None, **attributes):
            name = out or f"{self.prefix}{operator}_{len(self.nodes)}"
            names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
            self.nodes.append(helper.make_node(operator, names, [name], name=f"/{name}", **attributes))
            return name
        return node

    def constant(self, value):
        value = np.array(value, np.int64 if np.asarray(value).dtype.kind == "i" else np.float32)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(value, name)
        return name


def weights():
    rng = np.random.default_rng(1)
    shapes = {"embed": (VOCABULARY, HIDDEN), "head": (HIDDEN, VOCABULARY)}
    shapes |= {name: (HIDDEN, HIDDEN) for name in ("q", "k", "v", "o", "cross_q", "cross_k", "cross_v", "cross_o")}
    return [numpy_helper.from_array((rng.standard_normal(s) * 0.3).astype(np.float32), n) for n, s in shapes.items()]


def heads(g, x, weight):
    return g.Transpose(g.Reshape(g.MatMul(x, weight), [0, 0, HEADS, WIDTH]), perm=[0, 2, 1, 3])


def attention(g, x, q, k, v, mask, weight):
    scores = g.Mul(g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])), 1 / np.sqrt(WIDTH))
    mixed = g.MatMul(g.Softmax(g.Add(scores, mask) if mask else scores, axis=-1), v)
    return g.Add(x, g.MatMul(g.Reshape(g.Transpose(mixed, perm=[0, 2, 1, 3]), [0, 0, HIDDEN]), weight))


def causal(g, x, keys):
    """0 where a key is not after its query and the attention mask keeps it."""
    length, steps = g.Squeeze(g.Slice(g.Shape(keys), [2], [3])), g.Squeeze(g.Slice(g.Shape(x), [1], [2]))
    at = g.Add(g.Range(0, steps, 1), g.Sub(length, steps))
    keep = g.LessOrEqual(g.Unsqueeze(g.Range(0, length, 1), [0]), g.Unsqueeze(at, [1]))
    keep = g.And(g.Cast(g.Unsqueeze("attention_mask", [1, 2]), to=BOOL), keep)
    return g.Where(keep, 0.0, -3.4028234663852886e38)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def cache(name, length):
    return [value(f"{name}.{part}", FLOAT, ["batch_size", HEADS, length, WIDTH]) for part in ("key", "value")]


def branch(prefix, with_past, with_encoder):
    g = Graph(prefix)
    x = g.Gather("embed", "input_ids")
    own = ".decoder" if with_encoder else ""
    keys, values = heads(g, x, "k"), heads(g, x, "v")
    if with_past:
        keys = g.Concat(f"past_key_values.0{own}.key", keys, axis=-2)
        values = g.Concat(f"past_key_values.0{own}.value", values, axis=-2)
    x = attention(g, x, heads(g, x, "q"), keys, values, causal(g, x, keys), "o")
    presents = [keys, values]
    if with_encoder:
        if with_past:
            cross = ["past_key_values.0.encoder.key", "past_key_values.0.encoder.value"]
            presents += [g.Identity(g.constant(np.zeros((0, HEADS, 1, WIDTH), np.float32))) for _ in cross]  # nobody reads them
        else:
            cross = [heads(g, "encoder_hidden_states", f"cross_{part}") for part in "kv"]
            presents += cross
        x = attention(g, x, heads(g, x, "cross_q"), *cross, None, "cross_o")
    outputs = [g.MatMul(x, "head", out=f"{prefix}logits"), *presents]
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    return helper.make_graph(g.nodes, prefix, [], infos, list(g.constants.values()))


def merged(with_encoder):
    past, both = "past_sequence_length", "past_sequence_length + sequence_length"
    own = ".decoder" if with_encoder else ""
    inputs = [value("input_ids", INT64, ["batch_size", "sequence_length"])]
    inputs += [value("attention_mask", INT64, ["batch_size", "mask_length" if with_encoder else both])]
    outputs = [value("logits", FLOAT, ["batch_size", "sequence_length", VOCABULARY]), *cache(f"present.0{own}", both)]
    pasts = cache(f"past_key_values.0{own}", past)
    if with_encoder:
        inputs += [value("encoder_hidden_states", FLOAT, ["batch_size", "encoder_sequence_length", HIDDEN])]
        pasts += cache("past_key_values.0.encoder", "encoder_past_length")
        outputs += cache("present.0.encoder", "encoder_present_length")
    inputs += pasts + [value("use_cache_branch", BOOL, [1])]
    node = helper.make_node("If", ["use_cache_branch"], [o.name for o in outputs], name="optimum::if",
                            then_branch=branch("with_", True, with_encoder), else_branch=branch("without_", False, with_encoder))
    graph = helper.make_graph([node], "merged", inputs, outputs, weights())
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, model):
        onnx.save(model, self.folder / "model.onnx")
        otf.succeed(otf.tool("otf-compile"), self.folder / "model.onnx", "-o", self.folder / "model.plan", "--recipe=none")
        return self.folder / "model.plan"

    def same(self, want, got):
        self.assertEqual(want.shape, got.shape)
        self.assertLessEqual(np.abs(want - got).max(initial=0), 1e-5)


class Merged(Case):
    def test_a_decoder_alone_has_states(self):
        model = merged(with_encoder=False)
        plan, reference = self.compile(model), ReferenceEvaluator(model)
        none = np.zeros((1, HEADS, 0, WIDTH), np.float32)
        ids, new, past, expected = [1, 2, 3], [1, 2, 3], (none, none), []
        for _ in range(6):
            logits, *past = reference.run(None, {
                "input_ids": np.array([new]), "attention_mask": np.ones((1, len(ids)), np.int64),
                "past_key_values.0.key": past[0], "past_key_values.0.value": past[1], "use_cache_branch": np.array([True])})
            new = [int(logits[0, -1].argmax())]
            expected += new
            ids += new
        self.assertEqual(expected, otf.generate(plan, [1, 2, 3], 6))

    def test_a_decoder_alone_without_a_past(self):
        model = merged(with_encoder=False)
        inputs = {"input_ids": np.array([[5, 6, 7, 8]]), "attention_mask": np.array([[1, 1, 1, 1]])}
        inputs |= {f"past_key_values.0.{part}": np.zeros((1, HEADS, 0, WIDTH), np.float32) for part in ("key", "value")}
        want = ReferenceEvaluator(model).run(None, inputs | {"use_cache_branch": np.array([False])})
        got = otf.run(self.compile(model), inputs)
        for name, array in zip(("logits", "present.0.key", "present.0.value"), want):
            self.same(array, got[name])

    def test_a_cross_attention_keeps_both_branches(self):
        model = merged(with_encoder=True)
        plan, reference = self.compile(model), ReferenceEvaluator(model)
        names = [o.name for o in model.graph.output]
        rng = np.random.default_rng(2)
        encoded = rng.standard_normal((2, 5, HIDDEN)).astype(np.float32)
        dummy = np.zeros((2, HEADS, 1, WIDTH), np.float32)
        first = {"input_ids": np.array([[1, 2], [3, 4]]), "attention_mask": np.ones((2, 2), np.int64),
                 "encoder_hidden_states": encoded, "use_cache_branch": np.array([False])}
        first |= {i.name: dummy for i in model.graph.input if i.name.startswith("past")}
        want, got = reference.run(None, first), otf.run(plan, first)
        for name, array in zip(names, want):
            self.same(array, got[name])
        second = first | {"input_ids": np.array([[5], [6]]), "attention_mask": np.ones((2, 3), np.int64),
                          "use_cache_branch": np.array([True])}
        second |= {name.replace("present", "past_key_values"): array for name, array in zip(names[1:], want[1:])}
        want, got = reference.run(None, second), otf.run(plan, second)
        for name, array in list(zip(names, want))[:3]:
            self.same(array, got[name])


class Limits(Case):
    def test_a_position_behind_the_rotary_table_ends_the_run(self):
        """Positions counted by the operator, and those of an offset."""
        table = numpy_helper.from_array(np.ones((6, 4), np.float32), "table")
        rotary = helper.make_node("RotaryEmbedding", ["x", "first", "table", "table"], ["y"], domain="com.microsoft")
        graph = helper.make_graph([rotary], "g", [value("x", FLOAT, ["batch", 2, "length", 8]), value("first", INT64, [1])],
                                  [value("y", FLOAT, None)], [table])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        plan = self.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        x = np.ones((1, 2, 4, 8), np.float32)
        otf.run(plan, {"x": x, "first": np.array([2])})
        self.refused(plan, {"x": x, "first": np.array([3])}, "outside the table of its rotary embedding")

    def test_the_counted_position_of_group_query_attention(self):
        table = numpy_helper.from_array(np.ones((6, 4), np.float32), "table")
        node = helper.make_node("GroupQueryAttention", ["x", "", "", "pk", "pv", "lengths", "total", "table", "table"],
                                ["y", "k", "v"], domain="com.microsoft", num_heads=2, kv_num_heads=1, do_rotary=1)
        past = [value(n, FLOAT, ["batch", 1, "past_length", 8]) for n in ("pk", "pv")]
        present = [value(n, FLOAT, ["batch", 1, "total_length", 8]) for n in ("k", "v")]
        graph = helper.make_graph([node], "g", [value("x", FLOAT, ["batch", "length", 32]), *past,
                                                value("lengths", TensorProto.INT32, ["batch"]), value("total", TensorProto.INT32, [])],
                                  [value("y", FLOAT, ["batch", "length", 16]), *present], [table])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        plan = self.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        inputs = {"x": np.ones((1, 2, 32), np.float32)}
        for past, right in ((4, True), (5, False)):
            inputs |= {n: np.ones((1, 1, past, 8), np.float32) for n in ("pk", "pv")}
            inputs["lengths"] = np.array([past + 1], np.int32)
            inputs["total"] = np.array([past + 2] if right else past + 2, np.int32)  # a number may be a list of one
            if right:
                otf.run(plan, inputs)
            else:
                self.refused(plan, inputs, "outside the table of its rotary embedding")

    def test_a_mask_of_more_keys_than_there_are_ends_the_run(self):
        node = helper.make_node("Attention", ["q", "k", "k", "mask"], ["y"])
        graph = helper.make_graph([node], "g", [value("q", FLOAT, [1, 2, "length", 8]), value("k", FLOAT, [1, 2, "keys", 8]),
                                                value("mask", FLOAT, ["length", "width"])], [value("y", FLOAT, [1, 2, "length", 8])])
        plan = self.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10))
        rng = np.random.default_rng(3)
        inputs = {"q": rng.standard_normal((1, 2, 3, 8)).astype(np.float32),
                  "k": rng.standard_normal((1, 2, 4, 8)).astype(np.float32)}
        otf.run(plan, inputs | {"mask": np.zeros((3, 2), np.float32)})  # keys without one are hidden
        self.refused(plan, inputs | {"mask": np.zeros((3, 5), np.float32)}, "the mask has more keys than there are")

    def refused(self, plan, inputs, what):
        with self.assertRaises(AssertionError) as caught:
            otf.run(plan, inputs)
        text = str(caught.exception)
        self.assertIn("exit 1: error: ", text)
        self.assertIn(what, text)
        self.assertEqual(2, len(text.splitlines()), text)
