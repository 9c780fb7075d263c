# SPDX-License-Identifier: Apache-2.0
"""Relative transfer and low ranks on the digits MLP: a published experiment again, its table beside ours.

    build/venv/bin/python examples/digits.py MODELS

MODELS is a folder with
    model*.onnx         MLPs 64 -> 64 -> 10 (Gemm, Relu, Gemm): f32 `pixels` [batch, 64] to `logits` [batch, 10]; five initialisations in the experiment
    calibration.npy     f32 [359, 64], 8 x 8 digits of scikit-learn divided by 16
    test_inputs.npy     f32 [360, 64]
    test_labels.npy     int64 [360]
Published are neither seeds nor training, so models are of one's own training: MLPClassifier((64,), alpha=1e-4, max_iter=600, random_state=0 ... 4) on the other
1,078 images of a stratified split, its coefficients as Gemm. Nothing is trained after coding. Figures are means over the models:
accuracy on the labels, agreement with the f32 model's largest logit, and the relative error of all logits, ||y - y_f32|| / ||y_f32||.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "EndToEnd"))
import otf

INT4 = {"name": "digits", "linear": "int4", "group": 32, "activations": "f32", "head": "linear"}
RELATIVE = {**INT4, "power": 1.0, "center": True}

# Name, recipe (None: as given), and what was published of it: accuracy and agreement in per cent, error.
ROWS = [
    ("f32", None, (97.1111, 100, 0)),
    ("absolute int4", INT4, (97.0000, 99.2222, .07005)),
    ("relative int4, power 1, center", RELATIVE, (97.0556, 99.3333, .04671)),
    ("the same, rank 4", {**RELATIVE, "rank": 4}, (97.1111, 99.7778, .02124)),
    ("absolute int4, rank 4", {**INT4, "rank": 4}, None),
    ("int4, center alone", {**INT4, "power": 0.0, "center": True}, None),
]


class Experiment:
    def __init__(self, models, scratch):
        self.models = sorted(models.glob("model*.onnx"))
        self.models = [m for m in self.models if m.stem == "model" or m.stem.startswith("model_seed")]
        if not self.models:
            sys.exit(f"{models}: no model.onnx or model_seed*.onnx")
        self.x, self.labels = np.load(models / "test_inputs.npy"), np.load(models / "test_labels.npy")
        self.scratch = scratch
        samples = scratch / "samples"
        samples.mkdir()
        np.save(samples / "pixels.npy", np.load(models / "calibration.npy"))
        self.exact = [self.logits(model, None)[0] for model in self.models]

    def logits(self, model, recipe):
        """Of the test images, and the bits a weight that the plan spends on linears."""
        plan, report = self.scratch / "model.plan", self.scratch / "report.json"
        command = [otf.tool("otf-compile"), model, "-o", plan, f"--report={report}"]
        if recipe:
            path = self.scratch / "recipe.json"
            path.write_text(json.dumps(recipe))
            statistics = self.scratch / f"{model.stem}.calibration.safetensors"
            command += [f"--recipe={path}", f"--calibrate={self.scratch / 'samples'}", f"--calibration-out={statistics}"]
        otf.succeed(*command)
        return otf.run(plan, {"pixels": self.x})["logits"].astype(np.float64), json.loads(report.read_text())["linear_bits_per_weight"]

    def row(self, recipe):
        """Accuracy, agreement, error, bits: means over the models."""
        figures = []
        for model, exact in zip(self.models, self.exact):
            y, bits = self.logits(model, recipe)
            best = y.argmax(1)
            figures.append((100 * np.mean(best == self.labels), 100 * np.mean(best == exact.argmax(1)),
                            np.linalg.norm(y - exact) / np.linalg.norm(exact), bits))
        return np.mean(figures, axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, metavar="MODELS")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args = parser.parse_args()
    otf.build = args.build.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        experiment = Experiment(args.models, pathlib.Path(scratch))
        print("| variant | published: accuracy, agreement, error | measured | bits a weight |\n| --- | --- | --- | --- |")
        for name, recipe, published in ROWS:
            accuracy, agreement, error, bits = experiment.row(recipe)
            theirs = "{:.2f} %, {:.2f} %, {:.4f}".format(*published) if published else ""
            print(f"| {name} | {theirs} | {accuracy:.2f} %, {agreement:.2f} %, {error:.4f} | {bits:.2f} |", flush=True)
        print(f"\nmeans over {len(experiment.models)} models, {len(experiment.x)} test images")


main()
