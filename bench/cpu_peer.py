# SPDX-License-Identifier: Apache-2.0
"""One measurement of one peer in a process of its own (run with the peers' interpreter); prints a line of JSON.

  llama.cpp|ik|ik-repacked FILE.gguf THREADS PROMPT TOKENS LONG
  onnxruntime MODEL.onnx THREADS PROMPT TOKENS LONG
  matmul MODEL.onnx THREADS ROWS

Decoding is greedy, TOKENS after PROMPT; prefill is of LONG tokens with an empty cache. "first" is from the start of loading to the
first token after PROMPT. The llama.cpp families are called through their C interface; f16 caches, flash attention where it is their default.
"""
import ctypes
import importlib.util
import json
import pathlib
import sys
import time


def folder_of(package):
    spec = importlib.util.find_spec(package)
    if spec is None:
        sys.exit(f"cpu_peer: the package {package} is not installed")
    return pathlib.Path(spec.submodule_search_locations[0])


class Opaque(ctypes.Structure):
    """A parameter struct by value: larger than it is, and known by few offsets only (System V ABI: read from the stack)."""
    _fields_ = [("bytes", ctypes.c_uint8 * 1024)]


class Batch(ctypes.Structure):
    """llama_batch of either family, and room behind it."""
    _fields_ = [("bytes", ctypes.c_uint8 * 256)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)


class Llama:
    def __init__(self, family, path, threads, context):
        own = family != "llama.cpp"
        if own:
            import ik_llama_cpp._ctypes_api as api
            library = api._lib if hasattr(api, "_lib") else ctypes.CDLL(str(folder_of("ik_llama_cpp") / "lib" / "libllama.so"))
        else:
            library = ctypes.CDLL(str(next(folder_of("xllamacpp").glob("xllamacpp*.so"))))
        call = lambda name, result, *kinds: self.bind(library, name, result, kinds)
        call("llama_log_set", None, ctypes.c_void_p, ctypes.c_void_p)(LOG, None)
        call("llama_backend_init", None)()
        if own:
            model_params = api.llama_model_default_params()
            model_params.use_mmap = model_params.repack_tensors = family == "ik-repacked"
            model_params.use_mmap = family != "ik-repacked"
            context_params = api.llama_context_default_params()
            kinds = (type(model_params), type(context_params))
            context_params.n_ctx = context
            context_params.n_batch = context_params.n_ubatch = 512
        else:
            model_params = call("llama_model_default_params", Opaque)()
            context_params = call("llama_context_default_params", Opaque)()
            kinds = (Opaque, Opaque)
            ctypes.memmove(context_params.bytes, ctypes.byref(ctypes.c_uint32(context)), 4)  # n_ctx is the first member
        self.model = call("llama_model_load_from_file", ctypes.c_void_p, ctypes.c_char_p, kinds[0])(path.encode(), model_params)
        if not self.model:
            sys.exit(f"cpu_peer: {path} cannot be loaded")
        self.context = call("llama_init_from_model", ctypes.c_void_p, ctypes.c_void_p, kinds[1])(self.model, context_params)
        call("llama_set_n_threads", None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)(self.context, threads, threads)
        if own:
            # The third and fourth argument are the first position and the sequence, here.
            one = call("llama_batch_get_one", Batch, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
            self.batch = lambda ids, count, at: one(ids, count, at, 0)
            clear = call("llama_kv_cache_clear", None, ctypes.c_void_p)
            self.clear = lambda: clear(self.context)
        else:
            one = call("llama_batch_get_one", Batch, ctypes.c_void_p, ctypes.c_int32)
            self.batch = lambda ids, count, at: one(ids, count)
            memory = call("llama_get_memory", ctypes.c_void_p, ctypes.c_void_p)
            clear = call("llama_memory_clear", None, ctypes.c_void_p, ctypes.c_bool)
            self.clear = lambda: clear(memory(self.context), True)
        self.run = call("llama_decode", ctypes.c_int32, ctypes.c_void_p, Batch)
        self.logits = call("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), ctypes.c_void_p, ctypes.c_int32)
        self.width = None

    @staticmethod
    def bind(library, name, result, kinds):
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(kinds)
        return function

    def feed(self, ids, at):
        """Gives the likeliest next token."""
        import numpy as np
        array = (ctypes.c_int32 * len(ids))(*ids)
        if self.run(self.context, self.batch(ctypes.cast(array, ctypes.c_void_p), len(ids), at)) != 0:
            sys.exit("cpu_peer: llama_decode failed")
        return int(np.ctypeslib.as_array(self.logits(self.context, -1), (49152,)).argmax())

    def prefill(self, ids):
        self.clear()
        return self.feed(ids, 0)

    def append(self, token, at):
        return self.feed([token], at)


class Onnx:
    """A decoder of ONNX Runtime GenAI's builder: GroupQueryAttention, past and present share buffers (IO binding)."""

    def __init__(self, path, threads, context):
        import numpy as np
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.np, self.ort = np, ort
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = {i.name for i in self.session.get_inputs()}
        width = lambda i: i.shape[3] if isinstance(i.shape[3], int) else 64  # SmolLM2's, where the graph does not say
        self.caches = {i.name: ort.OrtValue.ortvalue_from_numpy(np.zeros((1, i.shape[1], context, width(i)), np.float32))
                       for i in self.session.get_inputs() if i.name.startswith("past_key_values.")}

    def feed(self, ids, at):
        np, binding = self.np, self.session.io_binding()
        feeds = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, at + len(ids)), np.int64),
                 "position_ids": np.arange(at, at + len(ids))[None]}
        for name, array in feeds.items():
            if name in self.names:
                binding.bind_cpu_input(name, np.ascontiguousarray(array))
        for name, cache in self.caches.items():
            binding.bind_ortvalue_input(name, cache)
            binding.bind_ortvalue_output(name.replace("past_key_values.", "present."), cache)
        binding.bind_output("logits")
        self.session.run_with_iobinding(binding)
        return int(binding.get_outputs()[-1].numpy()[0, -1].argmax())

    def prefill(self, ids):
        return self.feed(ids, 0)

    def append(self, token, at):
        return self.feed([token], at)


