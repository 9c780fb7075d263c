# SPDX-License-Identifier: Apache-2.0
"""Bad input gives one sentence that names the file and the thing, the right exit status, and leaves nothing behind."""
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import otf


def value(name, kind=TensorProto.FLOAT, shape=("batch", 32)):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, weights, outputs=("y",), opset=18):
    graph = helper.make_graph(nodes, "bad", [value("x")], [value(name, shape=None) for name in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def weight(name="w", change=None):
    array = np.linspace(-1, 1, 32 * 32, dtype=np.float32).reshape(32, 32)
    if change is not None:
        array[3, 5] = change
    return numpy_helper.from_array(array, name)


def external(location, offset=0, length=4096, name="w"):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[32, 32], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def matmul(weights):
    return model([helper.make_node("MatMul", ["x", "w"], ["y"], name="dense")], weights)


class Bad(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def write(self, content, name="model.onnx"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
        return path

    def refuse(self, command, *mentions, status=1, **options):
        """The command fails with `status` and one sentence that holds all of `mentions`."""
        before = sorted(self.folder.rglob("*"))
        code, out, error = otf.call(*command, **options)
        self.assertEqual(status, code, error)
        self.assertEqual("", out)
        self.assertEqual(1, len(error.strip().splitlines()), error)
        self.assertTrue(error.startswith("error: "), error)
        for mention in mentions:
            self.assertIn(str(mention), error)
        self.assertEqual(before, sorted(self.folder.rglob("*")))

    def refuse_model(self, path, *mentions, recipe="none", **options):
        self.refuse([otf.tool("otf-compile"), path, "-o", self.folder / "out.plan", f"--recipe={recipe}"], path, *mentions,
                    **options)


class Models(Bad):
    def test_not_there(self):
        self.refuse_model(self.folder / "none.onnx")

    def test_not_onnx(self):
        self.refuse_model(self.write(b"PK\x03\x04 this is a zip file, not a model" * 9))

    def test_empty(self):
        self.refuse_model(self.write(b""))

    def test_truncated(self):
        whole = matmul([weight()]).SerializeToString()
        for size in (len(whole) // 3, len(whole) - 7):
            with self.subTest(size=size):
                self.refuse_model(self.write(whole[:size]))

    def test_external_file_missing(self):
        self.refuse_model(self.write(matmul([external("weights.bin")])), "w", "weights.bin")

    def test_external_file_short(self):
        self.write(b"\0" * 100, "weights.bin")
        self.refuse_model(self.write(matmul([external("weights.bin")])), "w", "weights.bin", "100")

    def test_external_path_leaves_the_folder(self):
        inner = self.folder / "inner"
        inner.mkdir()
        self.write(b"\0" * 4096, "secret.bin")
        self.refuse_model(self.write(matmul([external("../secret.bin")]), "inner/model.onnx"), "../secret.bin")
        self.refuse_model(self.write(matmul([external(str(self.folder / "secret.bin"))]), "inner/model.onnx"), "secret.bin")

    def test_all_unsupported_operators_in_one_pass(self):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="dense"),
                 helper.make_node("ImageDecoder", ["a"], ["b"], name="first"),
                 helper.make_node("RegexFullMatch", ["a"], ["c"], name="second")]
        path = self.write(model(nodes, [weight()], outputs=("b", "c")))
        self.refuse_model(path, "ImageDecoder", "first", "RegexFullMatch", "second", "18")

    def test_unsupported_type(self):
        strings = helper.make_tensor("s", TensorProto.STRING, [1], [b"text"])
        nodes = [helper.make_node("Identity", ["s"], ["y"], name="copy")]
        self.refuse_model(self.write(model(nodes, [strings])), "string")

    def test_what_is_wrong_with_several_tensors_is_one_sentence(self):
        nodes = [helper.make_node("StringConcat", ["x", "t"], ["y"]), helper.make_node("Identity", ["q"], ["z"])]
        graph = helper.make_graph(nodes, "bad", [value("x", TensorProto.STRING), value("t", TensorProto.STRING), value("q", 9999)],
                                  [value("y", TensorProto.STRING), value("z", TensorProto.FLOAT)])
        path = self.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8))
        self.refuse_model(path, "input 'x', input 't', output 'y': element type 8 (string)", "; input 'q': element type 9999")

    def test_gathered_index_out_of_bounds(self):
        graph = helper.make_graph([helper.make_node("Gather", ["t", "i"], ["y"])], "gather", [value("t", shape=(5,)),
                                  value("i", TensorProto.INT64, (1,))], [value("y", shape=None)])
        path = self.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
        plan = self.folder / "m.plan"
        otf.succeed(otf.tool("otf-compile"), path, "-o", plan)
        np.save(self.folder / "t.npy", np.zeros(5, np.float32))
        for index in (5, -6):
            np.save(self.folder / "i.npy", np.array([index]))
            self.refuse([otf.tool("otf-exec"), "run", plan, "--input", f"t={self.folder / 't.npy'}", "--input",
                         f"i={self.folder / 'i.npy'}"], "input 'i'", str(index), "-5 to 4")

    def test_weight_is_not_a_number(self):
        for change in (np.nan, np.inf):
            with self.subTest(change=change):
                for recipe in ("none", "rtn4"):
                    self.refuse_model(self.write(matmul([weight(change=change)])), "w: cannot be stored (a weight is NaN or infinite, the first in row 5, column 3",
                                      "--allow-nonfinite", recipe=recipe)

    def test_weight_is_too_large_for_f16(self):
        self.refuse_model(self.write(matmul([weight(change=3e38)])), "w", recipe="rtn4")

    def test_no_nvrtc(self):
        path = self.write(matmul([weight()]))
        environment = {**os.environ, "OTF_NVRTC": str(self.folder / "none.so")}
        self.refuse([otf.tool("otf-compile"), path, "-o", self.folder / "out.plan", "--target=cuda", "--cuda-arch", "sm_90"], path,
                    "NVRTC", "--cuda-arch=none", status=3, env=environment)

    def test_disk_is_full(self):
        # A limit on file size fails as a full disk does: a write that does not happen.
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))  # enough for the kernels, not for the weight
        path = self.write(matmul([numpy_helper.from_array(np.ones((32, 4096), np.float32), "w")]))
        out = self.folder / "out.plan"
        self.refuse([otf.tool("otf-compile"), path, "-o", out], out, preexec_fn=limit)
        out.write_bytes(b"older")
        self.refuse([otf.tool("otf-compile"), path, "-o", out], out, preexec_fn=limit)
        self.assertEqual(b"older", out.read_bytes())

    def test_folder_of_the_plan_is_missing(self):
        path = self.write(matmul([weight()]))
        self.refuse([otf.tool("otf-compile"), path, "-o", self.folder / "no" / "out.plan"], "no")


