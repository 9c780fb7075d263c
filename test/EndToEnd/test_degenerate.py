# SPDX-License-Identifier: Apache-2.0
"""Weights that are no noise, through compiler and runtime: zeros, rows of one value, one huge weight, one column, groups longer than a row; what is not finite is refused by name.

test/Encoding/DegenerateTest.cpp has the same for every encoding.
"""
import json
import pathlib
import tempfile
import unittest

import numpy as np
from onnx import helper
from test_calibrate import save

import otf

COLUMNS, ROWS = 96, 24
RECIPES = [{"linear": "int4", "group": 128},  # longer than a row
           {"linear": "int8", "group": 0},
           {"linear": "int4", "group": 32, "rounding": "feedback"},
           {"linear": "codebook2", "group": 128, "rounding": "feedback", "rotation": "kronecker", "seed": 1},
           {"linear": "ternary_sign", "group": 64, "rotation": "kronecker", "seed": 1},
           {"linear": "planes3x2", "group": 0},
           {"linear": "planes3x4", "group": 128, "rotation": "kronecker", "seed": 1},
           {"linear": "planes3x3", "group": 0, "rounding": "feedback", "rotation": "kronecker", "seed": 1}]


class Degenerate(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.rng = np.random.default_rng(3)
        normal = lambda *shape: self.rng.standard_normal(shape).astype(np.float32)
        outlier = 0.02 * normal(COLUMNS, ROWS)
        outlier[50, 7] = 20000
        self.weights = {"zeros": np.zeros((COLUMNS, ROWS), np.float32), "equal": np.full((COLUMNS, ROWS), -0.375, np.float32),
                        "outlier": outlier, "column": normal(1, ROWS)}

    def write(self, weights):
        """y_NAME = -(x W) for each weight; one of a single column has an input of its own."""
        nodes = []
        for name, w in weights.items():
            nodes += [helper.make_node("MatMul", ["x" if len(w) > 1 else "one", name], [f"p_{name}"], name=f"dense_{name}"),
                      helper.make_node("Neg", [f"p_{name}"], [f"y_{name}"])]
        inputs = [("x", ["n", COLUMNS])] + [("one", ["n", 1])] * any(len(w) == 1 for w in weights.values())
        save(self.folder / "model.onnx", nodes, weights, inputs, [(f"y_{name}", ["n", ROWS]) for name in weights])
        samples = self.folder / "samples"
        samples.mkdir(exist_ok=True)
        self.x = {name: self.rng.standard_normal((400, shape[1])).astype(np.float32) for name, shape in inputs}
        for name, x in self.x.items():
            np.save(samples / f"{name}.npy", x)

    def command(self, recipe):
        (self.folder / "r.json").write_text(json.dumps({"name": "r", "vocabulary": "f16", **recipe}))
        calibrate = [f"--calibrate={self.folder / 'samples'}"] if "rounding" in recipe else []
        return [otf.tool("otf-compile"), self.folder / "model.onnx", "-o", self.folder / "m.plan", f"--recipe={self.folder / 'r.json'}",
                *otf.target_flags(), *calibrate]

    def test_coded(self):
        self.write(self.weights)
        for recipe in RECIPES:
            with self.subTest(**recipe):
                otf.succeed(*self.command(recipe))
                got = otf.run(self.folder / "m.plan", self.x)
                for name, w in self.weights.items():
                    exact = -(self.x["x" if len(w) > 1 else "one"].astype(np.float64) @ w)
                    y = got[f"y_{name}"]
                    self.assertTrue(np.isfinite(y).all(), name)
                    if name == "zeros":
                        self.assertTrue((y == 0).all())
                    else:  # no worse than zeros, and one column is nearly exact
                        self.assertLessEqual(np.linalg.norm(y - exact), (0.1 if name == "column" else 1) * np.linalg.norm(exact), name)

    def test_what_is_not_finite_may_stay(self):
        """--allow-nonfinite: such a weight is f32 whatever the recipe says, and the others are coded."""
        for recipe in ({"linear": "int4"}, {"linear": "f16"}, {"linear": "planes3x3", "group": 0, "rotation": "kronecker", "seed": 1},
                       {"linear": "codebook2", "outliers": 0.05}, {"linear": "int4", "rounding": "feedback"}):
            for bad in (np.nan, np.inf):
                with self.subTest(bad=bad, **recipe):
                    w = self.rng.standard_normal((COLUMNS, ROWS)).astype(np.float32)
                    w[3, 5] = bad
                    self.write({"fine": self.weights["equal"], "broken": w})
                    report = self.folder / "report.json"
                    status, _, error = otf.call(*self.command(recipe), "--allow-nonfinite", f"--report={report}")
                    self.assertEqual(0, status, error)
                    self.assertIn("broken: stays f32: 1 of its elements are NaN or infinite, the first in row 5, column 3", error)
                    self.assertEqual(1, error.count("stays f32"))  # calibration, which compiles too, does not say it again
                    kept = {t["name"]: t["kept"] for t in json.loads(report.read_text())["tensors"]}
                    self.assertEqual("#otf.encoding<f32>", kept["broken"])
                    self.assertNotEqual("#otf.encoding<f32>", kept["fine"])
                    got = otf.run(self.folder / "m.plan", self.x)
                    y, others = got["y_broken"], np.arange(ROWS) != 5
                    self.assertFalse(np.isfinite(y[:, 5]).any())
                    exact = -(self.x["x"].astype(np.float64) @ w[:, others])
                    self.assertLess(np.linalg.norm(y[:, others] - exact), 1e-5 * np.linalg.norm(exact))
                    self.assertTrue(np.isfinite(got["y_fine"]).all())

    def test_what_is_not_finite_is_refused_by_name(self):
        for recipe in (RECIPES[0], RECIPES[2], RECIPES[6], RECIPES[7]):
            for bad in (np.nan, np.inf):
                with self.subTest(bad=bad, **recipe):
                    w = self.weights["equal"].copy()
                    w[3, 5] = bad
                    self.write({"fine": self.weights["outlier"], "broken": w})
                    status, _, error = otf.call(*self.command(recipe))
                    self.assertEqual(1, status, error)
                    self.assertEqual(1, len(error.strip().splitlines()), error)
                    self.assertIn("broken", error)
                    self.assertFalse((self.folder / "m.plan").exists())
