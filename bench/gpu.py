# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M on a GPU: agreement with the CPU plan first, then tokens a second beside the usual PyTorch stack.

For each recipe one plan with both targets is compiled. The relative logit error is |cpu - cuda| / |cpu - mean(cpu)| over all
positions of the stored prompts. Speeds are medians of `--rounds` processes, the peer's (Hugging Face transformers, random
f16 weights of the same shape, eager and as a CUDA graph) taken in the same run; the peer is left out by name where torch
or transformers is missing.

    build/venv/bin/python bench/gpu.py --model build/models/smollm2-f32 --model-f16 build/models/smollm2-f16
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPTS = json.loads((ROOT / "models" / "smollm2" / "reference.json").read_text())["prompts"]


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def logits(exec_, plan, ids, device, folder):
    count = len(ids)
    values = {"input_ids": [ids], "attention_mask": [[1] * count], "position_ids": [list(range(count))]}
    flags = []
    for name, value in values.items():
        np.save(folder / f"{name}.npy", np.array(value, np.int64))
        flags += ["--input", f"{name}={folder / name}.npy"]
    call(exec_, "run", plan, "--device", device, *flags, "--output-dir", folder / "out")
    return np.load(folder / "out" / "logits.npy")[0].astype(np.float64)


def agreement(exec_, plan, folder):
    worst = 0.0
    for prompt in PROMPTS:
        cpu, cuda = (logits(exec_, plan, prompt["ids"], device, folder) for device in ("cpu", "cuda"))
        worst = max(worst, np.linalg.norm(cpu - cuda) / np.linalg.norm(cpu - cpu.mean(-1, keepdims=True)))
    return worst


def greedy(exec_, plan):
    """Prompts whose 48 greedy tokens on the GPU are the stored ones."""
    equal = 0
    for prompt in PROMPTS:
        out = call(exec_, "generate", plan, "--device", "cuda", "--prompt-ids", ",".join(map(str, prompt["ids"])), "--greedy",
                   "--ignore-eos", "--max-tokens", 48, "--json")
        equal += json.loads(out)["ids"] == prompt["greedy"]
    return equal


def speed(exec_, plan, rounds):
    runs = [json.loads(call(exec_, "bench", plan, "--device", "cuda", "--prompt-tokens", 128, "--tokens", 128, "--repeat", 3, "--json"))
            for _ in range(rounds)]
    return [statistics.median(run["tokens_per_second"][phase] for run in runs) for phase in ("decode", "prefill")]


def peer():
    """Tokens a second of transformers at batch 1 with a static cache: eager, and replayed as a CUDA graph."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig, StaticCache
    except ImportError as missing:
        return f"not run: {missing}"
    config = LlamaConfig(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
                         vocab_size=49152, tie_word_embeddings=True, max_position_embeddings=8192)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float16).eval().to(torch.float16)
    cache = StaticCache(config=config, max_cache_len=512, max_batch_size=1, device="cuda", dtype=torch.float16)
    token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
    position = torch.tensor([32], device="cuda")

    def step():
        return model(token, past_key_values=cache, cache_position=position, position_ids=position[None], use_cache=True).logits[:, -1].argmax(-1)

    def rate(run, count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        torch.cuda.synchronize()
        return count / (time.perf_counter() - start)

    with torch.inference_mode():
        model(torch.randint(0, 49152, (1, 32), device="cuda"), past_key_values=cache, cache_position=torch.arange(32, device="cuda"), use_cache=True)
        for _ in range(5):
            step()
        eager = rate(step, 30)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        replay = rate(graph.replay, 300)
    return f"eager {eager:.0f}, in a CUDA graph {replay:.0f} tokens/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--model", required=True)
    parser.add_argument("--model-f16")
    parser.add_argument("--cuda-arch", default="sm_90")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    exec_ = args.bin / "otf-exec"
    print(f"{'recipe':14} {'bits/weight':>11} {'logit error':>12} {'decode/s':>9} {'prefill/s':>10}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cases = [("none f32", args.model, "none"), ("none f16", args.model_f16, "none"), ("rtn8", args.model, "rtn8"),
                 ("rtn4", args.model, "rtn4"), ("otf-int2", args.model, "otf-int2")]
        for name, model, recipe in cases:
            if not model:
                continue
            plan = folder / "m.plan"
            call(args.bin / "otf-compile", model, "-o", plan, f"--recipe={recipe}", "--target=cpu,cuda", f"--cuda-arch={args.cuda_arch}")
            bits = json.loads(call(exec_, "info", plan, "--json"))["weights"]["total"]["bits"]
            error = agreement(exec_, plan, folder)
            decode, prefill = speed(exec_, plan, args.rounds)
            print(f"{name:14} {bits:11.3f} {error:12.2e} {decode:9.0f} {prefill:10.0f}", flush=True)
            if name == "none f32":
                print(f"  48 greedy tokens equal to the stored ones on {greedy(exec_, plan)} of {len(PROMPTS)} prompts", flush=True)
    print("transformers, f16, batch 1:", peer())


main()
