# SPDX-License-Identifier: Apache-2.0
"""Rotated plans against plans that are not, and the recipe `turboquant` against a plain model of it."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import otf

LLAMA = otf.fixtures / "llama-optimum" / "model.onnx"


def recipe(folder, **keys):
    path = pathlib.Path(folder) / "recipe.json"
    path.write_text(json.dumps({"name": "test", **keys}))
    return path


def compiled(folder, model, recipe_path, *flags):
    path = pathlib.Path(folder) / "m.plan"
    otf.succeed(otf.tool("otf-compile"), model, "-o", path, f"--recipe={recipe_path}", *otf.target_flags(), *flags)
    return path


def linear_model(path, weight):
    """y = x Wᵀ, W of N x K."""
    n, k = weight.shape
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "linear",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", k])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", n])],
                              [numpy_helper.from_array(np.ascontiguousarray(weight.T), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def hadamard(order):
    h = np.ones((1, 1))
    while len(h) < order:
        h = np.block([[h, h], [h, -h]])
    return h / np.sqrt(order)


def turboquant(weight, group=64, most=1024, joint=False):
    """The weight that the recipe leaves, in its own coordinates: f64, written from the recipe's text."""
    n, k = weight.shape
    block = 1
    while 2 * block <= most and k % (2 * block) == 0:
        block *= 2
    h = hadamard(block)
    v = (weight.astype(np.float64).reshape(n, -1, block) @ h).reshape(n, k)
    v = v.astype(np.float32).astype(np.float64)
    out = np.empty_like(v)
    levels = [(t, b) for b in (-1, 1) for t in (-1, 0, 1)]
    for row in range(n):
        for begin in range(0, k, group):
            w = v[row, begin:begin + group]
            magnitude = np.abs(w).mean()
            if joint:
                sigma = magnitude / .798
                s, m = 1.44 * sigma, .38 * sigma
                for last in range(4):
                    values = np.array([t * s + b * m for t, b in levels])
                    near = np.abs(w[:, None] - values).argmin(1)
                    if last == 3:
                        break
                    design = np.array([levels[i] for i in near], np.float64)
                    s, m = np.linalg.lstsq(design, w, rcond=None)[0]
                    if last == 2:
                        s, m = float(np.float16(s)), float(np.float16(m))
                out[row, begin:begin + group] = values[near]
                continue
            s = float(np.float16(magnitude))
            t = np.clip(np.rint(w / (s or 1)), -1, 1)
            rest = w - s * t
            m = float(np.float16(np.abs(rest).mean()))
            out[row, begin:begin + group] = s * t + m * np.where(rest >= 0, 1, -1)
    return (out.reshape(n, -1, block) @ h).reshape(n, k)


class TurboQuant(unittest.TestCase):
    def check(self, shape, **keys):
        weight = np.random.default_rng(shape[1]).standard_t(4, shape).astype(np.float32) * .05
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "m.onnx"
            linear_model(model, weight)
            path = recipe(folder, linear="ternary_sign", group=64, rotation="hadamard", head="linear", **keys)
            plan = compiled(folder, model, path)
            # A rotated unit vector has entries of one magnitude, so its record is exact, and what comes out is the weight.
            got = otf.run(plan, {"x": np.eye(shape[1], dtype=np.float32)})["y"].T
        want = turboquant(weight, joint=keys.get("fit") == "joint")
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max() * np.sqrt(shape[1]))
        return np.square(got - weight).sum() / np.square(weight).sum()

    def test_a_weight_is_that_of_the_recipe(self):
        for shape in ((24, 64), (8, 576), (5, 2048), (3, 100), (16, 32)):
            with self.subTest(shape=shape):
                self.assertLess(self.check(shape), .25)

    def test_so_is_one_of_the_joint_fit(self):
        for shape in ((24, 64), (8, 576)):
            with self.subTest(shape=shape):
                self.assertLess(self.check(shape, fit="joint"), .07)

    def test_the_built_in_one_says_so(self):
        printed = json.loads(otf.succeed(otf.tool("otf-compile"), "--recipe=turboquant", "--print-recipe"))
        self.assertEqual(printed, {"name": "turboquant", "linear": "ternary_sign", "vocabulary": "f16", "group": 64, "outliers": 0,
                                   "head": "linear", "fit": "published", "rotation": "hadamard", "rotation-block": 1024, "seed": 0})