class Hostile(Bad):
    """A few hundred bytes that ask for more than there is. Each found a crash or gigabytes of memory once."""

    def refuse_hostile(self, nodes, weights=(), *mentions, outputs=("y",), shape=("batch", 4), functions=(), domains=()):
        graph = helper.make_graph(nodes, "hostile", [value("x", shape=shape)], [value(o, shape=None) for o in outputs], list(weights))
        imports = [helper.make_opsetid("", 18), *(helper.make_opsetid(domain, 1) for domain in domains)]
        path = self.write(helper.make_model(graph, opset_imports=imports, ir_version=9, functions=list(functions)))
        status, error, peak = otf.peak_anonymous(otf.tool("otf-compile"), path, "-o", self.folder / "out.plan")
        self.assertEqual((1, 1), (status, len(error.splitlines())), error)
        self.assertLess(peak, (64 << 20) + 4 * path.stat().st_size)
        for mention in mentions:
            self.assertIn(mention, error)

    @staticmethod
    def integers(name, values):
        return numpy_helper.from_array(np.array(values, np.int64), name)

    def test_sizes_that_double(self):
        nodes = [helper.make_node("Shape", ["x"], ["s0"])]
        nodes += [helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(40)]
        self.refuse_hostile([*nodes, helper.make_node("Cast", ["s40"], ["y"], to=1)], (), "sizes (at most 4096")

    def test_a_shape_of_2_to_the_36_dimensions(self):
        self.refuse_hostile([helper.make_node("ConstantOfShape", ["n"], ["s"], value=self.integers("", [3])),
                             helper.make_node("Reshape", ["x", "s"], ["y"])], [self.integers("n", [2**36])], "68719476736 dimensions")

    def test_an_input_of_many_dimensions(self):
        self.refuse_hostile([helper.make_node("Neg", ["x"], ["y"])], (), "input 'x'", "100000 dimensions", shape=[1] * 100000)

    def test_an_operator_with_many_inputs(self):
        self.refuse_hostile([helper.make_node("Concat", ["x"] * 5000, ["y"], axis=0)], (), "5000 inputs")

    def test_functions_that_double(self):
        functions = [helper.make_function("own", "f0", ["a"], ["c"], [helper.make_node("Neg", ["a"], ["c"])], [helper.make_opsetid("", 18)])]
        for i in range(1, 30):
            calls = [helper.make_node(f"f{i - 1}", [a], [c], domain="own") for a, c in ("ab", "bc")]
            functions.append(helper.make_function("own", f"f{i}", ["a"], ["c"], calls, [helper.make_opsetid("own", 1)]))
        self.refuse_hostile([helper.make_node("f29", ["x"], ["y"], domain="own")], (), "half a million nodes", functions=functions,
                            domains=["own"])

    def test_bounds_that_are_no_scalars(self):
        bounds = numpy_helper.from_array(np.array([1, 2], np.float32), "b")
        self.refuse_hostile([helper.make_node("Clip", ["x", "b"], ["y"])], [bounds], "Clip")

    def test_an_output_that_the_operator_does_not_have(self):
        self.refuse_hostile([helper.make_node("Softmax", ["x"], ["y", "z"])], (), "no output 1", outputs=("y", "z"))

    def test_an_output_twice(self):
        self.refuse_hostile([helper.make_node("Neg", ["x"], ["y"])], (), "output 'y'", "twice", outputs=("y", "y"))


