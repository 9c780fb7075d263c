# SPDX-License-Identifier: Apache-2.0
"""The recipe `otf-int4` against a plain model of it: outlier columns by norm times mean |x|, int8 rows of the embedding, and a head of its own."""
import json

import numpy as np
import otf
from onnx import TensorProto, helper, numpy_helper
import onnx
from recipes import RecipeTest, half, symmetric


def records(x, order, outliers):
    """What kernels read: columns in the order of the weight, int8 with a scale for each 32, and the last `outliers` as they are."""
    x = x[:, order].astype(np.float32)
    kept = x.shape[1] - outliers
    out = x.astype(np.float64)
    for begin in range(0, kept, 32):
        part = x[:, begin:min(begin + 32, kept)]
        scale = np.abs(part).max(1, keepdims=True) / np.float32(127)
        out[:, begin:begin + part.shape[1]] = np.rint(part / np.where(scale == 0, np.float32(1), scale)).astype(np.float64) * scale
    return out


def linear(weight, x, seen, fraction=0.01):
    """x Wᵀ by the recipe; `seen` are the inputs that calibration has seen."""
    score = np.linalg.norm(weight.astype(np.float64), axis=0) * np.abs(seen.astype(np.float64)).mean(0)
    count = int(np.floor(fraction * weight.shape[1] + 0.5))
    outliers = np.sort(np.argsort(-score, kind="stable")[:count])
    order = np.concatenate([np.setdiff1d(np.arange(weight.shape[1]), outliers), outliers]).astype(int)
    ordered = weight[:, order]
    kept = weight.shape[1] - count
    decoded = np.concatenate([symmetric(ordered[:, :kept], 7), half(ordered[:, kept:])], axis=1)
    return records(x, order, count) @ decoded.T, outliers


class Int4(RecipeTest):
    def build(self, vocabulary=60, width=150, tied=True):
        """An embedding, a layer, and a head that is the table again, or another."""
        rng = np.random.default_rng(9)
        self.table = (rng.standard_normal((vocabulary, width)) * np.exp(rng.standard_normal(width))).astype(np.float32)
        self.weight = (rng.standard_normal((width, width)) / 12).astype(np.float32)
        self.head = self.table if tied else rng.standard_normal((vocabulary, width)).astype(np.float32)
        arrays = {"table": self.table, "w": self.weight, **({} if tied else {"head": self.head})}
        nodes = [helper.make_node("Gather", ["table", "ids"], ["e"]), helper.make_node("Gemm", ["e", "w"], ["a"], transB=1),
                 helper.make_node("Relu", ["a"], ["h"]), helper.make_node("Gemm", ["h", "table" if tied else "head"], ["logits"], transB=1)]
        graph = helper.make_graph(nodes, "test", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
                                  [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", vocabulary])],
                                  [numpy_helper.from_array(array, name) for name, array in arrays.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model)
        self.ids = rng.integers(0, vocabulary, 40)
        self.calibrate_on(ids=self.ids)

    def expected(self, ids):
        seen = self.table[self.ids]
        hidden_seen = np.maximum(seen @ self.weight.T, 0)
        embedded = symmetric(self.table, 127, 0)[ids].astype(np.float32)
        a, self.outliers = linear(self.weight, embedded, seen)
        logits, self.head_outliers = linear(self.head, np.maximum(a, 0).astype(np.float32), hidden_seen)
        return logits

    def test_a_plan_computes_what_numpy_does(self):
        for tied in (True, False):
            with self.subTest(tied=tied):
                self.build(tied=tied)
                plan, report = self.compile("otf-int4")
                ids = np.arange(60)
                # A code of an activation that lies between two may fall either way.
                self.assert_close(otf.run(plan, {"ids": ids})["logits"], self.expected(ids), 2e-3)
                annotated = otf.succeed(otf.tool("otf-compile"), self.model, "--emit=annotated", "--recipe=otf-int4")
                for outliers in (self.outliers, self.head_outliers):
                    self.assertIn(f"outliers = #otf.outliers<[{', '.join(map(str, outliers))}]>", annotated)

    def test_a_tied_table_is_held_and_counted_twice(self):
        self.build()
        _, report = self.compile("otf-int4")
        tables = [t for t in report["tensors"] if t["vocabulary"]]
        self.assertEqual(["#otf.encoding<int4, group = 32>", "#otf.encoding<int8>"], sorted(t["kept"] for t in tables))
        self.assertEqual(report["vocabulary"]["bytes"], sum(t["bytes"] for t in tables))
        self.assertEqual([(2, "column norm times mean |x|")] * 2, [(t["outliers"], t["outliers_by"]) for t in report["tensors"] if "int4" in t["kept"]])
        printed = json.loads(otf.succeed(otf.tool("otf-compile"), "--recipe=otf-int4", "--print-recipe"))
        _, shared = self.compile({k: v for k, v in printed.items() if k not in ("name", "tied-head")})
        self.assertEqual(["#otf.encoding<int8>"], [t["kept"] for t in shared["tensors"] if t["vocabulary"]])
        self.assertLess(shared["vocabulary"]["bytes"], report["vocabulary"]["bytes"])

    def test_the_built_in_one_says_so(self):
        printed = json.loads(otf.succeed(otf.tool("otf-compile"), "--recipe=otf-int4", "--print-recipe"))
        self.assertEqual(printed, {"name": "otf-int4", "linear": "int4", "vocabulary": "int8", "group": 32, "vocabulary-group": 0, "outliers": 0.01,
                                   "head": "linear", "tied-head": "coded"})
