# SPDX-License-Identifier: Apache-2.0
"""An encoder that a file has quantized to int8 beside ONNX Runtime on the same file. Files are made of a float model by
onnxruntime.quantization: static as QDQ and as operators on codes, and dynamic, where products of activations (in attention) stay
floats; and QDQ of everything.

    build/venv/bin/python bench/quantized.py --float build/models/minilm/model.onnx --folder build/models/quantized --threads 2

Without VNNI, ONNX Runtime's products of 8 bits saturate by default; "exact" is its session with x64quantprecision.
"""
import argparse
import pathlib
import tempfile

import numpy as np
from beside_ort import ROOT, Ours, Peer, compare, compiled


def tokens(batch, sequence, seed):
    shape = (batch, sequence)
    return {"input_ids": np.random.default_rng(seed).integers(1000, 30000, shape), "attention_mask": np.ones(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64)}


def make(source, target, form):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    class Samples(CalibrationDataReader):
        def __init__(self):
            self.feeds = (tokens(1, 128, seed) for seed in range(8))

        def get_next(self):
            return next(self.feeds, None)

    import onnx
    graph = onnx.load(source, load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    products = [n.name for n in graph.node if n.op_type == "MatMul" and n.input[1] not in constants]
    target.parent.mkdir(parents=True, exist_ok=True)
    common = {"weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul", "Gemm"],
              "nodes_to_exclude": [] if form == "qdq-all" else products}
    if form == "dynamic":
        quantize_dynamic(source, target, **common)
    else:
        quantize_static(source, target, Samples(), quant_format=QuantFormat.QOperator if form == "operators" else QuantFormat.QDQ,
                        activation_type=QuantType.QUInt8, per_channel=form != "operators", **common)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--float", type=pathlib.Path, default=ROOT / "build/models/minilm/model.onnx")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/models/quantized")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--forms", nargs="*", default=["qdq", "operators", "dynamic", "qdq-all"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    feeds = tokens(1, args.sequence, 1)
    for form in args.forms:
        model = args.folder / f"{args.float.parent.name}-{form}" / "model.onnx"
        if not model.exists():
            make(args.float, model, form)
        with tempfile.TemporaryDirectory() as folder:
            plan = compiled(args.build, model, "none", folder)
            for exact in (False, True):
                compare(f"{model.parent.name} 1 x {args.sequence}, {args.threads} threads{', exact' if exact else ''}",
                        Ours(args.build, plan, feeds, args.threads), Peer(model, feeds, args.threads, exact), args.rounds, args.runs)


main()
