# SPDX-License-Identifier: Apache-2.0
"""Decoding on the CPU: a 4-bit plan beside ONNX Runtime on the same graph with MatMulNBits.

The peer is the model's own graph in which every MatMul by a weight became a com.microsoft MatMulNBits: int4 in blocks of
32 (the head int8, as in the recipe rtn4), symmetric, accuracy_level 4, so int8 activations like ours. Both sides decode
after the same number of prompt tokens, in interleaved rounds; a ratio is formed inside a round and the median of the
ratios is what counts. Figures of different rounds or machines are not comparable.

    build/venv/bin/python bench/decode_cpu.py --model build/models/smollm2-f32 --threads 2
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = 32


def array_of(tensor, folder):
    if tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    place = {e.key: e.value for e in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    return np.memmap(folder / place["location"], kind, "r", int(place.get("offset", 0)), tuple(tensor.dims))


def quantize(weight, bits):
    """K x N floats -> MatMulNBits codes [N, K/32, bytes] and scales [N, K/32]; zero points are the default ones."""
    k, n = weight.shape
    blocks = -(-k // BLOCK)
    padded = np.zeros((n, blocks * BLOCK), np.float32)
    padded[:, :k] = weight.T
    groups = padded.reshape(n, blocks, BLOCK)
    top, middle = (1 << (bits - 1)) - 1, 1 << (bits - 1)
    scale = np.abs(groups).max(-1) / np.float32(top)
    safe = np.where(scale == 0, np.float32(1), scale)
    codes = (np.clip(np.rint(groups / safe[..., None]), -top, top) + middle).astype(np.uint8)
    return (codes[..., 0::2] | codes[..., 1::2] << 4) if bits == 4 else codes, scale


def peer_model(folder):
    """The model's bytes with its weights in MatMulNBits."""
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    results = {o.name for o in graph.output}
    # A tied head multiplies by the embedding, turned in the graph.
    turned = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Transpose" and n.input[0] in weights}
    fresh, used = [], set()
    for node in graph.node:
        name = turned.get(node.input[1], node.input[1]) if node.op_type == "MatMul" else None
        if name not in weights or len(weights[name].dims) != 2:
            used.update(node.input)
            continue
        weight = np.asarray(array_of(weights[name], folder), np.float32)
        weight = weight.T if node.input[1] in turned else weight
        bits = 8 if node.output[0] in results else 4
        codes, scales = quantize(weight, bits)
        fresh += [numpy_helper.from_array(codes, name + ".codes"), numpy_helper.from_array(scales, name + ".scales")]
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        del node.input[1:]
        node.input.extend([name + ".codes", name + ".scales"])
        node.attribute.extend([helper.make_attribute(key, value) for key, value in (
            ("K", weight.shape[0]), ("N", weight.shape[1]), ("bits", bits), ("block_size", BLOCK), ("accuracy_level", 4))])
        used.update(node.input)
    kept = [t if t.data_location != TensorProto.EXTERNAL else numpy_helper.from_array(np.asarray(array_of(t, folder)), t.name)
            for name, t in weights.items() if name in used or name in turned.values()]
    del graph.initializer[:]
    graph.initializer.extend(kept + fresh)
    if not any(o.domain == "com.microsoft" for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model.SerializeToString(), len(fresh) // 2


class Peer:
    def __init__(self, folder, threads):
        data, self.products = peer_model(folder)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.pasts = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]

    def step(self, ids, position, pasts):
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, position + len(ids)), np.int64),
                 "position_ids": np.arange(position, position + len(ids))[None]}
        feeds = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        logits, *presents = self.session.run_with_ort_values(self.outputs, {**feeds, **pasts})
        caches = dict(zip((name.replace("present.", "past_key_values.") for name in self.outputs[1:]), presents))
        return int(logits.numpy()[0, -1].argmax()), caches

    def decode(self, prompt, tokens):
        """Tokens a second after the prompt, greedily."""
        empty = {i.name: ort.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32)) for i in self.pasts}
        token, caches = self.step(prompt, 0, empty)
        start = time.perf_counter()
        for i in range(tokens):
            token, caches = self.step([token], len(prompt) + i, caches)
        return tokens / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build" / "models" / "smollm2-f32")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--plan", type=pathlib.Path, help="compiled with rtn4 if left out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    plan = args.plan
    if plan is None:
        plan = args.build / "bench-rtn4.plan"
        subprocess.run([args.build / "bin" / "otf-compile", args.model, "-o", plan, "--recipe=rtn4"], check=True)
    peer = Peer(args.model, args.threads)
    prompt = [i % 97 + 3 for i in range(args.prompt_tokens)]  # as otf-exec bench has it
    peer.decode(prompt, 4)

    command = [args.build / "bin" / "otf-exec", "bench", plan, "--threads", args.threads, "--prompt-tokens", args.prompt_tokens,
               "--tokens", args.tokens, "--repeat", 1, "--json"]
    rounds = []
    print(f"# {peer.products} MatMulNBits nodes, {args.threads} threads, {args.prompt_tokens} prompt tokens, {args.tokens} decoded, "
          f"onnxruntime {ort.__version__}")
    print("round  otf tokens/s  onnxruntime tokens/s  ratio")
    for number in range(args.rounds):
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        ours = json.loads(done.stdout)["tokens_per_second"]["decode"]
        theirs = peer.decode(prompt, args.tokens)
        rounds.append((ours, theirs))
        print(f"{number:5d}  {ours:12.1f}  {theirs:20.1f}  {ours / theirs:5.2f}", flush=True)
    medians = [statistics.median(column) for column in zip(*rounds)]
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    print(f"median {medians[0]:12.1f}  {medians[1]:20.1f}  {ratio:5.2f}")
    if args.json:
        args.json.write_text(json.dumps({"rounds": rounds, "otf": medians[0], "onnxruntime": medians[1], "ratio": ratio}))


main()
