# SPDX-License-Identifier: Apache-2.0
"""What the runners of cases and of models share: the tools of one build, a watch over them, and the comparison of arrays."""
import pathlib
import subprocess
import threading
import time

import numpy as np


class Failure(Exception):
    """Why a case or model falls short."""


class Refusal(Failure):
    """A tool ended with status 1 and one sentence."""


class Tools:
    def __init__(self, build, target="cpu", seconds=120):
        self.build, self.target, self.seconds = build, target, seconds

    def call(self, name, *arguments, seconds=None):
        """Runs a tool; raises Refusal or Failure where it does not succeed. Gives the peak of its own memory in bytes."""
        command = [str(self.build / "bin" / name), *map(str, arguments)]
        status, error, peak = watch(command, seconds or self.seconds)
        lines = error.strip().splitlines()
        if status is None:
            raise Failure(f"{name}: no answer within {seconds or self.seconds} s")
        if status == 0:
            return peak
        if status == 1 and len(lines) == 1 and lines[0].startswith("error: "):
            refusal = Refusal(lines[0].removeprefix("error: "))
            refusal.peak = peak
            raise refusal
        raise Failure(f"{name}: exit {status}: " + " | ".join(lines[-3:]))

    def compile(self, model, plan, recipe="none", seconds=None):
        arch = ["--cuda-arch=none"] if self.target == "cuda" else []
        return self.call("otf-compile", model, "-o", plan, f"--recipe={recipe}", f"--target={self.target}", *arch, seconds=seconds)

    def run(self, plan, inputs, outputs, folder):
        """`inputs`: (name, .npy file) each. Gives the arrays of the outputs, which are named in the model's order."""
        arguments = [f"--device={self.target}", "--output-dir", folder]
        for name, path in inputs:
            arguments += ["--input", f"{name}={path}"]
        self.call("otf-exec", "run", plan, *arguments)
        return [np.load(folder / name) for name in file_names(outputs)]


def watch(command, seconds):
    """(exit status or None for a time-out, standard error, largest RssAnon seen): pages of mapped files are not counted."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    status, error, peak = pathlib.Path(f"/proc/{process.pid}/status"), [], 0
    reader = threading.Thread(target=lambda: error.append(process.stderr.read()))
    reader.start()
    end, late = time.monotonic() + seconds, False
    while process.poll() is None:
        try:
            for line in status.read_text().splitlines():
                if line.startswith("RssAnon:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        except OSError:
            pass  # it is just ending
        if time.monotonic() > end and not late:
            late = True
            process.kill()
        time.sleep(0.002)
    reader.join()
    process.stderr.close()
    return None if late else process.returncode, error[0], peak


def file_names(outputs):
    """The files that `otf-exec run` writes for these outputs."""
    used, names = set(), []
    for number, output in enumerate(outputs):
        name = "".join("_" if c == "/" or ord(c) < 0x20 or ord(c) == 0x7F else c for c in output)
        name = ("_" + name if not name or name[0] == "." else name) + ".npy"
        if len(name.encode()) > 255:
            name = f"output-{number}.npy"
        if name in used:
            name = f"output-{number}.npy"
        used.add(name)
        names.append(name)
    return names


def same_kind(name, actual, expected):
    if actual.shape != expected.shape:
        raise Failure(f"{name}: shape {list(actual.shape)}, expected {list(expected.shape)}")
    if actual.dtype != expected.dtype:
        raise Failure(f"{name}: type {actual.dtype}, expected {expected.dtype}")


def close(name, actual, expected, rtol, atol):
    same_kind(name, actual, expected)
    with np.errstate(invalid="ignore", over="ignore"):
        right = np.isclose(actual.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True)
    if not right.all():
        at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(right))[0])
        got, want = (np.atleast_1d(a)[at] for a in (actual, expected))
        raise Failure(f"{name}{list(at)}: {got}, expected {want} ({np.count_nonzero(~right)} of {right.size} differ)")


def relative(actual, expected):
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    size = np.linalg.norm(expected)
    return np.linalg.norm(actual - expected) / size if size else np.linalg.norm(actual)
