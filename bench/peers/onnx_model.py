"""Workloads as ONNX files, weights in them: `python -m peers.onnx_model NAME...`.

Run by an interpreter that has the onnx package; onnxruntime, openvino and iree read the files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from ops import Array, Ops
from workloads import WORKLOADS, Workload, as_tuple

from peers import model_file, state

OPSET = 20


class Value:
    """The name of a value, and its array where it is known."""

    def __init__(self, name: str, like: Any = None) -> None:
        self.name = name
        self.like = like

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of an input or a constant."""
        return self.like.shape


class Nodes:
    """The nodes and constants of a graph."""

    def __init__(self, prefix: str = "value") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def _constant(self, value: Any, dtype: Any = None) -> Value:
        array = np.asarray(value, dtype)
        name = f"constant{len(self.constants)}"
        self.constants[name] = array
        return Value(name, array)

    def _integers(self, *values: int) -> Value:
        return self._constant(values, np.int64)

    def _float(self, value: float) -> Value:
        return self._constant(value, np.float32)

    def _node(self, kind: str, *inputs: Value, **attributes: Any) -> Value:
        result = Value(f"{self.prefix}{len(self.nodes)}")
        names = [v.name for v in inputs]
        self.nodes.append(helper.make_node(kind, names, [result.name], **attributes))
        return result


class OnnxOps(Nodes, Ops):
    """Adds nodes to a graph."""

    def matmul(self, x: Array, y: Array) -> Array:
        return self._node("MatMul", x, y)

    def add(self, x: Array, y: Array) -> Array:
        return self._node("Add", x, y)

    def subtract(self, x: Array, y: Array) -> Array:
        return self._node("Sub", x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._node("Mul", x, y)

    def scale(self, x: Array, factor: float) -> Array:
        return self._node("Mul", x, self._float(factor))

    def relu(self, x: Array) -> Array:
        return self._node("Relu", x)

    def positive(self, x: Array) -> Array:
        more = self._node("Greater", x, self._float(0))
        return self._node("Cast", more, to=TensorProto.FLOAT)

    def relu6(self, x: Array) -> Array:
        return self._node("Clip", x, self._float(0), self._float(6))

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return self._node("Gelu", x, approximate="tanh" if by_tanh else "none")

    def softmax(self, x: Array) -> Array:
        return self._node("Softmax", x, axis=-1)

    def logsumexp(self, x: Array) -> Array:
        return self._node("ReduceLogSumExp", x, self._integers(-1), keepdims=0)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        return self._node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def total(self, x: Array) -> Array:
        return self._node("ReduceSum", x, keepdims=0)

    def sum_rows(self, x: Array) -> Array:
        return self._node("ReduceSum", x, self._integers(0), keepdims=0)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return self._node("Reshape", x, self._integers(*shape))

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return self._node("Transpose", x, perm=list(axes))

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        return self._node("Conv", x, w, b, strides=[stride] * 2, pads=[padding] * 4, group=groups)

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        window = [size] * 2
        return self._node(
            "MaxPool", x, kernel_shape=window, strides=[stride] * 2, pads=[padding] * 4
        )

    def image_mean(self, x: Array) -> Array:
        return self._node("Flatten", self._node("GlobalAveragePool", x), axis=1)

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        def gates(w: Value) -> Any:
            """Return a weight in the order of ONNX: i, o, f, c."""
            i, f, g, o = np.split(w.like, 4, -1)
            return np.ascontiguousarray(np.concatenate([i, o, f, g], -1).T)[None]

        width, hidden = wh.shape[0], wh.shape[0]
        bias = np.concatenate([gates(b), np.zeros_like(gates(b))], -1)
        sequence = self.reshape(x, (-1, 1, width))
        weights = [self._constant(v) for v in (gates(wx), gates(wh), bias)]
        y = self._node("LSTM", sequence, *weights, hidden_size=hidden)
        return self.reshape(y, (-1, hidden))

    def jacobi(self, u: Array, sweeps: int) -> Array:
        rows, columns = u.shape
        body = OnnxOps("inner")
        old = Value("old")

        def part(top: int, bottom: int, left: int, right: int) -> Value:
            bounds = [self._integers(top, left), self._integers(bottom, right)]
            return body._node("Slice", old, *bounds, self._integers(0, 1))

        r, c = rows - 1, columns - 1
        above, below = part(0, r - 1, 1, c), part(2, rows, 1, c)
        left, right = part(1, r, 0, c - 1), part(1, r, 2, columns)
        around = body.add(body.add(above, below), body.add(left, right))
        mean = body.multiply(around, self._float(0.25))
        inner = body._node("Concat", part(1, r, 0, 1), mean, part(1, r, c, columns), axis=1)
        edges = part(0, 1, 0, columns), part(r, rows, 0, columns)
        new = body._node("Concat", edges[0], inner, edges[1], axis=0)
        body.nodes.append(helper.make_node("Identity", ["go"], ["go_on"]))
        info = helper.make_tensor_value_info
        takes = [
            info("sweep", TensorProto.INT64, []),
            info("go", TensorProto.BOOL, []),
            info("old", TensorProto.FLOAT, u.shape),
        ]
        gives = [
            info("go_on", TensorProto.BOOL, []),
            info(new.name, TensorProto.FLOAT, u.shape),
        ]
        graph = helper.make_graph(body.nodes, "sweep", takes, gives)
        times = self._constant(sweeps, np.int64)
        return self._node("Loop", times, self._constant(True), u, body=graph)

    def identity(self, n: int, like: Array) -> Array:
        return self._constant(np.eye(n, dtype=like.like.dtype))

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        chosen = self._node("ReduceSum", self.multiply(x, shares), self._integers(-1), keepdims=0)
        return self._node("ReduceMean", self.subtract(self.logsumexp(x), chosen), keepdims=0)


def model_of(workload: Workload) -> Any:
    """Return a workload as an ONNX model; the weights of a training step are its inputs."""
    ops, (weights, inputs) = OnnxOps(), workload.data()
    given = {**inputs, **(weights if workload.loss else {})}
    values = {k: Value(k, v) for k, v in {**weights, **inputs}.items()}
    p, x = ({k: values[k] for k in of} for of in (weights, inputs))
    results = as_tuple(workload.model(ops, p, x))
    initial = dict(ops.constants)
    if not workload.loss:
        initial |= weights
    used = {name for node in ops.nodes for name in (*node.input, *_inside(node))}
    info = helper.make_tensor_value_info

    def kind(array: Any) -> int:
        return helper.np_dtype_to_tensor_dtype(array.dtype)

    first = next(iter(inputs.values()))
    right = workload.reference(state() / "references").results
    graph = helper.make_graph(
        ops.nodes,
        workload.name,
        [info(k, kind(v), v.shape) for k, v in given.items()],
        [info(r.name, kind(first), a.shape) for r, a in zip(results, right)],
        [numpy_helper.from_array(v, k) for k, v in initial.items() if k in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _inside(node: Any) -> list[str]:
    """Return what the body of a loop uses."""
    return [n for a in node.attribute if a.HasField("g") for b in a.g.node for n in b.input]


def main(names: Sequence[str]) -> None:
    """Write the files."""
    for name in names:
        path = model_file(WORKLOADS[name])
        path.parent.mkdir(parents=True, exist_ok=True)
        partly = path.with_suffix(f".{os.getpid()}.part")
        onnx.save(model_of(WORKLOADS[name]), str(partly))
        partly.rename(path)


if __name__ == "__main__":
    main(sys.argv[1:])
