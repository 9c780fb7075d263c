# SPDX-License-Identifier: Apache-2.0
"""What tests of recipes share: small models with calibration, and codecs in plain numpy, written from the recipes' text."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
import otf


def half(values):
    return np.asarray(values, np.float64).astype(np.float16).astype(np.float64)


def symmetric(weight, most, group=32, stored=half):
    """Integers of -most to most with one scale a group: s = max |w| / most, f16 unless `stored` says otherwise, q = rint(w / s). `group` 0 is a row. The decoded weight."""
    weight = np.asarray(weight, np.float64)
    out = np.empty_like(weight)
    step = group or weight.shape[1]
    for begin in range(0, weight.shape[1], step):
        part = weight[:, begin:begin + step]
        scale = stored(np.abs(part).max(1, keepdims=True) / most)
        out[:, begin:begin + step] = scale * np.clip(np.rint(part / np.where(scale == 0, 1, scale)), -most, most)
    return out


def low_rank(error, moments, rank):
    """P and Q of the error of a weight, as f16, and what the exact ones leave of tr(E H Eᵀ)."""
    values, vectors = np.linalg.eigh(error @ moments @ error.T)
    left = vectors[:, ::-1][:, :rank]
    return half(left), half(left.T @ error), values[:max(0, len(values) - rank)].sum()


class RecipeTest(unittest.TestCase):
    """A folder with a model in it, which `compile` calibrates on `samples`."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model.onnx"

    def calibrate_on(self, **samples):
        (self.folder / "samples").mkdir(exist_ok=True)
        for name, array in samples.items():
            np.save(self.folder / "samples" / f"{name}.npy", array)

    def recipe(self, keys):
        path = self.folder / "recipe.json"
        path.write_text(json.dumps({"name": "test", "vocabulary": "f16", **keys}))
        return path

    def compile(self, keys, *flags):
        """A plan and its report. `keys` may be the name of a recipe."""
        recipe = keys if isinstance(keys, str) else self.recipe(keys)
        plan, report = self.folder / "model.plan", self.folder / "report.json"
        calibrate = [f"--calibrate={self.folder / 'samples'}"] if (self.folder / "samples").exists() else []
        otf.succeed(otf.tool("otf-compile"), self.model, "-o", plan, f"--recipe={recipe}", f"--report={report}", *calibrate, *otf.target_flags(), *flags)
        return plan, json.loads(report.read_text())

    def refused(self, keys, *flags):
        recipe = keys if isinstance(keys, str) else self.recipe(keys)
        status, out, error = otf.call(otf.tool("otf-compile"), self.model, "--dry-run", f"--recipe={recipe}", *flags)
        self.assertEqual(1, status, out + error)
        return error

    def assert_close(self, got, want, relative):
        self.assertLess(np.linalg.norm(np.asarray(got, np.float64) - want), relative * np.linalg.norm(want))
