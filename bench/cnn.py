# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks beside ONNX Runtime in f32, on inputs that come with them.

    # build/models/real/ppocr_det: the text detector of the PyPI package rapidocr, with an input as set0/input_0.npy
    build/venv/bin/python bench/cnn.py build/models/real/ppocr_det --threads 2
"""
import argparse
import pathlib
import tempfile

import numpy as np
import onnx
from beside_ort import ROOT, Ours, Peer, compare, compiled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", help="each holds model.onnx and set0/input_<i>.npy")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--recipe", default="none")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="ours; ONNX Runtime has the CPU")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    for path in args.folders:
        model = path / "model.onnx"
        graph = onnx.load(str(model), load_external_data=False).graph
        weights = {t.name for t in graph.initializer}
        names = [i.name for i in graph.input if i.name not in weights]
        feeds = {name: np.load(path / "set0" / f"input_{i}.npy") for i, name in enumerate(names)}
        with tempfile.TemporaryDirectory() as folder:
            plan = compiled(args.build, model, args.recipe, folder, args.device)
            compare(f"{path.name}, {args.recipe}, {args.device}, {args.threads} threads", Ours(args.build, plan, feeds, args.threads, args.device),
                    Peer(model, feeds, args.threads), args.rounds, args.runs)


main()
