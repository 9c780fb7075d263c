# SPDX-License-Identifier: Apache-2.0
"""Runs a plan and ONNX Runtime on the same model and inputs in interleaved rounds; a ratio is formed inside each round.

Figures of different rounds or machines are not comparable; the median of the ratios and its spread are what counts.
"""
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parent.parent


def compiled(build, model, recipe, folder, target="cpu", *flags):
    plan = pathlib.Path(folder) / f"{model.parent.name}-{recipe}.plan"
    subprocess.run([build / "bin/otf-compile", model, "-o", plan, f"--recipe={recipe}", f"--target={target}",
                    *(["--cuda-arch=none"] if target == "cuda" else []), *flags], check=True, stdout=subprocess.DEVNULL)
    return plan


class Ours:
    def __init__(self, build, plan, feeds, threads, device="cpu"):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name) / "out"
        self.command = [build / "bin/otf-exec", "run", plan, f"--device={device}", "--threads", str(threads), "--output-dir", self.out]
        for number, (name, array) in enumerate(feeds.items()):
            path = pathlib.Path(self.folder.name) / f"{number}.npy"
            np.save(path, array)
            self.command += ["--input", f"{name}={path}"]

    def milliseconds(self, runs):
        text = subprocess.run([*map(str, self.command), "--repeat", str(runs)], check=True, capture_output=True, text=True).stdout
        return statistics.median(float(t) for t in text[text.index("[") + 1 : text.index("]")].split(","))

    def output(self, name):
        return np.load(self.out / (name.replace("/", "_") + ".npy"))


class Peer:
    def __init__(self, model, feeds, threads, exact=False):
        """`exact`: products of 8 bits do not saturate."""
        options = ort.SessionOptions()
        if exact:
            options.add_session_config_entry("session.x64quantprecision", "1")
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.feeds = feeds

    def milliseconds(self, runs):
        self.session.run(None, self.feeds)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)

    def outputs(self):
        return dict(zip((o.name for o in self.session.get_outputs()), self.session.run(None, self.feeds)))


def lowest_cosine(mine, theirs):
    """Of vectors along the last axis of a sequence; of whole items where there are images or few numbers."""
    if mine.ndim != 3 or mine.shape[-1] < 16:
        mine, theirs = (x.reshape(x.shape[0] if x.ndim > 1 and x[0].size >= 16 else 1, -1) for x in (mine, theirs))
    norms = np.linalg.norm(mine, axis=-1) * np.linalg.norm(theirs, axis=-1)
    dots = np.sum(mine * theirs, axis=-1)
    return float(np.min(np.where(norms > 0, dots / np.where(norms > 0, norms, 1), np.all(mine == theirs, axis=-1)), initial=1.0))


def compare(title, ours, peer, rounds, runs, reference=None):
    """Prints one line and gives the median ratio: above 1 is faster than ONNX Runtime. Outputs are compared with those of `reference`, or the peer's."""
    pairs = [(ours.milliseconds(runs), peer.milliseconds(runs)) for _ in range(rounds)]
    ratios = sorted(theirs / mine for mine, theirs in pairs)
    outputs = [(ours.output(name).astype(np.float64), value.astype(np.float64)) for name, value in (reference or peer).outputs().items()]
    error = max(float(np.max(np.abs(mine - theirs), initial=0.0)) for mine, theirs in outputs)
    cosine = min(lowest_cosine(mine, theirs) for mine, theirs in outputs)
    means = [lowest_cosine(mine.mean(1), theirs.mean(1)) for mine, theirs in outputs if mine.ndim == 3]
    print(f"{title}: {statistics.median(m for m, _ in pairs):.2f} ms, ONNX Runtime {statistics.median(t for _, t in pairs):.2f} ms, "
          f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), largest difference {error:.1e}, min cosine {cosine:.6f}"
          + (f", of means {min(means):.6f}" if means else ""), flush=True)
    return statistics.median(ratios)
