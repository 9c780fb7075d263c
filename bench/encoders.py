# SPDX-License-Identifier: Apache-2.0
"""An encoder beside ONNX Runtime in f32, at batches of one and eight sequences.

    # build/models/minilm: sentence-transformers/all-MiniLM-L6-v2 as ONNX, float weights
    build/venv/bin/python bench/encoders.py --model build/models/minilm/model.onnx --threads 2
"""
import argparse
import pathlib
import tempfile

import numpy as np
from beside_ort import ROOT, Ours, Peer, compare, compiled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build/models/minilm/model.onnx")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--recipe", default="none")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(args.build, args.model, args.recipe, folder)
        for batch in (1, 8):
            shape = (batch, args.sequence)
            rng = np.random.default_rng(batch)
            feeds = {"input_ids": rng.integers(1000, 30000, shape), "attention_mask": np.ones(shape, np.int64),
                     "token_type_ids": np.zeros(shape, np.int64)}
            compare(f"{args.model.parent.name} {batch} x {args.sequence}, {args.recipe}, {args.threads} threads",
                    Ours(args.build, plan, feeds, args.threads), Peer(args.model, feeds, args.threads), args.rounds, args.runs)


main()
