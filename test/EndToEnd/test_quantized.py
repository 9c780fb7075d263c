# SPDX-License-Identifier: Apache-2.0
"""Quantized operators as models of one node, against ONNX Runtime or, where that is not exact, numpy. A weight that the file has
quantized must be kept: the report says what was given and what became of it."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import otf

rng = np.random.default_rng(7)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def codes(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def model(op, inputs, outputs=1, domain="com.microsoft", constants=(), **attributes):
    """A model of one node; inputs named in `constants` are initializers."""
    names = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    present = {name: value for name, value in inputs.items() if value is not None}
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
         for n, v in present.items() if n not in constants],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
        [numpy_helper.from_array(v, n) for n, v in present.items() if n in constants])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), {n: v for n, v in present.items() if n not in constants}


def onnxruntime(proto, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def compiled(proto, feeds, recipe="none"):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(proto, str(folder / "model.onnx"))
        otf.succeed(otf.tool("otf-compile"), folder / "model.onnx", "-o", folder / "p.plan", f"--recipe={recipe}", "--report",
                    folder / "report.json", *otf.target_flags())
        got = otf.run(folder / "p.plan", feeds)
        return [got[name] for name in sorted(got)], json.loads((folder / "report.json").read_text())


scale, zero = np.float32(0.05), np.uint8(120)
scale2, zero2 = np.float32(0.03), np.uint8(131)
scale3, zero3 = np.float32(0.11), np.uint8(117)


def quantized(name, *shape, s=scale, z=zero):
    return {name: codes(np.uint8, *shape), f"{name}s": np.array(s), f"{name}z": np.array(z)}


def result(s=scale3, z=zero3):
    return {"ys": np.array(s), "yz": np.array(z)}


# ONNX Runtime's sums of pairs may saturate where int8 weights use their whole range, so these do not.
# name: (operator, inputs, attributes, most that codes may differ: ONNX Runtime's tables round once more)
OPERATORS = {
    "add": ("QLinearAdd", {**quantized("a", 3, 5), **quantized("b", 5, s=scale2, z=zero2), **result()}, {}, 0),
    "mul": ("QLinearMul", {**quantized("a", 3, 5), **quantized("b", 3, 5, s=scale2, z=zero2), **result()}, {}, 1),
    "sigmoid": ("QLinearSigmoid", {**quantized("a", 3, 5), **result(np.float32(1 / 256), np.uint8(0))}, {}, 0),
    "leaky relu": ("QLinearLeakyRelu", {**quantized("a", 3, 5), **result()}, {"alpha": 0.1}, 0),
    "softmax": ("QLinearSoftmax", {**quantized("a", 3, 5), **result(np.float32(1 / 256), np.uint8(0))}, {"axis": -1, "opset": 13}, 1),
    "concat": ("QLinearConcat", {**result(), **quantized("a", 3, 5), **quantized("b", 3, 2, s=scale2, z=zero2)}, {"axis": 1}, 0),
    "where": ("QLinearWhere", {"c": np.array([[True], [False], [True]]), **quantized("a", 3, 5),
                               **quantized("b", 3, 5, s=scale2, z=zero2), **result()}, {}, 0),
    "gemm": ("QGemm", {**quantized("a", 3, 40), **quantized("b", 40, 5, s=scale2, z=zero2), "c": codes(np.int16, 5).astype(np.int32),
                       **result(np.float32(0.9))}, {}, 1),
    "gemm to float": ("QGemm", {**quantized("a", 3, 40), **quantized("b", 5, 40, s=scale2, z=zero2)}, {"transB": 1, "alpha": 0.5}, 0),
    "integers to float": ("MatMulIntegerToFloat", {"a": codes(np.uint8, 3, 40), "b": codes(np.int8, 40, 5) // 2, "as": np.array(scale),
                                                   "bs": floats(5), "az": np.array(zero), "bz": codes(np.int8, 5), "bias": floats(5)}, {}, 0),
    "dynamic": ("DynamicQuantizeMatMul", {"a": floats(3, 40), "b": codes(np.int8, 40, 5) // 2, "bs": np.array(scale),
                                          "bz": np.array(np.int8(3)), "bias": floats(5)}, {}, 0),
}


class Operators(unittest.TestCase):
    def test_each(self):
        for name, (op, inputs, attributes, slack) in OPERATORS.items():
            with self.subTest(name):
                parameters = [n for n in inputs if len(n) == 2 and n[1] in "sz"]
                proto, feeds = model(op, inputs, constants=parameters, **attributes)
                want, (got, _) = onnxruntime(proto, feeds), compiled(proto, feeds)
                for w, g in zip(want, got, strict=True):
                    self.assertEqual((w.shape, w.dtype), (g.shape, g.dtype))
                    if w.dtype.kind == "f":
                        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5 * np.abs(w).max())
                    else:
                        self.assertLessEqual(np.abs(w.astype(int) - g).max(), slack)


class Experts(unittest.TestCase):
    """Mixtures of experts; ONNX Runtime's CPU kernels know MoE with fused interleaved gates only, so QMoE is compared to numpy."""
    E, H, I, T, K = 5, 32, 16, 4, 2

    def layers(self, width):
        e, h, i = self.E, self.H, self.I
        return {"w1": floats(e, width, h) * 0.2, "b1": floats(e, width), "w2": floats(e, h, i) * 0.2, "b2": floats(e, h)}

    def test_moe(self):
        for normalise in (0, 1):
            for activation, width, more in (("relu", self.I, {}), ("silu", self.I, {}), ("gelu", self.I, {}), ("identity", self.I, {}),
                                            ("swiglu", 2 * self.I, {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
                                                                    "swiglu_limit": 0.5})):
                with self.subTest(activation=activation, normalise=normalise):
                    inputs = {"x": floats(self.T, self.H), "r": floats(self.T, self.E), **self.layers(width)}
                    proto, feeds = model("MoE", inputs, constants=("w1", "b1", "w2", "b2"), k=self.K, activation_type=activation,
                                         normalize_routing_weights=normalise, **more)
                    (want,), ((got,), _) = onnxruntime(proto, feeds), compiled(proto, feeds)
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_calibration_names_experts_that_no_token_chose(self):
        inputs = {"x": floats(self.T, self.H), "r": floats(self.T, self.E), **self.layers(self.I)}
        proto, _ = model("MoE", inputs, constants=("w1", "b1", "w2", "b2"), k=self.K, activation_type="relu")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            onnx.save(proto, str(folder / "model.onnx"))
            router = floats(3, self.T, self.E)
            router[..., [1, 4]] -= 20  # five experts, and these never
            for name, samples in (("x", floats(3, self.T, self.H)), ("r", router)):
                np.save(folder / f"{name}.npy", samples)
            command = [otf.tool("otf-compile"), folder / "model.onnx", "--dry-run", "--recipe=otf-int2", f"--calibrate={folder}", f"--report={folder / 'r.json'}"]
            status, out, error = otf.call(*command)
            self.assertEqual(0, status, error)
            self.assertIn("no token chose expert 1, 4, so nothing is known of them", error)
            (counts,) = json.loads((folder / "r.json").read_text())["calibration"]["experts"].values()
            order = np.argsort(-router, axis=-1, kind="stable")[..., : self.K]
            self.assertEqual(np.bincount(order.ravel(), minlength=self.E).tolist(), counts)

    def test_qmoe(self):
        e, h, i = self.E, self.H, self.I
        for bits in (2, 4, 8):
            for block in (0, 16):
                for zeros in (False, True):
                    with self.subTest(bits=bits, block=block, zeros=zeros):
                        inputs = {"x": floats(self.T, h), "r": floats(self.T, e)}
                        weights = {}
                        for name, (n, k) in (("1", (2 * i, h)), ("2", (h, i))):
                            q = rng.integers(0, 1 << bits, (e, n, k))
                            shape = (e, n, k // block) if block else (e, n)
                            s = floats(*shape) * 0.05
                            z = rng.integers(0, 1 << bits, shape) if zeros else np.full(shape, 1 << (bits - 1))
                            wide = (lambda p: p.repeat(block, -1)) if block else (lambda p: p[..., None])
                            weights[name] = (q - wide(z)) * wide(s)
                            inputs |= {"w" + name: packed(q, bits), "s" + name: s, "b" + name: floats(e, n)}
                            inputs["z" + name] = packed(z, bits) if zeros else None
                        order = ["x", "r", "w1", "s1", "b1", "w2", "s2", "b2", "w3", "s3", "b3", "z1", "z2"]
                        ordered = {name: inputs.get(name) for name in order}
                        while list(ordered.values())[-1] is None:
                            ordered.popitem()
                        more = {"block_size": block} if block else {}
                        proto, feeds = model("QMoE", ordered, constants=order[2:], k=self.K, activation_type="swiglu", swiglu_fusion=2,
                                             normalize_routing_weights=1, expert_weight_bits=bits, weights_prepacked=0, **more)
                        (got,), _ = compiled(proto, feeds)
                        want = np.zeros((self.T, h))
                        for t in range(self.T):
                            top = np.argsort(-inputs["r"][t])[:self.K]
                            share = np.exp(inputs["r"][t][top] - inputs["r"][t].max())
                            for expert, part in zip(top, share / share.sum()):
                                hidden = inputs["x"][t] @ weights["1"][expert].T + inputs["b1"][expert]
                                gate, up = hidden[:i], hidden[i:]
                                want[t] += part * ((gate / (1 + np.exp(-gate)) * up) @ weights["2"][expert].T + inputs["b2"][expert])
                        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())