class Recipes(Bad):
    def refuse_recipe(self, text, *mentions):
        path = self.write(text.encode(), "recipe.json")
        self.refuse([otf.tool("otf-compile"), f"--recipe={path}", "--print-recipe"], path, *mentions)

    def test_unknown_key(self):
        self.refuse_recipe('{"name": "r", "linear": "int4", "bits": 4}', "bits", "linear")

    def test_wrong_type(self):
        self.refuse_recipe('{"name": "r", "linear": "int4", "group": "32"}', "group", "integer", '"32"')
        self.refuse_recipe('{"name": "r", "linear": 4}', "linear", "string")
        self.refuse_recipe('{"name": "r", "linear": "int4", "group": 1e99}', "group")

    def test_wrong_value(self):
        self.refuse_recipe('{"name": "r", "linear": "int5"}', "int5", "int4")
        self.refuse_recipe('{"name": "r", "linear": "int4", "group": 48}', "48", "32")
        self.refuse_recipe('{"name": "r", "linear": "int4", "outliers": 1.5}', "1.5")
        self.refuse_recipe('{"name": "r", "linear": "planes4x4"}', "planes4x4", "planes3x4")
        self.refuse_recipe('{"name": "r", "linear": "planes3x2", "vocabulary-group": 48}', "vocabulary-group", "48", "32")

    def test_conflict(self):
        self.refuse_recipe('{"name": "r", "linear": "f16", "outliers": 0.1}', "outliers", "f16")
        self.refuse_recipe('{"name": "r", "linear": "f16", "vocabulary": "f32", "group": 64}', "group")
        self.refuse_recipe('{"name": "r", "linear": "int4", "vocabulary": "f16", "vocabulary-group": 64}', "vocabulary-group", "f16")

    def test_not_json(self):
        self.refuse_recipe('{"name": ', "JSON")
        self.refuse_recipe("[]", "object")

    def test_no_such_recipe(self):
        self.refuse([otf.tool("otf-compile"), "--recipe=rtn5", "--print-recipe"], "rtn5", "rtn4")


