"""onnxruntime on the programs of `unknown_sizes.py`: one model each, its size n symbolic.

Run by an interpreter that has onnxruntime and onnx. A request is a line of JSON: `program`,
`shapes` and `n` open a program at a size; `seconds` asks for the least time of a call in a batch
that takes about so long. Arguments behind the first whose sizes are all known are weights, which
are constants of the model.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from peers.onnx_model import OPSET, OnnxOps, Value

NEWEST = 9
"""The version of the file format that all of these runtimes read."""


def _attention(o: OnnxOps, q: Value, k: Value, v: Value) -> Value:
    scores = o.scale(o.matmul(q, o.transpose(k, (0, 2, 1))), 0.125)
    return o.matmul(o.softmax(scores), v)


def _encoder(o: OnnxOps, x: Value, *weights: Value) -> Value:
    qkv, out, up, down, scale = weights
    heads = o.transpose(o.reshape(o.matmul(x, qkv), (-1, 3, 12, 64)), (1, 2, 0, 3))
    q, k, v = (o._node("Gather", heads, o._constant(i, np.int64), axis=0) for i in range(3))
    seen = o.reshape(o.transpose(_attention(o, q, k, v), (1, 0, 2)), (-1, 768))
    y = o.layer_norm(o.add(x, o.matmul(seen, out)), scale, scale)
    z = o.matmul(o.gelu(o.matmul(y, up), True), down)
    return o.layer_norm(o.add(y, z), scale, scale)


def _conv(padding: int, groups: int = 1) -> Callable[..., Value]:
    def build(o: OnnxOps, x: Value, w: Value) -> Value:
        return o.relu(o._node("Conv", x, w, pads=[padding] * 4, group=groups))

    return build


def _scan(o: OnnxOps, xs: Value, w: Value) -> Value:
    shape = o._node("Shape", xs, start=1)
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    start = o._node("ConstantOfShape", shape, value=zero)
    inner = OnnxOps("inner")
    h, x = Value("h"), Value("x")
    new = inner._node("Tanh", inner.add(inner.matmul(h, w), x))
    inner.nodes.append(helper.make_node("Identity", [new.name], ["seen"]))
    info = helper.make_tensor_value_info
    takes = [info(name, TensorProto.FLOAT, None) for name in ("h", "x")]
    gives = [info(name, TensorProto.FLOAT, None) for name in (new.name, "seen")]
    body = helper.make_graph(inner.nodes, "step", takes, gives)
    name = "stacked"
    o.nodes.append(
        helper.make_node(
            "Scan", [start.name, xs.name], ["last", name], body=body, num_scan_inputs=1
        )
    )
    return Value(name)


def _gelu(o: OnnxOps, x: Value, w: Value, b: Value) -> Value:
    return o.gelu(o.add(o.matmul(x, w), b), True)


def _norm(o: OnnxOps, x: Value, scale: Value, shift: Value) -> Value:
    return o.layer_norm(x, scale, shift)


BUILD: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(("product", "product, all sizes"), lambda o, x, w: o.matmul(x, w)),
    "two layers": lambda o, x, a, b: o.relu(o.matmul(o.relu(o.matmul(x, a)), b)),
    "linear and gelu": _gelu,
    **dict.fromkeys(("attention", "one token"), _attention),
    "encoder layer": _encoder,
    **dict.fromkeys(("convolution", "convolution 3x3"), _conv(1)),
    "convolution 1x1": _conv(0),
    "depthwise": _conv(1, 64),
    "max pool": lambda o, x: o.max_pool(x, 3, 2, 1),
    "scan": _scan,
    "softmax": lambda o, x: o.softmax(x),
    "layer norm": _norm,
    "sum": lambda o, x: o.sum_rows(x),
    "argmax": lambda o, x: o._node("ArgMax", x, axis=1, keepdims=0),
    "elementwise": lambda o, x, y: o._node("Tanh", o.add(o.multiply(x, y), x)),
}


class Opened:
    """A program at a size."""

    def __init__(self, program: str, shapes: Sequence[Sequence[int | str]], n: int, threads: int):
        self.clock = time.process_time if threads == 1 else time.perf_counter  # one does not wait
        random = np.random.default_rng(n)
        sizes = [tuple(n if size == "n" else int(size) for size in shape) for shape in shapes]
        arrays = [random.standard_normal(s, np.float32) * np.float32(0.1) for s in sizes]
        given = {f"x{k}": array for k, array in enumerate(arrays)}
        inputs = {f"x{k}" for k, shape in enumerate(shapes) if not k or "n" in shape}
        ops = OnnxOps()
        build = BUILD.get(program) or BUILD[program.partition(",")[0]]
        result = build(ops, *(Value(name, array) for name, array in given.items()))
        info = helper.make_tensor_value_info
        floats = TensorProto.FLOAT
        weights = {**ops.constants, **{k: v for k, v in given.items() if k not in inputs}}
        graph = helper.make_graph(
            ops.nodes,
            "program",
            [info(f"x{k}", floats, list(s)) for k, s in enumerate(shapes) if f"x{k}" in inputs],
            [info(result.name, TensorProto.INT64 if "argmax" in program else floats, None)],
            [numpy_helper.from_array(v, k) for k, v in weights.items()],
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=NEWEST)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        text = model.SerializeToString()
        self.session = ort.InferenceSession(text, options, providers=["CPUExecutionProvider"])
        self.feeds = {k: v for k, v in given.items() if k in inputs}
        self.first = self.session.run(None, self.feeds)[0]
        self.calls = [lambda: self.session.run(None, self.feeds), self._bound(result.name)]

    def _bound(self, name: str) -> Callable[[], Any]:
        binding = self.session.io_binding()
        self.kept = [
            ort.OrtValue.ortvalue_from_numpy(v) for v in (*self.feeds.values(), self.first)
        ]
        for each, value in zip(self.feeds, self.kept, strict=False):
            binding.bind_ortvalue_input(each, value)
        binding.bind_ortvalue_output(name, self.kept[-1])
        return lambda: self.session.run_with_iobinding(binding)

    def least(self, seconds: float) -> float:
        """Return the least mean time of a call, of both ways to call, in half the time each."""
        return min(self._mean(call, seconds / len(self.calls)) for call in self.calls)

    def _mean(self, call: Callable[[], Any], seconds: float) -> float:
        begin = self.clock()
        call()
        count = max(1, int(seconds / max(self.clock() - begin, 1e-7)))
        begin = self.clock()
        for _ in range(count):
            call()
        return (self.clock() - begin) / count


def main(arguments: Sequence[str]) -> None:
    """Answer requests until there are no more."""
    _, threads, answers = arguments
    opened: Opened | None = None

    def answer(**fields: Any) -> None:
        os.write(int(answers), json.dumps(fields).encode() + b"\n")

    answer(version=ort.__version__)
    for line in sys.stdin:
        asked = json.loads(line)
        if "seconds" in asked:
            assert opened is not None
            answer(seconds=opened.least(asked["seconds"]))
            continue
        try:
            opened = Opened(asked["program"], asked["shapes"], asked["n"], int(threads))
            np.save(asked["result"], opened.first)
            answer(problem="")
        except Exception as error:
            opened = None
            answer(problem=f"{type(error).__name__}: {error}"[:200])


if __name__ == "__main__":
    main(sys.argv[1:])
