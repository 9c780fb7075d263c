# SPDX-License-Identifier: Apache-2.0
"""A killed compilation leaves the old plan, and `--resume` goes on with the weights that were done."""
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
from onnx import helper
from test_calibrate import save

import otf

LAYERS, WIDTH = 16, 512


def deep(path):
    rng = np.random.default_rng(1)
    nodes, weights, last = [], {}, "x"
    for i in range(LAYERS):
        weights[f"w{i}"] = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"y{i}"])]
        last = f"y{i}"
    save(path, nodes, weights, [("x", ["n", WIDTH])], [(last, ["n", WIDTH])])


class Resume(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model, self.plan = self.folder / "model.onnx", self.folder / "m.plan"
        self.data, self.journal = (self.folder / f"m.plan.unfinished{end}" for end in ("", ".journal"))
        deep(self.model)
        self.recipe("planes4x3")

    def recipe(self, linear):
        path = self.folder / "r.json"
        path.write_text(json.dumps({"name": "r", "linear": linear, "vocabulary": "f16", "group": 0}))

    def command(self, plan, *flags):
        return [str(part) for part in (otf.tool("otf-compile"), self.model, "-o", plan, f"--recipe={self.folder / 'r.json'}",
                                       f"--report={plan}.json", *flags)]

    def done(self):
        """Weights in the journal."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return sum(line[0].isdigit() for line in lines)

    def kill(self, after):
        """Ends a compilation in the middle, when `after` weights are done."""
        process = subprocess.Popen(self.command(self.plan), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while self.done() < after and process.poll() is None:
                time.sleep(0.005)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(-signal.SIGKILL, process.returncode, "it ended before it could be killed")
        self.assertTrue(after <= self.done() < LAYERS, self.done())
        return self.done()

    def refuse(self, *mentions):
        before = self.data.read_bytes(), self.journal.read_bytes()
        status, out, error = otf.call(*self.command(self.plan, "--resume"))
        self.assertEqual((1, ""), (status, out), error)
        self.assertEqual(1, len(error.strip().splitlines()), error)
        for mention in ("m.plan.unfinished: cannot be resumed", "leave out --resume", *mentions):
            self.assertIn(mention, error)
        self.assertEqual(before, (self.data.read_bytes(), self.journal.read_bytes()))

    def leftovers(self):
        return sorted(path.name for path in self.folder.glob("*unfinished*"))

    def test_killed_and_resumed(self):
        other = self.folder / "other.plan"
        otf.succeed(*self.command(other))
        self.assertEqual([], self.leftovers())
        self.plan.write_bytes(b"an older plan")
        count = self.kill(3)
        self.assertEqual(b"an older plan", self.plan.read_bytes())

        # What is not of this compilation is refused, and stays.
        self.recipe("planes3x2")
        self.refuse("another recipe")
        self.recipe("planes4x3")
        content = self.model.read_bytes()
        self.model.write_bytes(content)  # as new as another model would be
        self.refuse("another model")
        self.assertEqual(b"an older plan", self.plan.read_bytes())

        # Without --resume what was left makes no difference.
        otf.succeed(*self.command(self.plan))
        self.assertEqual(other.read_bytes(), self.plan.read_bytes())
        self.assertEqual([], self.leftovers())

        # A byte that is not what it was counts as not written, and so does what follows it.
        count = self.kill(3)
        with open(self.data, "r+b") as data:
            data.seek(4096 + 2 * WIDTH * WIDTH * 3 // 8 + 1000)
            byte = data.read(1)
            data.seek(-1, 1)
            data.write(bytes([byte[0] ^ 1]))
        out = otf.succeed(*self.command(self.plan, "--resume", "--threads=3"))
        self.assertRegex(out, f"resumed: [12] of {LAYERS} weights were there")
        self.assertEqual(other.read_bytes(), self.plan.read_bytes())

        count = self.kill(5)
        self.journal.write_bytes(self.journal.read_bytes() + b"9 1234")  # a line that was cut
        out = otf.succeed(*self.command(self.plan, "--resume", "--threads=1"))
        self.assertIn(f"resumed: {count} of {LAYERS} weights were there", out)
        self.assertEqual(other.read_bytes(), self.plan.read_bytes())
        self.assertEqual(pathlib.Path(f"{other}.json").read_bytes(), pathlib.Path(f"{self.plan}.json").read_bytes())
        self.assertEqual([], self.leftovers())

    def test_nothing_to_resume(self):
        self.recipe("int8")
        self.assertIn(f"resumed: 0 of {LAYERS}", otf.succeed(*self.command(self.plan, "--resume")))
        status, _, error = otf.call(*self.command(self.plan, "--resume", "--dry-run"))
        self.assertEqual(2, status)
        self.assertIn("--resume needs a plan to write", error)

    def test_one_writer_at_a_time(self):
        process = subprocess.Popen(self.command(self.plan), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while self.done() < 1 and process.poll() is None:
                time.sleep(0.005)
            process.send_signal(signal.SIGSTOP)  # in the middle, for as long as this takes
            self.assertIsNone(process.poll(), "it ended too soon")
            status, _, error = otf.call(*self.command(self.plan))
        finally:
            process.kill()
            process.wait()
        self.assertEqual(1, status)
        self.assertIn("another process is writing it", error)