class CommandLine(Bad):
    def test_usage(self):
        path = self.write(matmul([weight()]))
        for flags in ([], [path], [path, "--emit=everything"], [path, "-o", "x", "--target=tpu"],
                      [path, "-o", "x", "--cuda-arch=sm_90"], [path, "-o", "x", "--nonsense"]):
            with self.subTest(flags=flags):
                self.refuse([otf.tool("otf-compile"), *flags], status=2)

    def refuse_flags(self, *flags, mentions=()):
        with self.subTest(flags=flags):
            self.refuse([otf.tool("otf-exec"), *flags], "command line", *mentions, status=2)

    def test_numbers_out_of_range(self):
        for flag in ("--top-p=0", "--top-p=1.5", "--top-p=half", "--temperature=-1", "--temperature=nan", "--temperature=1e39",
                     "--top-k=-1", "--min-p=2", "--repetition-penalty=0", "--max-tokens=1e3", "--seed=-1", "--threads=-1",
                     "--context=-1"):
            name, number = flag.split("=")
            self.refuse_flags("generate", "a.plan", "--prompt-ids=1", flag, mentions=(name, "expected a", f"'{number}'"))
            self.assertNotRegex(otf.call(otf.tool("otf-exec"), "generate", "a.plan", flag)[2], "[0-9]{21}")
        for flag in ("--prompt-tokens=0", "--tokens=-1", "--repeat=0", f"--prompt-tokens={1 << 62}"):
            self.refuse_flags("bench", "a.plan", flag, mentions=(flag.split("=")[0],))

    def test_threads(self):
        plan = otf.plan(otf.fixtures / "gpt2-optimum" / "model.onnx")
        want = otf.generate(plan, [5, 1, 4], 8, "--threads=1")
        for threads in (0, 3, 64):  # 0: all cores; more threads than cores take turns
            self.assertEqual(want, otf.generate(plan, [5, 1, 4], 8, f"--threads={threads}"))
        self.refuse_flags("generate", plan, "--prompt-ids=1", "--threads=1025", mentions=("--threads", "1024"))

    def test_code_that_is_not_there(self):
        plan = otf.plan(otf.fixtures / "gpt2-optimum" / "model.onnx")
        self.refuse([otf.tool("otf-exec"), "generate", plan, "--prompt-ids=1", "--device=cpu:sse2"], "cpu:sse2", "avx2", "compile", status=3)

    def test_more_positions_than_the_model_knows(self):
        plan = otf.plan(otf.fixtures / "gpt2-optimum" / "model.onnx")  # 64
        ids = ",".join(["1"] * 65)
        self.refuse([otf.tool("otf-exec"), "generate", plan, f"--prompt-ids={ids}"], "65 tokens", "64 positions", status=1)
        told = json.loads(otf.succeed(otf.tool("otf-exec"), "generate", plan, "--prompt-ids", ids[:-2], "--greedy", "--ignore-eos", "--json"))
        self.assertEqual(("context", 1), (told["reason"], len(told["ids"])))

    def test_unknown_command(self):
        self.refuse_flags("foo", mentions=("'foo'", "generate"))
        self.refuse_flags("--foo", mentions=("'--foo'",))

    def test_flags_that_do_not_go_together(self):
        self.refuse_flags("run", "a.plan", "--input", "x=a.npy", "--input", "x=b.npy", mentions=("--input x", "twice"))
        self.refuse_flags("run", "a.plan", "--input", "x", mentions=("name=file.npy",))
        self.refuse_flags("run", "a.plan", "--output-dir", "", mentions=("empty",))
        self.refuse_flags("generate", "a.plan", "--prompt-ids=1", "--system=x", mentions=("--system", "--chat-prompt"))
        self.refuse_flags("generate", "a.plan", "--prompt-ids=1", "--tokenizer", "", mentions=("empty",))

    def test_prompt_ids_that_are_not_a_list(self):
        for ids in ("1,,2", "1,", ",1", "one", "1 2", "99999999999", " "):
            self.refuse_flags("generate", "a.plan", "--prompt-ids", ids, mentions=("--prompt-ids", f"'{ids}'"))

    def test_control_characters_are_escaped(self):
        self.refuse([otf.tool("otf-exec"), "verify", "a\nb\x1b.plan"], "a\\x0ab\\x1b.plan")
        self.refuse_flags("run", "a.plan", "--device", "cpu:\n", mentions=("\\x0a",))


