# SPDX-License-Identifier: Apache-2.0
"""The conformance tests that the onnx package ships or generates: name, model, sets of inputs and outputs, tolerances."""
import pathlib
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import case, data

# The check under which ONNX Runtime 1.32 passes 1,495 node tests: rtol 1e-3, atol 1e-5, or the test's own where it is wider.
RTOL, ATOL = 1e-3, 1e-5


class Test:
    def __init__(self, suite, name, model, data_sets, rtol=RTOL, atol=ATOL):
        self.suite, self.name, self.model = suite, name, model
        self.data_sets = [([array(v) for v in inputs], [array(v) for v in outputs]) for inputs, outputs in data_sets]
        self.rtol, self.atol = max(rtol, RTOL), max(atol, ATOL)

    def operators(self):
        """Operators of the graph, `domain::` before those of other domains."""
        return sorted({f"{n.domain}::{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type for n in self.model.graph.node})


def array(value):
    """A numpy array in C order. numpy saves types that it lacks (those of ml_dtypes) as their bits, a byte for less than one."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, list):
        return value  # a sequence: its models are refused before the content matters
    value = np.asarray(value)
    return np.ascontiguousarray(value).reshape(value.shape)


def node_tests():
    from onnx.backend.test.case.node import collect_testcases

    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow on purpose
        for test in collect_testcases(None):
            yield Test("node", test.name, test.model, test.data_sets, test.rtol, test.atol)


def stored_tests(suite):
    """Suites that lie in the package as folders: a model, and folders of inputs and outputs as protobuf."""
    root = pathlib.Path(data.__path__[0] if hasattr(data, "__path__") else pathlib.Path(data.__file__).parent) / suite
    for folder in sorted(root.glob("test_*")):
        model = onnx.load(folder / "model.onnx")
        sets = []
        for each in sorted(folder.glob("test_data_set_*")):
            sets.append(tuple(values(each, kind, described) for kind, described in
                              (("input", model.graph.input), ("output", model.graph.output))))
        yield Test(suite, f"{suite}/{folder.name}", model, sets)


def values(folder, kind, described):
    found = []
    for number, info in enumerate(described):
        path = folder / f"{kind}_{number}.pb"
        if not path.exists():
            break
        tensor = onnx.TensorProto()
        if info.type.WhichOneof("value") != "tensor_type":
            found.append([])
            continue
        tensor.ParseFromString(path.read_bytes())
        found.append(numpy_helper.to_array(tensor))
    return found


def all_tests():
    yield from node_tests()
    for suite in ("simple", "pytorch-operator", "pytorch-converted"):
        yield from stored_tests(suite)
