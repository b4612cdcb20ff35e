"""tinygrad on its CPU device, captured by TinyJit."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

# read when tinygrad is imported: the device, its threads, and no results of other runs
os.environ.update(DEV="CPU", CPU_COUNT=sys.argv[2], CACHELEVEL="0", CCACHE="0")

from ops import Array, Ops
from tinygrad import Device, Tensor, TinyJit
from workloads import Arrays, Workload, as_tuple

from peers import Call, Peer

WARM = 3
"""TinyJit runs a function, captures it, and only then replays it."""
SWEEPS = 10
"""So many sweeps of Jacobi are captured at once."""


class TinygradOps(Ops):
    """The functions of tinygrad."""

    def matmul(self, x: Array, y: Array) -> Array:
        return x.matmul(y)

    def relu(self, x: Array) -> Array:
        return x.relu()

    def relu6(self, x: Array) -> Array:
        return x.relu6()

    def positive(self, x: Array) -> Array:
        return (x > 0).cast(x.dtype)

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return x.gelu() if by_tanh else 0.5 * x * (1 + (x * 0.5**0.5).erf())

    def softmax(self, x: Array) -> Array:
        return x.softmax(-1)

    def logsumexp(self, x: Array) -> Array:
        return x.logsumexp(-1)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        return x.layernorm(eps=1e-5) * scale + shift

    def total(self, x: Array) -> Array:
        return x.sum()

    def sum_rows(self, x: Array) -> Array:
        return x.sum(0)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return x.permute(*axes)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        return x.conv2d(w, b, groups=groups, stride=stride, padding=padding)

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        return x.max_pool2d((size, size), stride, padding=padding)

    def image_mean(self, x: Array) -> Array:
        return x.mean((2, 3))

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        h = c = Tensor.zeros(1, wh.shape[0])
        rows = (x @ wx + b).contiguous()
        states: list[Array] = []
        for t in range(x.shape[0]):
            i, f, g, o = (rows[t : t + 1] + h @ wh).chunk(4, dim=1)
            c = (f.sigmoid() * c + i.sigmoid() * g.tanh()).contiguous()
            h = (o.sigmoid() * c.tanh()).contiguous()
            states.append(h)
        return states[0].cat(*states[1:], dim=0)

    def jacobi(self, u: Array, sweeps: int) -> Array:
        for _ in range(sweeps):
            mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            inner = u[1:-1, :1].cat(mean, u[1:-1, -1:], dim=1)
            u = u[:1].cat(inner, u[-1:], dim=0).contiguous()
        return u

    def identity(self, n: int, like: Array) -> Array:
        return Tensor.eye(n, dtype=like.dtype).contiguous()

    def power(self, x: Array, size: int, n: int) -> Array:
        y = self.identity(size, x)
        for _ in range(n):
            y = (x @ y).contiguous()
        return y

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return -(x.log_softmax(-1) * shares).sum(-1).mean()


class Main(Peer):
    """tinygrad; a step of training is the one written out."""

    version = importlib.metadata.version("tinygrad")

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        return tuple({k: Tensor(v).realize() for k, v in d.items()} for d in (weights, inputs))

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        weights, inputs = data
        ops, names, given = TinygradOps(), list(inputs), list(inputs.values())
        device = Device[Device.DEFAULT]
        if workload.name.startswith("jacobi"):
            sweeps = TinyJit(lambda u: ops.jacobi(u, SWEEPS).realize())

            def run() -> Any:
                u = given[0]
                for k in range(100 // SWEEPS):
                    u = sweeps(u.clone().realize() if k else u)
                return u
        else:

            @TinyJit
            def model(*x: Array) -> Any:
                found = as_tuple(workload.model(ops, weights, dict(zip(names, x))))
                return [r.realize() for r in found]

            def run() -> Any:
                return model(*given)

        for _ in range(WARM):
            run()

        def call() -> Any:
            result = run()
            device.synchronize()
            return result

        return {"": call}

    def arrays(self, result: Any) -> list[Array]:
        return [r.numpy() for r in as_tuple(result)]
