# SPDX-License-Identifier: Apache-2.0
"""Bases that layers share: the recipe `otf-rla` against numpy, on layers that do share one and on layers that do not."""
import json

import numpy as np
import otf
from onnx import helper
from recipes import RecipeTest, half
from test_calibrate import save


def shared(weights, rank, sweeps=0):
    """Base, and A and Bᵀ of each, as the plan holds them; and what they leave of the weights before factors are f16."""
    weights = np.asarray(weights, np.float64)
    parts = np.zeros_like(weights)
    for _ in range(sweeps + 1):
        base = half((weights - parts).mean(0).astype(np.float32))
        factors = []
        for i, weight in enumerate(weights):
            u, s, vt = np.linalg.svd(weight - base, full_matrices=False)
            factors.append(((u * s)[:, :rank], vt[:rank]))
            parts[i] = factors[-1][0] @ factors[-1][1]
    return base, [(half(a), half(b)) for a, b in factors], np.square(weights - base - parts).sum()


class Bases(RecipeTest):
    def build(self, weights):
        """A result for each layer, which all read x; so with x = 1 results are weights."""
        self.weights = np.asarray(weights, np.float32)
        layers, rows, columns = self.weights.shape
        nodes = []
        for i in range(layers):
            nodes += [helper.make_node("MatMul", ["x", f"w{i}"], [f"p{i}"]), helper.make_node("Neg", [f"p{i}"], [f"y{i}"])]
        save(self.model, nodes, {f"w{i}": np.ascontiguousarray(w.T) for i, w in enumerate(self.weights)}, [("x", ["n", columns])],
             [(f"y{i}", ["n", rows]) for i in range(layers)])

    def decoded(self, keys):
        plan, report = self.compile(keys)
        y = otf.run(plan, {"x": np.eye(self.weights.shape[2], dtype=np.float32)})
        return np.stack([-y[f"y{i}"].T for i in range(len(self.weights))]).astype(np.float64), report

    def test_a_plan_holds_what_numpy_finds(self):
        for shape, rank, sweeps in (((4, 24, 40), 3, 0), ((3, 40, 24), 2, 2), ((2, 8, 100), 8, 0)):
            with self.subTest(shape=shape, rank=rank, sweeps=sweeps):
                self.build(np.random.default_rng(rank).standard_normal(shape))
                got, report = self.decoded({"linear": "f16", "base": "shared", "rank": rank, "sweeps": sweeps})
                base, factors, rest = shared(self.weights, rank, sweeps)
                self.assert_close(got, np.stack([base + a @ b for a, b in factors]), 2e-5)
                self.assertAlmostEqual(report["linears"]["relative_error"], np.sqrt(rest / np.square(self.weights.astype(np.float64)).sum()), delta=1e-3)

    def test_layers_that_share_a_base_are_recovered(self):
        rng = np.random.default_rng(1)
        base = rng.standard_normal((40, 64))
        self.build([base + rng.standard_normal((40, 2)) @ rng.standard_normal((2, 64)) for _ in range(4)])
        # The mean holds a part of each difference, which are of rank 8 together.
        got, report = self.decoded({"linear": "f16", "base": "shared", "rank": 8})
        self.assert_close(got, self.weights, 1e-3)  # f16
        parts = [t for t in report["tensors"] if "derived" in t]
        self.assertEqual(["base"] + ["base_left"] * 4 + ["base_right"] * 4, sorted(t["derived"] for t in parts))
        self.assertEqual(report["linears"]["elements"], 4 * 40 * 64)
        self.assertAlmostEqual(report["linear_bits_per_weight"], 16 / 4 + 16 * 8 * (40 + 64) / (40 * 64), delta=0.3)  # tiles are padded

    def test_sweeps_lose_no_more(self):
        self.build(np.random.default_rng(2).standard_normal((5, 20, 30)))
        losses = []
        for sweeps in (0, 1, 4):
            got, _ = self.decoded({"linear": "f16", "base": "shared", "rank": 3, "sweeps": sweeps})
            losses.append(np.square(got - self.weights).sum())
        self.assertLessEqual(losses[1], losses[0] * (1 + 1e-4))
        self.assertLessEqual(losses[2], losses[1] * (1 + 1e-4))

    def test_blocks_are_found_and_the_rest_stays(self):
        with self.subTest("a decoder"):
            self.model = otf.fixtures / "llama-optimum" / "model.onnx"
            _, report = self.compile("otf-rla")
            bases = [t for t in report["tensors"] if t.get("derived") == "base"]
            self.assertEqual(7, len(bases))
            self.assertEqual(14, sum(t.get("derived") == "base_left" for t in report["tensors"]))
            self.assertEqual(4, len(otf.generate(self.folder / "model.plan", [5, 7, 11], 4)))

    def test_the_built_in_one_says_so_and_needs_blocks(self):
        printed = json.loads(otf.succeed(otf.tool("otf-compile"), "--recipe=otf-rla", "--print-recipe"))
        self.assertEqual(printed, {"name": "otf-rla", "linear": "f16", "vocabulary": "f16", "base": "shared", "sweeps": 0, "rank": 32})
        self.build(np.ones((1, 8, 8)))
        self.assertIn("finds no blocks whose weights could share a base", self.refused("otf-rla"))
