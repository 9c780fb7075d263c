# SPDX-License-Identifier: Apache-2.0
"""An encoder beside ONNX Runtime, in f32 or (--peer=int8) dynamic int8, at batches of one and eight sequences.

    # build/models/minilm: sentence-transformers/all-MiniLM-L6-v2 as ONNX, float weights, with its tokenizer.json
    build/venv/bin/python bench/encoders.py --model build/models/minilm/model.onnx --threads 2
    build/venv/bin/python bench/encoders.py --recipe w8a8 --text evaluation.txt --calibration calibration.txt

Sequences are random tokens, or the text's. Outputs are compared with those of ONNX Runtime in f32.
"""
import argparse
import pathlib
import tempfile

import numpy as np
from beside_ort import ROOT, Ours, Peer, compare, compiled


def inputs(ids):
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def sequences(model, text, count, length):
    """Of a text, one after another, each with the tokens that the tokenizer puts at its ends."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model.parent / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    first, *_, last = tokenizer.encode("a").ids
    ids = tokenizer.encode(text.read_text(), add_special_tokens=False).ids
    inner = length - 2
    if len(ids) < count * inner:
        raise SystemExit(f"{text} has {len(ids)} tokens, and {count * inner} are wanted")
    return np.array([[first, *ids[i * inner : (i + 1) * inner], last] for i in range(count)], np.int64)


def dynamic_int8(model):
    """The same model as ONNX Runtime quantizes it: weights by column, and 7 bits where products of 8 would saturate."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    made = model.with_name("dynamic-int8.onnx")
    if not made.exists():
        vnni = "vnni" in pathlib.Path("/proc/cpuinfo").read_text()
        quantize_dynamic(model, made, per_channel=True, reduce_range=not vnni, weight_type=QuantType.QInt8)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build/models/minilm/model.onnx")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--recipe", default="none")
    parser.add_argument("--text", type=pathlib.Path, help="what to run on; random tokens by default")
    parser.add_argument("--calibration", type=pathlib.Path, help="text for recipes that need statistics: its first 16 sequences")
    parser.add_argument("--peer", choices=("f32", "int8"), default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flags = []
        if args.calibration:
            samples = pathlib.Path(folder) / "samples"
            samples.mkdir()
            for name, array in inputs(sequences(args.model, args.calibration, 16, args.sequence)).items():
                np.save(samples / f"{name}.npy", array)
            flags = [f"--calibrate={samples}", f"--calibration-out={folder}/statistics.safetensors"]
        plan = compiled(args.build, args.model, args.recipe, folder, "cpu", *flags)
        for batch in (1, 8):
            if args.text:
                ids = sequences(args.model, args.text, batch, args.sequence)
            else:
                ids = np.random.default_rng(batch).integers(1000, 30000, (batch, args.sequence))
            feeds = inputs(ids)
            exact = Peer(args.model, feeds, args.threads)
            peer = Peer(dynamic_int8(args.model), feeds, args.threads) if args.peer == "int8" else exact
            compare(f"{args.model.parent.name} {batch} x {args.sequence}, {args.recipe} beside {args.peer}, {args.threads} threads",
                    Ours(args.build, plan, feeds, args.threads), peer, args.rounds, args.runs, exact)


main()