class Plans(Bad):
    """Plans and inputs that the runtime refuses."""

    def setUp(self):
        super().setUp()
        self.plan = otf.plan(otf.fixtures / "digits" / "model.onnx")

    def refuse_plan(self, content, *mentions, action="verify"):
        path = self.write(bytes(content), "bad.plan")
        self.refuse([otf.tool("otf-exec"), action, path], path, *mentions)

    def test_cut(self):
        whole = self.plan.read_bytes()
        for size in (0, 20, len(whole) // 2, len(whole) - 1):
            with self.subTest(size=size):
                self.refuse_plan(whole[:size])

    def test_a_flipped_bit(self):
        whole = self.plan.read_bytes()
        count, = struct.unpack_from("<I", whole, 12)
        places = [0, 9, 17, 40]  # magic, version, size, table
        for i in range(count):  # the middle of every section
            _, _, offset, size = struct.unpack_from("<IIQQ", whole, 32 + 40 * i)
            places.append(offset + size // 2)
        for place in places:
            with self.subTest(place=place):
                content = bytearray(whole)
                content[place] ^= 4
                self.refuse_plan(content)

    def test_newer(self):
        content = bytearray(self.plan.read_bytes())
        struct.pack_into("<I", content, 8, 99)
        self.refuse_plan(content, "99", action="info")

    def refuse_input(self, name, array, *mentions):
        np.save(self.folder / "in.npy", array)
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--input", f"{name}={self.folder / 'in.npy'}", "--output-dir",
                     self.folder / "out"], *mentions)

    def test_wrong_input(self):
        self.refuse_input("pixel", np.zeros((1, 64), np.float32), "pixel", "pixels")
        self.refuse_input("pixels", np.zeros((1, 64), np.float64), "pixels", "f32", "f64")
        self.refuse_input("pixels", np.zeros((1, 63), np.float32), "pixels", "64", "63")
        self.refuse_input("pixels", np.zeros((1, 1, 64), np.float32), "pixels")

    def test_token_outside_the_vocabulary(self):
        self.plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")  # 211 tokens
        for token in (211, -212):
            self.refuse_input("input_ids", np.array([[1, token]], np.int64), "input_ids", str(token), "position 1", "-211 to 210")
        for token in (211, -1):
            self.refuse([otf.tool("otf-exec"), "generate", self.plan, f"--prompt-ids=1,{token}"], str(token), "210")

    def test_an_index_that_only_a_run_can_know(self):
        inputs = {"x": np.zeros((5, 3), np.float32), "i": np.array([1, 2], np.int64), "u": np.zeros((2, 3), np.float32)}
        shapes = {"x": (value("x", shape=("n", 3)),), "i": (value("i", TensorProto.INT64, ("k",)),), "u": (value("u", shape=("k", 3)),)}
        twice = helper.make_node("Add", ["i", "i"], ["j"])  # no limit of an input: the index is computed
        column = helper.make_node("Unsqueeze", ["j", "one"], ["c"])
        one = numpy_helper.from_array(np.array([1], np.int64), "one")
        for operator, nodes, names in (("Gather", [twice, helper.make_node("Gather", ["x", "j"], ["y"])], "xi"),
                                       ("GatherND", [twice, column, helper.make_node("GatherND", ["x", "c"], ["y"])], "xi"),
                                       ("ScatterND", [twice, column, helper.make_node("ScatterND", ["x", "c", "u"], ["y"])], "xiu")):
            graph = helper.make_graph(nodes, "g", [shapes[n][0] for n in names], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                      [one] if column in nodes else [])
            plan = self.folder / "index.plan"
            otf.succeed(otf.tool("otf-compile"), self.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])),
                        "-o", plan, "--recipe=none")
            for index, fits in ((2, True), (-2, True), (3, False), (-3, False)):  # twice that, of 5 rows
                with self.subTest(operator=operator, index=index):
                    command = [otf.tool("otf-exec"), "run", plan, "--output-dir", self.folder / "out"]
                    for name in names:
                        array = np.array([1, index], np.int64) if name == "i" else inputs[name]
                        np.save(self.folder / f"{name}.npy", array)
                        command += ["--input", f"{name}={self.folder / f'{name}.npy'}"]
                    if fits:
                        otf.succeed(*command)
                    else:
                        self.refuse(command, plan, "node 'y'", "an index is outside its axis")

    def test_an_input_whose_name_is_two_lines(self):
        self.refuse_input("pixels\nerror", np.zeros((1, 64), np.float32), "pixels\\x0aerror")

    def test_unknown_cpu_level(self):
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--device=cpu:foo"], "cpu:foo", "avx2", status=3)

    def test_a_cpu_level_that_this_processor_lacks(self):
        with open("/proc/cpuinfo") as cpu:
            if "avx512_vnni" in cpu.read():
                self.skipTest("this processor has avx512vnni")
        plan = self.folder / "both-levels.plan"
        otf.succeed(otf.tool("otf-compile"), otf.fixtures / "digits" / "model.onnx", "-o", plan, "--recipe=none", "--cpu-arch=avx2,avx512vnni")
        self.refuse([otf.tool("otf-exec"), "run", plan, "--device=cpu:avx512vnni"], "cpu:avx512vnni", "this processor has no", "device 'cpu' takes", status=3)

    def test_what_is_not_a_regular_file(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path in (pipe, "/dev/zero", self.folder):
            for command in (["verify", path], ["info", path], ["run", path], ["generate", path, "--prompt-ids=1"],
                            ["run", self.plan, "--input", f"pixels={path}"]):
                with self.subTest(command=command):
                    self.refuse([otf.tool("otf-exec"), *command], path, "not a regular file", timeout=20)
        self.refuse([otf.tool("otf-exec"), "verify", ""], "the path is empty")
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--input", "pixels="], "the path is empty")

    def test_prompt_without_tokens(self):
        self.plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        self.refuse([otf.tool("otf-exec"), "generate", self.plan, "--prompt-ids", ""], self.plan, "has no tokens")

    def test_tokenizer(self):
        self.plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        command = [otf.tool("otf-exec"), "generate", self.plan, "--prompt-ids=1"]
        self.refuse([*command, "--tokenizer", self.folder], self.folder / "tokenizer.json")
        self.write(b"", "tokenizer.json")
        self.refuse([*command, "--tokenizer", self.folder], self.folder / "tokenizer.json", "empty")
        self.refuse([*command, "--stop=x"], "--stop", "tokenizer", status=2)

    def test_standard_output_cannot_be_written(self):
        self.plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        array = self.folder / "x.npy"
        np.save(array, np.zeros((1, 64), np.float32))
        generate = ["generate", self.plan, "--prompt-ids=1", "--ignore-eos", "--max-tokens=3"]
        for command in (["info", self.plan], ["info", self.plan, "--json"], ["verify", self.plan], ["verify", self.plan, "--json"],
                        generate, [*generate, "--json"], [*generate, "--no-stream"],
                        ["bench", self.plan, "--prompt-tokens=2", "--tokens=2", "--repeat=1"],
                        ["run", otf.plan(otf.fixtures / "digits" / "model.onnx"), "--input", f"pixels={array}"]):
            with self.subTest(command=command), open("/dev/full", "w") as full:
                done = subprocess.run([otf.tool("otf-exec"), *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(1, done.returncode)
                self.assertEqual("error: standard output: cannot be written (No space left on device)\n", done.stderr)

    def test_standard_output_is_closed(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        done = subprocess.run(["sh", "-c", '"$0" generate "$1" --prompt-ids=1 --max-tokens=3 >&-', otf.tool("otf-exec"), plan],
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual(1, done.returncode)
        self.assertEqual("error: standard output: cannot be written (Bad file descriptor)\n", done.stderr)

    def test_a_closed_pipe_stops_decoding(self):
        plan = otf.plan(otf.fixtures / "llama-optimum" / "model.onnx")
        for flags in ([], ["--json"], ["--no-stream"]):
            with self.subTest(flags=flags):
                process = subprocess.Popen([otf.tool("otf-exec"), "generate", str(plan), "--prompt-ids=1", "--ignore-eos",
                                            "--context=1000000", "--max-tokens=999999", *flags],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                process.stdout.close()
                self.assertEqual(1, process.wait(timeout=30))
                self.assertIn("Broken pipe", process.stderr.read())
                process.stderr.close()

    def test_names_that_no_file_can_have(self):
        long, nodes = "y" * 300, []
        for name in (long, "a/b", "a_b"):
            nodes.append(helper.make_node("MatMul", ["x", "w"], [name]))
        path = self.write(model(nodes, [weight()], outputs=(long, "a/b", "a_b")))
        otf.succeed(otf.tool("otf-compile"), path, "-o", self.folder / "m.plan", "--recipe=none")
        found = otf.run(self.folder / "m.plan", {"x": np.ones((1, 32), np.float32)})
        self.assertEqual({"output-0", "a_b", "output-2"}, set(found))

    def test_no_folder_stays_behind(self):
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--output-dir", self.folder / "out"], "pixels")
        # A path that a folder can have, and no file in it.
        padding = "/." * ((4090 - len(str(self.folder)) - len("/out")) // 2)
        array = self.folder / "x.npy"
        np.save(array, np.zeros((1, 64), np.float32))
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--input", f"pixels={array}", "--output-dir",
                     f"{self.folder}{padding}/out"], "File name too long")

    def test_no_gpu(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has one")
        inputs = self.folder / "in.npy"
        np.save(inputs, np.zeros((1, 64), np.float32))
        self.refuse([otf.tool("otf-exec"), "run", self.plan, "--device=cuda", "--input", f"pixels={inputs}"], status=3)