def decoder(kind, path, threads, prompt, tokens, long):
    start = time.perf_counter()
    peer = Onnx(path, threads, long + tokens + prompt) if kind == "onnxruntime" else Llama(kind, path, threads, long + tokens + prompt)
    loaded = time.perf_counter() - start
    ids = lambda count: [i % 100 for i in range(count)]  # as otf-exec bench has it
    token = peer.prefill(ids(prompt))
    first = time.perf_counter() - start
    for turn in range(2):  # the first one warms up
        token = peer.prefill(ids(prompt))
        made, begin, processor = [], time.perf_counter(), time.process_time()
        for i in range(tokens if turn else 4):
            token = peer.append(token, prompt + i)
            made.append(token)
        decode, decode_cpu = time.perf_counter() - begin, time.process_time() - processor
    for turn in range(2):
        begin, processor = time.perf_counter(), time.process_time()
        peer.prefill(ids(long))
        prefill, prefill_cpu = time.perf_counter() - begin, time.process_time() - processor
    return {"decode": tokens / decode, "prefill": long / prefill, "decode_cpu": tokens / decode_cpu, "prefill_cpu": long / prefill_cpu,
            "load": loaded, "first": first, "ids": made[:8]}


def matmul(path, threads, rows):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    width = session.get_inputs()[0].shape[1]
    x = np.random.default_rng(1).standard_normal((rows, width), np.float32)
    times, count = [], len(session.get_outputs())
    for _ in range(16):
        begin = time.perf_counter()
        session.run(None, {"x": x})
        times.append((time.perf_counter() - begin) / count)
    return {"microseconds": min(times[1:]) * 1e6}


def main():
    kind, path, *rest = sys.argv[1:]
    numbers = [int(n) for n in rest]
    print(json.dumps(matmul(path, *numbers) if kind == "matmul" else decoder(kind, path, *numbers)))


main()
