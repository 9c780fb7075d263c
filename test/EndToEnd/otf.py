# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests share: the tools of one build, plans that are compiled once, and a watch over memory.

`run.py` fills the settings below from its command line.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import numpy as np

here = pathlib.Path(__file__).resolve().parent
fixtures = here / "fixtures"
build = here.parent.parent / "build"
target = "cpu"  # what plans are compiled for and run on
smollm2 = {"f32": None, "f16": None, "f32-genai": None, "f32-opset23": None}  # folders, where they are there


def tool(name):
    return str(build / "bin" / name)


def call(*command, **options):
    """Runs a tool and gives its exit status, standard output and standard error.

    otf-compile makes code for this machine unless the command says otherwise: code for other instruction sets is never
    run here, and takes as long to make. (test_fixtures makes all; GoogleTest tries what each level does.)
    """
    command = [str(part) for part in command]
    if command[0] == tool("otf-compile") and not any(part.startswith("--cpu-arch") for part in command):
        command.append("--cpu-arch=native")
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    return done.returncode, done.stdout, done.stderr


def succeed(*command, **options):
    status, out, error = call(*command, **options)
    if status != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\nexit {status}: {error.strip()}")
    return out


def target_flags():
    """Of otf-compile. The machine that runs a plan compiles it for its own GPU."""
    return [f"--target={target}", *(["--cuda-arch=none"] if target == "cuda" else [])]


def plan(model, recipe="none"):
    """The plan of a model by a built-in recipe or a file of one. It is compiled again only when the compiler or the model is newer, so a second run is quick."""
    model = pathlib.Path(model)
    folder = build / "test-plans"
    folder.mkdir(parents=True, exist_ok=True)
    name = model.name if model.is_dir() else f"{model.parent.name}-{model.stem}"
    path = folder / f"{name}-{pathlib.Path(recipe).stem}{'' if target == 'cpu' else '-' + target}.plan"
    newest = max(os.stat(file).st_mtime for file in (tool("otf-compile"), model, recipe) if os.path.exists(file))
    if not path.exists() or path.stat().st_mtime < newest:
        succeed(tool("otf-compile"), model, "-o", path, f"--recipe={recipe}", *target_flags())
    return path


def run(plan_path, inputs, *flags):
    """Arrays in, arrays out, by name, through `otf-exec run`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [tool("otf-exec"), "run", plan_path, f"--device={target}", "--output-dir", folder / "out", *flags]
        for number, (name, array) in enumerate(inputs.items()):
            np.save(folder / f"{number}.npy", array)
            command += ["--input", f"{name}={folder / f'{number}.npy'}"]
        succeed(*command)
        return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def generate(plan_path, ids, count, *flags):
    """Greedy tokens after `ids`."""
    out = succeed(tool("otf-exec"), "generate", plan_path, "--prompt-ids", ",".join(map(str, ids)), "--greedy",
                  "--ignore-eos", "--max-tokens", count, "--json", f"--device={target}", *flags)
    return json.loads(out)["ids"]


def prompt_inputs(ids):
    """Inputs of a decoder for one prompt without a past."""
    ids = np.array([ids], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.shape[1])[None]}


def peak_anonymous(*command):
    """Runs a command and gives (exit status, standard error, largest RssAnon in bytes seen while it ran).

    VmHWM would count pages of mapped files, which are not the process's own.
    """
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak, status = 0, pathlib.Path(f"/proc/{process.pid}/status")
    error = []
    reader = threading.Thread(target=lambda: error.append(process.stderr.read()))
    reader.start()
    while process.poll() is None:
        try:
            line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon:"))
            peak = max(peak, int(line.split()[1]) * 1024)
        except (OSError, StopIteration):
            pass  # it is just ending
        time.sleep(0.002)
    reader.join()
    process.stderr.close()
    return process.returncode, error[0], peak


def copy_fixture(name, to):
    """A writable copy of a fixture's model in its own folder."""
    folder = pathlib.Path(to) / name
    folder.mkdir()
    shutil.copy(fixtures / name / "model.onnx", folder)
    return folder
