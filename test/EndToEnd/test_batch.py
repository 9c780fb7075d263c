# SPDX-License-Identifier: Apache-2.0
"""otf-exec batch: many runs in one process, and a run that fails does not end it."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import otf


class Batch(unittest.TestCase):
    def batch(self, lines):
        done = subprocess.run([otf.tool("otf-exec"), "batch", f"--device={otf.target}"], input="\n".join(lines) + "\n",
                              capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_runs_go_on_after_a_failure(self):
        plan = str(otf.plan(otf.fixtures / "digits" / "model.onnx"))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            x = np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 64)
            np.save(folder / "x.npy", x)
            np.save(folder / "wrong.npy", x[:, :5])
            line = lambda number, file: json.dumps({"plan": plan, "inputs": {"pixels": str(folder / file)},
                                                    "output_dir": str(folder / str(number))})
            status, said, error = self.batch([line(0, "x.npy"), line(1, "wrong.npy"), line(2, "x.npy")])
            self.assertEqual((0, "0\n1\n0\n"), (status, said), error)
            self.assertRegex(error, r"^error: [^\n]*pixels[^\n]*\n$")
            want = otf.run(plan, {"pixels": x})["logits"]
            for number in (0, 2):
                np.testing.assert_array_equal(want, np.load(folder / str(number) / "logits.npy"))

    def test_a_line_of_another_form_ends_it(self):
        for line in ("", "[]", '{"plan": "x"}', '{"plan": "x", "inputs": {"a": 1}, "output_dir": "y"}', "{" * 100):
            status, said, error = self.batch([line])
            self.assertEqual((2, ""), (status, said))
            self.assertTrue(error.startswith("error: standard input: expected {"), error)
            self.assertEqual(1, error.count("\n"))
