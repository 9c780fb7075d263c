# SPDX-License-Identifier: Apache-2.0
"""Scales of 32 bits (`"scale": "f32"`): s = max |w| / 127 or / 7 as f32, the rest as with scales of 16 bits; and weights that are too small for those."""
import json

import numpy as np
import otf
from onnx import helper
from recipes import RecipeTest, symmetric
from test_calibrate import save


def single(values):
    return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


class Scales(RecipeTest):
    def build(self, size=1.0, columns=150, rows=21):
        """y = x Wᵀ with rows of quite different size."""
        rng = np.random.default_rng(11)
        self.weight = (size * rng.standard_normal((rows, columns)) * np.exp(rng.standard_normal((rows, 1)))).astype(np.float32)
        # Neg, so that the weight is a linear's and no vocabulary table.
        save(self.model, [helper.make_node("MatMul", ["x", "w"], ["p"], name="dense"), helper.make_node("Neg", ["p"], ["y"])],
             {"w": np.ascontiguousarray(self.weight.T)}, [("x", ["n", columns])], [("y", ["n", rows])])
        self.x = rng.standard_normal((30, columns)).astype(np.float32)

    def product(self, decoded):
        return -(self.x.astype(np.float64) @ decoded.T)

    def test_they_are_not_rounded(self):
        self.build()
        for linear, most, group, groups, code in (("int4", 7, 32, 5, 128), ("int8", 127, 128, 2, 256), ("int8", 127, 0, 1, 256)):
            with self.subTest(linear=linear, group=group):
                keys = {"linear": linear, "group": group, "activations": "f32"}
                plan, report = self.compile({**keys, "scale": "f32"})
                y, want = otf.run(plan, {"x": self.x})["y"], self.product(symmetric(self.weight, most, group, single))
                self.assert_close(y, want, 2e-6)
                halves = otf.run(self.compile(keys)[0], {"x": self.x})["y"]
                self.assert_close(halves, self.product(symmetric(self.weight, most, group)), 2e-6)
                self.assertGreater(np.linalg.norm(halves - want), 2e-5 * np.linalg.norm(want))  # the two differ, so the above tells them apart
                tensor = next(t for t in report["tensors"] if t["name"] == "w")
                self.assertEqual(3 * (5 * code + groups * 32), tensor["bytes"])  # three tiles of five chunks, eight scales of 32 bits a group
                self.assertIn("grid", tensor["kept"])

    def test_records_and_rotations_too(self):
        self.build(columns=128)
        for keys in ({"group": 32}, {"group": 32, "activations": "row"}, {"group": 32, "rotation": "hadamard", "seed": 1}):
            with self.subTest(**keys):
                narrow, wide = (otf.run(self.compile({"linear": "int8", **keys, "scale": scale})[0], {"x": self.x})["y"] for scale in ("f16", "f32"))
                self.assert_close(wide, self.product(self.weight.astype(np.float64)), 0.02)
                self.assert_close(wide, narrow, 2e-3)
                self.assertFalse(np.array_equal(wide, narrow))

    def test_weights_below_scales_of_16_bits(self):
        self.build(size=1e-9)
        for linear in ("int8", "int4", "planes3x3"):
            with self.subTest(linear=linear):
                status, _, error = otf.call(otf.tool("otf-compile"), self.model, "--dry-run", f"--recipe={self.recipe({'linear': linear})}")
                self.assertEqual(0, status, error)
                self.assertIn("w: codes hold hardly anything of it: relative error 1.00", error)
        keys = {"linear": "int8", "group": 32, "scale": "f32", "activations": "f32"}
        status, _, error = otf.call(otf.tool("otf-compile"), self.model, "--dry-run", f"--recipe={self.recipe(keys)}")
        self.assertEqual((0, ""), (status, error))
        y = otf.run(self.compile(keys)[0], {"x": self.x})["y"]
        self.assert_close(y, self.product(symmetric(self.weight, 127, 32, single)), 2e-6)

    def test_what_they_do_not_go_with(self):
        self.build()
        printed = json.loads(otf.succeed(otf.tool("otf-compile"), f"--recipe={self.recipe({'linear': 'int4', 'scale': 'f32'})}", "--print-recipe"))
        self.assertEqual("f32", printed["scale"])
        for keys, what in (({"scale": "f64"}, "'scale' must be f16 or f32"), ({"scale": 32}, "'scale' must be a string"),
                           ({"scale": "f32", "linear": "codebook2"}, "'scale' of f32 is for 'linear' of int8 or int4, and it is codebook2"),
                           ({"scale": "f32", "vocabulary": "planes3x4"}, "'scale' of f32 is for 'vocabulary' of int8, int4 or floats"),
                           ({"scale": "f32", "outliers": 0.1}, "'scale' of f32 goes with none of 'outliers'"),
                           ({"scale": "f32", "rounding": "feedback"}, "'rounding' of feedback"),
                           ({"scale": "f32", "linear": "int8", "group": 0, "activations": "static"}, "'activations' of static")):
            with self.subTest(**keys):
                self.assertIn(what, self.refused({"linear": "int4", **keys}))
