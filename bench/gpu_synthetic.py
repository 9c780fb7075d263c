# SPDX-License-Identifier: Apache-2.0
"""Decode speed on a GPU of models whose weights nobody has there: graphs of models/synthetic.py with made weights.

Each model is compiled with each recipe, and its greedy decoding is timed (`otf-exec bench`, medians of --rounds processes), beside the
usual PyTorch stack on the same shape with random f16 weights, eager and as a CUDA graph, in the same run. "of bandwidth" is the
bytes of weights that a token reads by what a device-to-device copy moves a second. Before anything is timed, a model of the same
shape with two layers decodes the same tokens on the CPU and on the GPU.

    build/venv/bin/python bench/gpu_synthetic.py --models smollm2-135m,qwen2.5-3b --recipes rtn4,planes2,planes3,planes4,otf-int2 --json out.json
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Class of transformers' configuration, and what it is given.
PEERS = {
    "smollm2-135m": ("LlamaConfig", dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                                         num_key_value_heads=3, vocab_size=49152, tie_word_embeddings=True)),
    "qwen2.5-3b": ("Qwen2Config", dict(hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
                                       num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True)),
    "llama-3.1-8b": ("LlamaConfig", dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                                         num_key_value_heads=8, vocab_size=128256)),
}


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout


def compile_plan(args, model, recipe, plan, target, layers=None):
    folder = plan.parent / f"{model}-{layers or 'all'}"
    if not folder.exists():
        call(sys.executable, ROOT / "models" / "synthetic.py", model, "-o", folder, *(["--layers", layers] if layers else []))
    call(args.bin / "otf-compile", folder, "-o", plan, "--synthetic-weights=1", f"--recipe={recipe}", f"--target={target}",
         f"--cuda-arch={args.cuda_arch}", f"--threads={args.threads}")


def same_tokens(exec_, plan, count=24):
    out = [json.loads(call(exec_, "generate", plan, "--device", device, "--prompt-ids", "5,9,3,14,77,2", "--greedy", "--ignore-eos",
                           "--max-tokens", count, "--json"))["ids"] for device in ("cpu", "cuda")]
    return out[0] == out[1]


def speed(exec_, plan, rounds, prompt, tokens):
    runs = [json.loads(call(exec_, "bench", plan, "--device", "cuda", "--prompt-tokens", prompt, "--tokens", tokens, "--repeat", 5, "--json"))
            for _ in range(rounds)]
    return [statistics.median(run["tokens_per_second"][phase] for run in runs) for phase in ("decode", "prefill")]


def bandwidth():
    """Bytes a second that a copy of 4 GB reads and writes, or nothing without torch."""
    try:
        import torch
    except ImportError:
        return None
    a = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    times = []
    for _ in range(8):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        b.copy_(a)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * a.numel() / statistics.median(times)


def peer(model):
    """Tokens a second of transformers at batch 1 with a static cache: eager and as a CUDA graph; or why there are none."""
    try:
        import torch
        import transformers
    except ImportError as missing:
        return str(missing)
    kind, shape = PEERS[model]
    config = getattr(transformers, kind)(max_position_embeddings=8192, **shape)
    with torch.device("cuda"):
        net = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float16).eval().to(torch.float16)
    cache = transformers.StaticCache(config=config, max_cache_len=512, max_batch_size=1, device="cuda", dtype=torch.float16)
    token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
    position = torch.tensor([32], device="cuda")

    def step():
        return net(token, past_key_values=cache, cache_position=position, position_ids=position[None], use_cache=True).logits[:, -1].argmax(-1)

    def rate(run, count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            run()
        torch.cuda.synchronize()
        return count / (time.perf_counter() - start)

    with torch.inference_mode():
        net(torch.randint(0, 1000, (1, 32), device="cuda"), past_key_values=cache, cache_position=torch.arange(32, device="cuda"), use_cache=True)
        for _ in range(5):
            step()
        eager = rate(step, 20)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return {"eager": eager, "graph": rate(graph.replay, 150)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--models", default="smollm2-135m,qwen2.5-3b")
    parser.add_argument("--recipes", default="rtn4,planes2,planes3,planes4,otf-int2")
    parser.add_argument("--cuda-arch", default="sm_90")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    exec_, rows = args.bin / "otf-exec", []
    copied = bandwidth()
    print(f"copy: {copied * 1e-9:.0f} GB/s" if copied else "copy: not measured, torch is missing", flush=True)
    print(f"{'model':14} {'recipe':10} {'bits':>6} {'GB':>6} {'tokens':>7} {'decode/s':>9} {'prefill/s':>10} {'of bandwidth':>13}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for model in args.models.split(","):
            theirs = None if args.no_peer else peer(model)
            print(f"{model:14} transformers f16: {theirs}", flush=True)
            for recipe in args.recipes.split(","):
                plan = folder / "m.plan"
                compile_plan(args, model, recipe, plan, "cpu,cuda", layers=2)
                same = same_tokens(exec_, plan)
                compile_plan(args, model, recipe, plan, "cuda")
                info = json.loads(call(exec_, "info", plan, "--json"))["weights"]["total"]
                decode, prefill = speed(exec_, plan, args.rounds, args.prompt_tokens, args.tokens)
                row = {"model": model, "recipe": recipe, "bits": info["bits"], "bytes": info["bytes"], "tokens_as_cpu": same, "decode": decode,
                       "prefill": prefill, "of_bandwidth": copied and info["bytes"] * decode / copied, "transformers": theirs}
                rows.append(row)
                print(f"{model:14} {recipe:10} {row['bits']:6.3f} {row['bytes'] * 1e-9:6.3f} {'equal' if same else 'DIFFER':>7} {decode:9.0f} "
                      f"{prefill:10.0f} {row['of_bandwidth'] or 0:13.3f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"copy_bytes_per_second": copied, "rows": rows}, indent=1))


main()