def packed(values, bits):
    """Codes of the last axis, lowest bits first, that axis filled up to whole bytes."""
    per = 8 // bits
    fill = -values.shape[-1] % per
    values = np.concatenate([values, np.zeros(values.shape[:-1] + (fill,), values.dtype)], -1)
    values = values.reshape(*values.shape[:-1], -1, per).astype(np.uint32) << (bits * np.arange(per, dtype=np.uint32))
    return values.sum(-1).astype(np.uint8)


class Weights(unittest.TestCase):
    def n_bits(self, bits, block, zeros, bias=False, halves=False, rows=3, n=19, k=75, level=0, recipe="none", indices=None):
        blocks = -(-k // block)
        q = rng.integers(0, 1 << bits, (n, blocks * block))
        s = floats(n, blocks) * 0.02  # negative ones too
        if halves:
            s = s.astype(np.float16).astype(np.float32)
        point = np.full((n, blocks), 1 << (bits - 1), np.float64)
        given = None
        if zeros == "packed":
            point = rng.integers(0, 1 << bits, (n, blocks))
            given = packed(point, bits)
        elif zeros == "float":
            given = (point + floats(n, blocks)).astype(np.float32)
            point = given.astype(np.float64)
        group = np.arange(blocks * block) // block
        if indices is not None:
            group[:k] = indices
        w = ((q - point[:, group]) * s.astype(np.float64)[:, group])[:, :k]
        inputs = {"x": floats(rows, k), "w": packed(q, bits).reshape(n, blocks, -1), "s": s, "z": given,
                  "g": None if indices is None else np.array(indices, np.int32), "b": floats(n) if bias else None}
        while list(inputs.values())[-1] is None:
            inputs.popitem()
        proto, feeds = model("MatMulNBits", inputs, constants="wszgb", N=n, K=k, bits=bits, block_size=block, accuracy_level=level)
        want = inputs["x"].astype(np.float64) @ w.T + (inputs["b"] if bias else 0)
        (got,), report = compiled(proto, feeds, recipe)
        return np.linalg.norm(got - want) / np.linalg.norm(want), report

    def test_every_form_is_exact(self):
        for bits in (2, 4, 8):
            for block, rows in ((16, 3), (32, 1), (128, 5)):
                for zeros in (None, "packed", "float"):
                    with self.subTest(bits=bits, block=block, zeros=zeros):
                        error, _ = self.n_bits(bits, block, zeros, bias=zeros is None, rows=rows, k=75 if block < 128 else 260)
                        self.assertLess(error, 2e-6)

    def test_groups_by_index(self):
        error, _ = self.n_bits(4, 32, "packed", k=96, indices=list(rng.integers(0, 3, 96)))
        self.assertLess(error, 2e-6)

    def test_codes_are_kept(self):
        kept = {("float", False): "grid4z", ("packed", False): "grid4z", (None, False): "grid4,", (None, True): "int4"}
        for (zeros, halves), kind in kept.items():
            with self.subTest(kind):
                error, report = self.n_bits(4, 32, zeros, halves=halves)
                tensor, = [t for t in report["tensors"] if "given" in t]
                self.assertIn(kind, tensor["kept"])
                self.assertEqual("as given", tensor["codes"])
                self.assertLess(tensor["relative_error"], 1e-6)

    def test_block_16_is_said_to_be_dequantized(self):
        _, report = self.n_bits(4, 16, None)
        tensor, = [t for t in report["tensors"] if "given" in t]
        self.assertEqual("dequantized", tensor["codes"])

    def test_integer_activations_are_near(self):
        for bits in (2, 4, 8):
            for zeros in (None, "packed"):
                with self.subTest(bits=bits, zeros=zeros):
                    error, report = self.n_bits(bits, 32, zeros, recipe="given-a8", k=160, rows=17)
                    self.assertIn("as given", [t.get("codes") for t in report["tensors"]])
                    self.assertLess(1e-5, error)
                    self.assertLess(error, 0.02)

    def test_a_recipe_codes_anew(self):
        error, report = self.n_bits(8, 32, None, recipe="rtn8")
        self.assertIn("made anew", [t.get("codes") for t in report["tensors"]])
        self.assertLess(error, 0.02)

    def test_dequantized_constants(self):
        """DequantizeLinear of a weight before a MatMul: one scale, one a column, one a row, blocks along either axis."""
        k, n = 96, 20
        for dtype, kind in ((np.int8, TensorProto.INT8), (np.uint8, TensorProto.UINT8), (None, TensorProto.INT4), (None, TensorProto.UINT4)):
            low, high = {TensorProto.INT8: (-128, 127), TensorProto.UINT8: (0, 255), TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15)}[kind]
            for form, shape, axis, block in (("one", (), 1, 0), ("columns", (n,), 1, 0), ("rows", (k,), 0, 0),
                                             ("blocks down", (3, n), 0, 32), ("blocks across", (k, 2), 1, 10)):
                for zeros in (False, True):
                    with self.subTest(kind=kind, form=form, zeros=zeros):
                        q = rng.integers(low, high + 1, (k, n))
                        s = np.abs(floats(*shape)) * np.float32(0.1) + np.float32(0.01)
                        z = rng.integers(low, high + 1, shape) if zeros else np.zeros(shape, int)
                        spread = {"one": lambda p: p, "columns": lambda p: p, "rows": lambda p: p[:, None],
                                  "blocks down": lambda p: p.repeat(32, 0), "blocks across": lambda p: p.repeat(10, 1)}[form]
                        w = (q - spread(z)) * spread(s).astype(np.float64)
                        x = floats(4, k)
                        inits = [helper.make_tensor("q", kind, (k, n), q.reshape(-1).tolist()), numpy_helper.from_array(np.array(s), "s")]
                        if zeros:
                            inits.append(helper.make_tensor("z", kind, shape, z.reshape(-1).tolist()))
                        nodes = [helper.make_node("DequantizeLinear", ["q", "s"] + ["z"] * zeros, ["w"], axis=axis, block_size=block),
                                 helper.make_node("MatMul", ["x", "w"], ["y0"])]
                        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                                  [helper.make_empty_tensor_value_info("y0")], inits)
                        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
                        (got,), report = compiled(proto, {"x": x})
                        want = x.astype(np.float64) @ w
                        self.assertLess(np.linalg.norm(got - want), 2e-6 * np.linalg.norm(want))
                        codes_ = [t.get("codes") for t in report["tensors"] if "given" in t]
                        self.assertEqual(["as given" if form in ("one", "columns", "blocks down") else "dequantized"], codes_)

    def test_floats_on_a_grid_are_reported(self):
        k, n = 96, 16
        scales = np.abs(floats(n, 3)).repeat(32, 1) + np.float32(0.01)
        for name, w in (("grid", (rng.integers(0, 16, (n, k)) - 8) * scales), ("any", floats(n, k)), ("zeros", np.zeros((n, k)))):
            with self.subTest(name):
                node = helper.make_node("MatMul", ["x", "w"], ["y0"])
                graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, k])],
                                          [helper.make_empty_tensor_value_info("y0")],
                                          [numpy_helper.from_array(np.ascontiguousarray(w.T.astype(np.float32)), "w")])
                proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
                _, report = compiled(proto, {"x": floats(2, k)})
                said = [t.get("quantized_before") for t in report["tensors"]]
                self.assertEqual(["at most 16 values in each 32 columns" if name == "grid" else None], said)

    def test_tables(self):
        """FP4 and NF4 of bitsandbytes, also in blocks that leave rows."""
        for kind in (0, 1):
            for k in (128, 96):
                with self.subTest(kind=kind, k=k):
                    n, block = 12, 64
                    inputs = {"x": floats(3, k), "w": codes(np.uint8, n * k // 2), "s": np.abs(floats(n * k // block))}
                    proto, feeds = model("MatMulBnb4", inputs, constants="ws", N=n, K=k, block_size=block, quant_type=kind)
                    (want,), ((got,), _) = onnxruntime(proto, feeds), compiled(proto, feeds)
                    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    def test_rows_of_a_table(self):
        for bits in (4, 8):
            for zeros in (False, True):
                with self.subTest(bits=bits, zeros=zeros):
                    rows, columns, block = 40, 96, 32
                    q, s = rng.integers(0, 1 << bits, (rows, columns)), floats(rows, 3)
                    z = rng.integers(0, 1 << bits, (rows, 3)) if zeros else np.full((rows, 3), 1 << (bits - 1))
                    ids = rng.integers(0, rows, (2, 3))
                    inputs = {"w": packed(q, bits), "i": ids, "s": s, "z": packed(z, bits) if zeros else None}
                    if not zeros:
                        inputs.pop("z")
                    proto, feeds = model("GatherBlockQuantized", inputs, constants="wsz", bits=bits, block_size=block, gather_axis=0,
                                         quantize_axis=1)
                    (got,), report = compiled(proto, feeds)
                    want = ((q - z.repeat(block, 1)) * s.repeat(block, 1).astype(np.float64))[ids]
                    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())
                    self.assertIn("as given", [t.get("codes") for t in report["tensors"]])


def rounded(x, s, z, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(x / np.float32(s)) + z, info.min, info.max)


class Products(unittest.TestCase):
    """QDQ, operators on codes and scaled sums of integers are one form on the integer kernels: what ONNX says of codes, exactly."""
    K, N, M = 75, 19, 6

    def weight(self, dtype, columns, shape=None):
        info, shape = np.iinfo(dtype), shape or (self.K, self.N)
        q = codes(dtype, *shape)
        q.reshape(-1)[:5] = [info.min, info.max, info.min, info.min, info.max]
        n = shape[1] if len(shape) == 2 else shape[0]
        s = (np.abs(floats(*((n,) if columns else ()))) * np.float32(0.01) + np.float32(0.002)).astype(np.float32)
        z = np.asarray(rng.integers(info.min, info.max + 1, s.shape)).astype(dtype)
        return q, s, z

    def plan(self, nodes, inits, x, result, version=21):
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
                                  [helper.make_tensor_value_info(result, TensorProto.UNDEFINED, None)],
                                  [numpy_helper.from_array(np.asarray(v), n) for n, v in inits.items()])
        graph.output[0].ClearField("type")
        opsets = [helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        outputs, report = compiled(proto, {"x": x})
        self.assertEqual([("as given", "codes as given")], [(t.get("codes"), t.get("activations")) for t in report["tensors"] if "given" in t])
        return outputs[0]

    def test_qdq(self):
        for dtype, point in ((np.uint8, 0), (np.uint8, 117), (np.uint8, 255), (np.int8, 0), (np.int8, -128), (np.int8, 31)):
            for wdtype in (np.int8, np.uint8):
                for columns in (False, True):
                    for op in ("MatMul", "Gemm"):
                        with self.subTest(dtype=dtype, point=point, wdtype=wdtype, columns=columns, op=op):
                            q, s, z = self.weight(wdtype, columns)
                            x, b, xs = floats(self.M, self.K) * 3, floats(self.N), np.float32(0.021)
                            inits = {"xs": xs, "xz": dtype(point), "w": q, "ws": s, "wz": z, "b": b}
                            nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
                                     helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
                                     helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1),
                                     helper.make_node(op, ["xd", "wd"] + ["b"] * (op == "Gemm"), ["y0"])]
                            got = self.plan(nodes, inits, x, "y0")
                            want = (rounded(x, xs, point, dtype) - point) * np.float64(xs) @ ((q - z.astype(np.float64)) * s)
                            want = want + (b if op == "Gemm" else 0)
                            self.assertLess(np.linalg.norm(got - want), 3e-6 * np.linalg.norm(want))

    def test_operators_on_codes(self):
        for op in ("QLinearMatMul", "QGemm"):
            with self.subTest(op):
                q, s, z = self.weight(np.int8, op == "QLinearMatMul")
                x, xs, xz, ys, yz = codes(np.uint8, self.M, self.K), np.float32(0.02), np.uint8(99), np.float32(1.1), np.uint8(128)
                inits = {"xs": xs, "xz": xz, "w": q, "ws": s, "wz": z, "ys": ys, "yz": yz, "c": codes(np.int16, self.N).astype(np.int32)}
                names = ["x", "xs", "xz", "w", "ws", "wz"] + (["c"] if op == "QGemm" else []) + ["ys", "yz"]
                got = self.plan([helper.make_node(op, names, ["y0"], domain="com.microsoft" if op == "QGemm" else "")], inits, x, "y0")
                sums = (x.astype(np.int64) - xz) @ (q.astype(np.int64) - z) + (inits["c"] if op == "QGemm" else 0)
                want = rounded(sums * (np.float64(xs) * s), ys, yz, np.uint8)
                self.assertEqual(0, np.abs(got.astype(int) - want).max())

    def test_convolutions(self):
        q, s, z = self.weight(np.int8, True, (8, 5, 3, 3))
        x, xs, xz, ys, yz = codes(np.uint8, 2, 5, 9, 7), np.float32(0.02), np.uint8(99), np.float32(0.5), np.uint8(128)
        z[:] = 0
        inits = {"xs": xs, "xz": xz, "w": q, "ws": s, "wz": z, "ys": ys, "yz": yz, "b": codes(np.int16, 8).astype(np.int32)}
        node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y0"], pads=[1, 1, 1, 1], strides=[2, 1])
        got = self.plan([node], inits, x, "y0")
        wide = np.pad(x.astype(np.int64) - xz, ((0, 0), (0, 0), (1, 1), (1, 1)))
        sums = np.zeros((2, 8, 5, 7), np.int64)
        for i in range(3):
            for j in range(3):
                sums += np.einsum("nchw,oc->nohw", wide[:, :, i:i + 9:2, j:j + 7], q[:, :, i, j].astype(np.int64))
        sums += inits["b"][:, None, None]
        want = rounded(sums * (np.float64(xs) * s)[:, None, None], ys, yz, np.uint8)
        self.assertEqual(0, np.abs(got.astype(int) - want).max())

    def test_scaled_sums(self):
        for fused in (False, True):
            with self.subTest(fused=fused):
                q, s, z = self.weight(np.int8, False)
                x = floats(self.M, self.K) + np.float32(0.4)
                inits = {"w": q, "ws": s, "wz": z}
                nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
                         helper.make_node("MatMulInteger", ["xq", "w", "xz", "wz"], ["i"]),
                         helper.make_node("Cast", ["i"], ["f"], to=1), helper.make_node("Mul", ["xs", "ws"], ["s"]),
                         helper.make_node("Mul", ["f", "s"], ["y0"])]
                if fused:
                    nodes = [helper.make_node("DynamicQuantizeMatMul", ["x", "w", "ws", "wz"], ["y0"], domain="com.microsoft")]
                got = self.plan(nodes, inits, x, "y0")
                xs = (max(x.max(), np.float32(0)) - min(x.min(), np.float32(0))) / np.float32(255)
                xz = np.clip(np.rint(-min(x.min(), np.float32(0)) / xs), 0, 255)
                want = (rounded(x, xs, xz, np.uint8) - xz) * np.float64(xs) @ ((q - np.float64(z)) * s)
                self.assertLess(np.linalg.norm(got - want), 3e-6 * np.linalg.norm(want))

    def test_a_recipe_codes_anew(self):
        q, s, z = self.weight(np.int8, False)
        x, xs = floats(self.M, self.K), np.float32(0.02)
        nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
                 helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1), helper.make_node("MatMul", ["xd", "wd"], ["y0"])]
        inits = {"xs": xs, "xz": np.uint8(117), "w": q, "ws": s, "wz": z}
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                                  [helper.make_tensor_value_info("y0", TensorProto.FLOAT, [self.M, self.N])],
                                  [numpy_helper.from_array(np.asarray(v), n) for n, v in inits.items()])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        (got,), report = compiled(proto, {"x": x}, recipe="rtn8")
        want = (rounded(x, xs, 117, np.uint8) - 117) * np.float64(xs) @ ((q - np.float64(z)) * s)
        self.assertLess(np.linalg.norm(got - want), 0.02 * np.linalg.norm(want))
        self.assertIn(("made anew", "int8"), [(t.get("codes"), t.get("activations")) for t in report["tensors"]])

    def test_attention(self):
        hidden, heads, positions = 32, 4, 5
        q, s = codes(np.int8, hidden, 3 * hidden) // 2, np.float32(0.004)
        x, xs, xz = codes(np.uint8, 2, positions, hidden), np.float32(0.02), np.uint8(128)
        inputs = {"x": x, "w": q, "b": floats(3 * hidden), "xs": np.array(xs), "ws": np.array(s), "m": None, "xz": np.array(xz), "wz": np.array(np.int8(0))}
        proto, feeds = model("QAttention", inputs, constants=("w", "b", "xs", "ws", "xz", "wz"), num_heads=heads)
        (want,), ((got,), report) = onnxruntime(proto, feeds), compiled(proto, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        self.assertIn("codes as given", [t.get("activations") for t in report["tensors"]])


if __name__ == "__main__":
    unittest.main()