class Rotations(unittest.TestCase):
    def logits(self, **keys):
        with tempfile.TemporaryDirectory() as folder:
            plan = compiled(folder, LLAMA, recipe(folder, **keys))
            return otf.run(plan, otf.prompt_inputs([5, 7, 11, 2, 40, 9]))["logits"].astype(np.float64)

    def test_floats_do_not_change(self):
        plain = otf.run(otf.plan(LLAMA), otf.prompt_inputs([5, 7, 11, 2, 40, 9]))["logits"].astype(np.float64)
        for keys in ({"rotation": "hadamard"}, {"rotation": "kronecker", "seed": 3}, {"rotation": "hadamard", "rotation-block": 8}):
            with self.subTest(**keys):
                rotated = self.logits(linear="f32", **keys)
                self.assertLess(np.linalg.norm(rotated - plain), 5e-6 * np.linalg.norm(plain))
                self.assertFalse(np.array_equal(rotated, plain))

    def test_int8_is_as_good_rotated(self):
        plain = otf.run(otf.plan(LLAMA), otf.prompt_inputs([5, 7, 11, 2, 40, 9]))["logits"].astype(np.float64)
        error = lambda **keys: np.linalg.norm(self.logits(linear="int8", **keys) - plain) / np.linalg.norm(plain)
        straight = error()
        for keys in ({"rotation": "hadamard"}, {"rotation": "kronecker", "seed": 3}):
            with self.subTest(**keys):
                self.assertLess(error(**keys), 1.5 * straight + 1e-3)

    def test_the_report_names_them(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", "--recipe=turboquant", "--report", report)
            tensors = json.loads(report.read_text())["tensors"]
        rotated = [t for t in tensors if "rotation" in t]
        self.assertGreaterEqual(len(rotated), 14)
        self.assertTrue(all(t["rotation"].startswith("#otf.rotation<block = ") and "ternary_sign" in t["kept"] for t in rotated))

    def test_outer_blocks_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            path = recipe(folder, linear="ternary_sign", group=64, rotation="hadamard", **{"keep-first": 1})
            otf.succeed(otf.tool("otf-compile"), LLAMA, "--dry-run", f"--recipe={path}", "--report", report)
            tensors = [t for t in json.loads(report.read_text())["tensors"] if not t["vocabulary"] and "encoding" in t["kept"]]
        self.assertEqual(14, len(tensors))  # of two blocks
        self.assertEqual(["f16" in t["kept"] and "rotation" not in t for t in tensors], [True] * 7 + [False] * 7)

    def test_what_does_not_go_together_is_refused(self):
        cases = {
            "'rotation' must be none, hadamard or kronecker": {"linear": "int4", "rotation": "fourier"},
            "'rotation' changes the weights of linears, but linear is given": {"linear": "given", "rotation": "hadamard"},
            "'rotation' changes the weights of linears, but linear is f16": {"linear": "f16", "rotation": "hadamard"},
            "'keep-first' is a number of blocks": {"linear": "int4", "keep-first": -1},
            "'keep-last' keeps blocks in f16, but linear is f16 anyway": {"linear": "f16", "keep-last": 1},
            "'rotation' would mix 'outliers'": {"linear": "int4", "rotation": "hadamard", "outliers": 0.01},
            "'rotation-block' must be a power of two": {"linear": "int4", "rotation": "hadamard", "rotation-block": 48},
            "'rotation-block' needs a rotation": {"linear": "int4", "rotation-block": 64},
            "'seed' needs a rotation": {"linear": "int4", "seed": 4},
            "'seed' must not be negative": {"linear": "int4", "rotation": "hadamard", "seed": -1},
            "'fit' is of ternary_sign": {"linear": "int4", "fit": "joint"},
            "'fit' must be published or joint": {"linear": "ternary_sign", "fit": "best"},
            "'head' must be vocabulary or linear": {"linear": "int4", "head": "int4"},
        }
        with tempfile.TemporaryDirectory() as folder:
            for message, keys in cases.items():
                with self.subTest(message=message):
                    status, _, error = otf.call(otf.tool("otf-compile"), LLAMA, "--dry-run", f"--recipe={recipe(folder, **keys)}")
                    self.assertEqual(status, 1)
                    self.assertIn(message, error)
