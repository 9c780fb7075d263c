# SPDX-License-Identifier: Apache-2.0
"""The examples run and print their tables beside the published ones: on small models, so figures say only what holds for any."""
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy as np
import otf
from test_calibrate import tokenizer

EXAMPLES = otf.here.parent.parent / "examples"


def table(text):
    """Cells of each row of the printed table, by the first."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines[1:] if not cells[0].startswith("---")}


class Examples(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def test_digits(self):
        shutil.copy(otf.fixtures / "digits" / "model.onnx", self.folder / "model.onnx")
        rng = np.random.default_rng(2)
        images = np.clip(rng.standard_normal((260, 64)) * 0.3 + 0.3, 0, 1).astype(np.float32)
        np.save(self.folder / "calibration.npy", images[:200])
        np.save(self.folder / "test_inputs.npy", images[200:])
        exact = otf.run(otf.plan(self.folder / "model.onnx"), {"pixels": images[200:]})["logits"]
        np.save(self.folder / "test_labels.npy", exact.argmax(1))  # so f32 is right always
        rows = table(otf.succeed(sys.executable, EXAMPLES / "digits.py", self.folder, "--build", otf.build))
        self.assertEqual(["f32", "absolute int4", "relative int4, power 1, center", "the same, rank 4", "absolute int4, rank 4", "int4, center alone"], list(rows))
        self.assertEqual("97.11 %, 100.00 %, 0.0000", rows["f32"][0])  # published
        self.assertEqual(["100.00 %, 100.00 %, 0.0000", "32.00"], rows["f32"][1:])
        errors = {name: float(cells[1].split(", ")[2]) for name, cells in rows.items()}
        self.assertLess(0.005, errors["absolute int4"])
        self.assertLess(errors["absolute int4"], 0.3)
        self.assertLess(errors["absolute int4, rank 4"], errors["absolute int4"])
        self.assertLess(errors["the same, rank 4"], errors["relative int4, power 1, center"])

    def test_tables_of_a_language_model(self):
        model = otf.copy_fixture("llama-optimum", self.folder)
        (model / "tokenizer.json").write_text(tokenizer())
        text, other = self.folder / "text.txt", self.folder / "calibration.txt"
        text.write_text("The river leaves the hills a little above the old mill. " * 8)
        other.write_text("A road of stone went up beside it, and nobody took that road. " * 20)
        out = otf.succeed(sys.executable, EXAMPLES / "smollm2_tables.py", model, "--text", text, "--calibrate", other, "--calibrate-tokens=1024", "--blocks=2",
                          "--rounds=1", "--build", otf.build, "--row", "int4, rank 8", "--row", "relative int8 G128, W8A8")
        rows = table(out)
        self.assertEqual(["f32", "int4, rank 8", "relative int8 G128, W8A8"], list(rows))
        self.assertIn("1.87×", rows["relative int8 G128, W8A8"][0])  # published
        for name in ("int4, rank 8", "relative int8 G128, W8A8"):
            ratio, top1, kl, bits = (float(cell.split()[0]) for cell in rows[name][1:5])
            self.assertAlmostEqual(1, ratio, delta=0.05)
            self.assertLess(0.9, top1)
            self.assertLess(kl, 0.05)
            self.assertLess(4 if "int4" in name else 8, bits)  # scales and factors are counted
            self.assertRegex(rows[name][6], r"^\d+ ms \(\d\.\d\d×\)$")
        self.assertIn("256 predictions of text.txt", out)


if __name__ == "__main__":
    unittest.main()
