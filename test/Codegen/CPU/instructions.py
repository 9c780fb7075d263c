# SPDX-License-Identifier: Apache-2.0
"""Instructions of the micro-kernels' inner loops, compared with a committed table.

Each contraction kernel is specialised as otf-compile does it (sizes as constants, the level's features, O3) for one
and for 64 rows of activations, 4096 columns and eight tiles; of its innermost loops the one with the most
multiplications is what runs. A line of the table is

    <kernel> <level> <rows>   <instructions of the loop> / <products it makes>   <per product>

where a product is one weight times one activation, so for one row the last figure is instructions a weight. A figure
above the table's fails with a sentence; below it, the table is to be written again (--write).

The tools must be those of the LLVM that otf-compile is built with.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

LEVELS = {
    "avx2": "+avx2,+fma,+f16c,+bmi,+bmi2",
    "avx512vnni": "+avx2,+fma,+f16c,+bmi,+bmi2,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni",
}
CODEBOOK = 0x7D25DB83
COLUMNS = 4096
PLAIN = {"f32": 32, "f16": 16}  # bytes of a column of a tile
# Kernel: bytes of a chunk, of a group's parameters, group, multiplications a weight.
GROUPED = {
    "int8": (256, 16, 128, 1),
    "int4": (128, 16, 128, 1),
    "codebook2": (64, 32, 128, 1),
    "ternary_sign": (96, 32, 128, 2),
    "grid8": (256, 32, 0, 1),
    "grid4": (128, 32, 128, 1),
    "grid2": (64, 32, 128, 1),
    "planes3x1": (32, 16, 0, 1),
    "planes3x2": (64, 16, 0, 1),
    "planes3x3": (96, 16, 0, 1),
    "planes3x4": (128, 16, 0, 1),
    "planes4x1": (32, 16, 0, 1),
    "planes4x2": (64, 16, 0, 1),
    "planes4x3": (96, 16, 0, 1),
}
ROWS = (1, 64)


def wrapper(features, rows):
    """A function for each kernel that calls it with constants, as LLVM IR. One module a number of rows: a kernel that only one
    function calls is specialised to it."""
    text = ""
    for name in [*PLAIN, *GROUPED]:
        table = ", i32 {}".format(CODEBOOK) if name == "codebook2" else ""
        if name in PLAIN:
            tile, stride = COLUMNS * PLAIN[name], COLUMNS * 4
            sizes, types = "i64 {}".format(COLUMNS), "i64"
        else:
            chunk, parameters, group, _ = GROUPED[name]
            tile = COLUMNS // 32 * chunk + COLUMNS // (group or COLUMNS) * parameters
            stride = COLUMNS + COLUMNS // 32 * 8
            sizes, types = "i64 {}, i64 {}, i64 0{}".format(COLUMNS, group, table), "i64, i64, i64" + (", i32" if table else "")
        text += "declare void @otf_tiles_{}(ptr, i64, i64, ptr, i64, i64, {}, ptr)\n".format(name, types)
        text += (
            "define void @count_{0}(ptr %tile, ptr %rec, ptr %acc) #0 {{\n"
            "  call void @otf_tiles_{0}(ptr %tile, i64 {2}, i64 8, ptr %rec, i64 {3}, i64 {1}, {4}, ptr %acc)\n"
            "  ret void\n}}\n"
        ).format(name, rows, tile, stride, sizes)
    return text + 'attributes #0 = { nounwind "target-features"="' + features + '" }\n'


def assembly(tools, bitcode, features, rows):
    """The wrappers specialised by the optimiser, as text."""
    run = lambda tool, *arguments: subprocess.run([os.path.join(tools, tool), *arguments], check=True)
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        with open(at("wrapper.ll"), "w") as file:
            file.write(wrapper(features, rows))
        run("llvm-link", "-S", "--only-needed", "-o", at("linked.ll"), at("wrapper.ll"), bitcode)
        with open(at("linked.ll")) as file:
            text = file.read()
        # As lib/Codegen/CPU/Object.cpp: a function is inlined only into one with all its features.
        text = re.sub(r' ?"(tune-cpu|target-cpu|prefer-vector-width)"="[^"]*"', "", text)
        text = re.sub(r'"target-features"="[^"]*"', '"target-features"="%s" "prefer-vector-width"="256"' % features, text)
        with open(at("linked.ll"), "w") as file:
            file.write(text)
        public = ",".join("count_" + name for name in [*PLAIN, *GROUPED])
        run("opt", "-passes=internalize,default<O3>", "-internalize-public-api-list=" + public, "-o", at("fast.bc"), at("linked.ll"))
        run("llc", "-O3", "-relocation-model=pic", "-o", at("fast.s"), at("fast.bc"))
        with open(at("fast.s")) as file:
            return file.read()


def innermost_loops(body):
    """The instructions of each loop without a loop inside: from a label until the last jump back to it."""
    lines, labels = [], {}
    for line in body:
        label = re.match(r"(\.L\w+):", line)
        if label:
            labels[label.group(1)] = len(lines)
        code = line.split("#")[0].strip()
        if code and not code.endswith(":") and not code.startswith("."):
            lines.append(code)
    loops = {}
    for i, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.L\w+)$", line)
        if jump and labels.get(jump.group(1), i + 1) <= i:
            loops[labels[jump.group(1)]] = i
    return [
        lines[begin : end + 1]
        for begin, end in loops.items()
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops.items())
    ]


def products(line, kernel):
    """Of one instruction; of bytes, each lane multiplies four columns."""
    lanes = 16 if "%zmm" in line else 8
    if kernel in PLAIN:
        return lanes if line.startswith("vfmadd") else 0
    return 4 * lanes // GROUPED[kernel][3] if re.match(r"vpmaddubsw|vpdpbusd", line) else 0


def measure(text):
    """{kernel: (instructions, products)}"""
    functions, name = {}, None
    for line in text.splitlines():
        start = re.match(r"([\w.$]+):", line)
        if start and not line.startswith(".L"):
            name = start.group(1)
            functions[name] = []
        elif line.startswith(".Lfunc_end"):
            name = None
        elif name:
            functions[name].append(line)
    figures = {}
    for kernel in [*PLAIN, *GROUPED]:
        todo, seen = ["count_" + kernel], set()
        best = (0, 0)
        while todo:
            function = todo.pop()
            if function in seen or function not in functions:
                continue
            seen.add(function)
            todo += re.findall(r"(?:callq?|jmp)\s+([\w.$]+)", "\n".join(functions[function]))
            for loop in innermost_loops(functions[function]):
                made = sum(products(line, kernel) for line in loop)
                if (made, -len(loop)) > (best[1], -best[0]):
                    best = (len(loop), made)
        figures[kernel] = best
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True, help="folder of llvm-link, opt and llc")
    parser.add_argument("--bitcode", required=True, help="folder of <level>.bc")
    parser.add_argument("--table", required=True)
    parser.add_argument("--write", action="store_true", help="the table anew")
    options = parser.parse_args()

    found = {}
    for level, features in LEVELS.items():
        for rows in ROWS:
            text = assembly(options.tools, os.path.join(options.bitcode, level + ".bc"), features, rows)
            for kernel, figure in measure(text).items():
                found[kernel, level, rows] = figure
    if options.write:
        with open(options.table, "w") as file:
            file.write("# kernel level rows   instructions / products of the inner loop   instructions a product\n")
            for (kernel, level, rows), (count, made) in found.items():
                file.write("{:13} {:11} {:3}   {:4} / {:<5}  {:.3f}\n".format(kernel, level, rows, count, made, count / max(made, 1)))
        return 0

    table = {}
    with open(options.table) as file:
        for line in file:
            if not line.startswith("#"):
                kernel, level, rows, count, _, made, _ = line.split()
                table[kernel, level, int(rows)] = (int(count), int(made))
    wrong = 0
    for key, (count, made) in found.items():
        what = "the inner loop of {} at {} for {} row{}".format(*key, "" if key[2] == 1 else "s")
        if made == 0:
            print("error: no loop with products was found in", what.removeprefix("the inner loop of "))
            wrong += 1
        elif key not in table:
            print("error: {} is not in the table: write it again with --write".format(what))
            wrong += 1
        elif count * table[key][1] > table[key][0] * made:
            print("error: {} takes {:.3f} instructions a product, {:.3f} before: a kernel or its compiler became slower".format(
                what, count / made, table[key][0] / table[key][1]))
            wrong += 1
        elif count * table[key][1] < table[key][0] * made:
            print("note: {} takes {:.3f} instructions a product, {:.3f} before: write the table again with --write".format(
                what, count / made, table[key][0] / table[key][1]))
    for key in table:
        if key not in found:
            print("error: the table has {} {} {}, which is no kernel".format(*key))
            wrong += 1
    print("{} inner loops counted, {} wrong".format(len(found), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
