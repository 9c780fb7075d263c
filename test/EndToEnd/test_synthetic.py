# SPDX-License-Identifier: Apache-2.0
"""`--synthetic-weights`: a graph whose weights are absent becomes a plan that runs, the same for the same seed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import otf

SCRIPT = otf.here.parent.parent / "models" / "synthetic.py"


class Synthetic(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        subprocess.run([sys.executable, SCRIPT, "tiny", "-o", self.folder / "tiny", "--context", "64"], check=True)

    def compile(self, name, *flags):
        return otf.call(otf.tool("otf-compile"), self.folder / "tiny", "-o", self.folder / name, "--recipe=rtn4", *flags)

    def test_a_seed_gives_one_plan_for_any_threads(self):
        for name, seed, threads in (("a", 1, 1), ("b", 1, 3), ("c", 2, 1)):
            status, out, error = self.compile(name, f"--synthetic-weights={seed}", f"--threads={threads}")
            self.assertEqual(status, 0, error)
            self.assertRegex(out, rf"\d+ weights are made up, with seed {seed}")
        a, b, c = ((self.folder / name).read_bytes() for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        ids = np.array([[5, 9, 3]], np.int64)
        out = otf.run(self.folder / "a", {"input_ids": ids, "position_ids": np.array([[0, 1, 2]], np.int64)})
        logits = out["logits"]
        self.assertTrue(np.isfinite(logits).all())
        self.assertTrue(0.2 < logits.std() < 5, logits.std())

    def test_absent_weights_are_an_error_without_it(self):
        status, _, error = self.compile("a")
        self.assertEqual(status, 1)
        self.assertIn("external data 'absent.data': the file cannot be found", error)
        self.assertIn("--synthetic-weights=SEED", error)

    def test_a_whole_model_is_refused(self):
        model = sorted(otf.fixtures.glob("*/model.onnx"))[0]
        status, _, error = otf.call(otf.tool("otf-compile"), model, "--dry-run", "--synthetic-weights=1")
        self.assertEqual(status, 1)
        self.assertIn("no weight is missing", error)

    def test_it_learns_nothing(self):
        status, _, error = self.compile("a", "--synthetic-weights=1", "--calibrate=default")
        self.assertEqual(status, 2)
        self.assertIn("--synthetic-weights and --calibrate exclude each other", error)
