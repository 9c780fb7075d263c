# SPDX-License-Identifier: Apache-2.0
"""What a low rank gives back of a coded weight: against numpy, against singular values, and by its bits."""
import json

import numpy as np
import otf
from onnx import helper
from recipes import RecipeTest, low_rank, symmetric
from test_calibrate import save

W4A32 = {"linear": "int4", "group": 32, "activations": "f32"}


class LowRank(RecipeTest):
    def build(self, rows=48, columns=96, causes=12, noise=0.3):
        rng = np.random.default_rng(rows + causes)
        self.weight = rng.standard_normal((rows, columns)).astype(np.float32)
        # Negated, since what only a matrix gives is a head.
        save(self.model, [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Neg", ["p"], ["y"])],
             {"w": np.ascontiguousarray(self.weight.T)}, [("x", ["n", columns])], [("y", ["n", rows])])
        hidden = rng.standard_normal((causes, columns))
        self.samples = (rng.standard_normal((300, causes)) @ hidden + noise * rng.standard_normal((300, columns))).astype(np.float32)
        self.calibrate_on(x=self.samples)
        wide = self.samples.astype(np.float64)
        self.moments = wide.T @ wide

    def loss(self, keys):
        y = otf.run(self.compile(keys)[0], {"x": self.samples})["y"]
        exact = -(self.samples.astype(np.float64) @ self.weight.T.astype(np.float64))
        return np.square(y - exact).sum()

    def test_a_plan_computes_what_numpy_does(self):
        for rows, columns in ((48, 96), (96, 48), (10, 100), (5, 33)):
            with self.subTest(rows=rows, columns=columns):
                self.build(rows, columns)
                coded = symmetric(self.weight, 7)
                left, right, rest = low_rank(self.weight - coded, self.moments, 4)
                plan, report = self.compile({**W4A32, "rank": 4})
                y = otf.run(plan, {"x": self.samples})["y"]
                self.assert_close(y, -(self.samples.astype(np.float64) @ (coded + left @ right).T), 1e-5)
                # What is left of the error is the sum of the smaller singular values' squares, but for the factors' f16.
                self.assertAlmostEqual(self.loss({**W4A32, "rank": 4}) / rest, 1, delta=2e-3)
                # All parts count, over the model's elements.
                parts = [t for t in report["tensors"] if not t["vocabulary"]]
                self.assertEqual([None, "left", "right"], sorted((t.get("derived") for t in parts), key=str))
                self.assertAlmostEqual(report["linear_bits_per_weight"], 8 * sum(t["bytes"] for t in parts) / (rows * columns))
                self.assertEqual(report["linears"]["elements"], rows * columns)
                told = json.loads(otf.succeed(otf.tool("otf-exec"), "info", plan, "--json"))
                self.assertAlmostEqual(report["total"]["bits"], told["weights"]["total"]["bits"])
                error = self.weight - coded
                leaves = [t["leaves_of_error"] for t in parts if "leaves_of_error" in t]
                self.assertEqual(1, len(leaves))
                self.assertAlmostEqual(leaves[0], rest / np.trace(error @ self.moments @ error.T), delta=1e-4)

    def test_it_helps_whatever_the_codes(self):
        self.build()
        for keys in ({"linear": "int4", "group": 32}, {"linear": "codebook2", "group": 32, "outliers": 0.03}, {"linear": "int4", "group": 32, "rounding": "feedback"},
                     {"linear": "planes3x2", "group": 0, "rotation": "kronecker"}, {"linear": "ternary_sign", "group": 64, "rotation": "hadamard"}):
            with self.subTest(**keys):
                # int8 activations lose what no factor gives back.
                self.assertLess(self.loss({**keys, "rank": 8}), 0.8 * self.loss(keys))

    def test_a_rank_is_at_most_the_weights(self):
        self.build(3, 40)
        _, report = self.compile({**W4A32, "rank": 16})
        self.assertEqual([3], [t["rank"] for t in report["tensors"] if "rank" in t])

    def test_the_gate_lets_through_what_pays(self):
        # One rank costs half a bit here, which would take away half of the error.
        for causes, noise, pays in ((1, 0.05, True), (60, 1.0, False)):
            with self.subTest(causes=causes):
                self.build(causes=causes, noise=noise)
                left, right, rest = low_rank(self.weight - symmetric(self.weight, 7), self.moments, 1)
                error = self.weight - symmetric(self.weight, 7)
                captured = 1 - rest / np.trace(error @ self.moments @ error.T)
                bits = 16 * (48 + 96) / (48 * 96)
                self.assertEqual(pays, captured > 1 - 2 ** (-2 * bits))
                _, report = self.compile({**W4A32, "rank": 1, "rank-gate": "break-even"})
                self.assertEqual(pays, any("derived" in t for t in report["tensors"]))

    def test_a_plan_has_the_same_bytes_for_any_number_of_threads(self):
        self.build()
        one, two = (self.compile({"linear": "int4", "rank": 4, "rounding": "feedback"}, f"--threads={n}")[0].read_bytes() for n in (1, 2))
        self.assertEqual(one, two)

    def test_what_it_needs(self):
        self.build()
        self.assertIn("gives back the low rank that inputs miss most, and nothing is known", self.refused({"linear": "int4", "rank": 4}, "--calibrate=none"))
        self.assertIn("'rank' gives back what coding loses, but linear is f16", self.refused({"linear": "f16", "rank": 4}))
        self.assertIn("'rank' is from 0 to 4096", self.refused({"linear": "int4", "rank": -1}))
        self.assertIn("'rank-gate' must be none or break-even", self.refused({"linear": "int4", "rank": 4, "rank-gate": "yes"}))
        self.assertIn("'rank-gate' needs a 'rank'", self.refused({"linear": "int4", "rank-gate": "break-even"}))
        self.assertIn("'rank' and 'activations' of static", self.refused({"linear": "int8", "group": 0, "activations": "static", "rank": 4}))
        self.assertIn("'choices' go with none of 'rank'", self.refused({"linear": "int4", "rank": 4, "choices": ["int4", "int8"], "budget": "6bpw"}))
        self.assertIn("'activations' of f32 need 'linear' of int8 or int4", self.refused({"linear": "codebook2", "activations": "f32"}))
        self.assertIn("'activations' of row are for coded linears", self.refused({"linear": "f16", "activations": "row"}))
        self.assertIn("'activations' of f32 and 'outliers'", self.refused({"linear": "int4", "activations": "f32", "outliers": 0.1}))
