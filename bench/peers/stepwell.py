"""Stepwell itself: one `jit` of the model, weights as its arguments or as constants in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ops import Array, Ops, Unsupported
from workloads import RATE, Arrays, Workload

import stepwell as sw
import stepwell.numpy as snp
from peers import Call, Peer


class StepwellOps(Ops):
    """The public functions of Stepwell."""

    def matmul(self, x: Array, y: Array) -> Array:
        return snp.matmul(x, y)

    def relu(self, x: Array) -> Array:
        return sw.nn.relu(x)

    def relu6(self, x: Array) -> Array:
        return sw.nn.relu6(x)

    def positive(self, x: Array) -> Array:
        return snp.astype(x > 0, x.dtype)

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return sw.nn.gelu(x, approximate=by_tanh)

    def softmax(self, x: Array) -> Array:
        return sw.nn.softmax(x)

    def logsumexp(self, x: Array) -> Array:
        m = snp.max(x, axis=-1, keepdims=True)
        return snp.log(snp.sum(snp.exp(x - m), axis=-1)) + snp.squeeze(m, axis=-1)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        return sw.nn.layer_norm(x, scale, shift)

    def total(self, x: Array) -> Array:
        return snp.sum(x)

    def sum_rows(self, x: Array) -> Array:
        return snp.sum(x, axis=0)

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        return snp.reshape(x, tuple(shape))

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return snp.permute_dims(x, tuple(axes))

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        y = sw.nn.conv(x, w, stride=stride, padding=padding, groups=groups)
        return y + snp.reshape(b, (-1, 1, 1))

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        return sw.nn.max_pool(x, size, stride=stride, padding=padding)

    def image_mean(self, x: Array) -> Array:
        return snp.mean(x, axis=(2, 3))

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        hidden = wh.shape[0]

        def cell(carried: Any, row: Array) -> Any:
            h, c = carried
            z = row + snp.matmul(h, wh)
            i, f, g, o = (z[k * hidden : (k + 1) * hidden] for k in range(4))
            c = sw.nn.sigmoid(f) * c + sw.nn.sigmoid(i) * snp.tanh(g)
            h = sw.nn.sigmoid(o) * snp.tanh(c)
            return (h, c), h

        zero = snp.zeros((hidden,), dtype=snp.float32)
        return sw.lax.scan(cell, (zero, zero), snp.matmul(x, wx) + b)[1]

    def jacobi(self, u: Array, sweeps: int) -> Array:
        def sweep(_: Any, u: Array) -> Array:
            mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            inner = snp.concat([u[1:-1, :1], mean, u[1:-1, -1:]], axis=1)
            return snp.concat([u[:1], inner, u[-1:]], axis=0)

        return sw.lax.fori_loop(0, sweeps, sweep, u)

    def identity(self, n: int, like: Array) -> Array:
        return snp.eye(n, dtype=like.dtype)

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return snp.mean(self.logsumexp(x) - snp.sum(x * shares, axis=-1))


class Main(Peer):
    """Stepwell in this environment."""

    version = sw.__version__

    def compile(self, workload: Workload, data: tuple[Arrays, Arrays]) -> Mapping[str, Call]:
        weights, inputs = data
        ops, given = StepwellOps(), list(inputs.values())
        if self.variant == "constants" and (not weights or workload.loss is not None):
            raise Unsupported("no weights")
        if workload.loss is not None:
            return {"": _training(ops, workload, weights, inputs)}
        if self.variant == "constants":
            fixed = sw.freeze(dict(weights))
            constant = sw.jit(lambda *x: workload.model(ops, fixed, dict(zip(inputs, x))))
            return {"": lambda: constant(*given)}
        n = len(given)
        program = sw.jit(
            lambda *a: workload.model(ops, dict(zip(weights, a[n:])), dict(zip(inputs, a)))
        )
        arguments = [*given, *weights.values()]
        return {"": lambda: program(*arguments)}


def _training(ops: StepwellOps, workload: Workload, weights: Arrays, inputs: Arrays) -> Call:
    """Return a step of training; each goes on with the weights of the one before."""
    gradient = getattr(sw, "value_and_grad", None)
    if gradient is None:
        raise Unsupported("needs gradients")
    names, n = list(weights), len(weights)

    def loss(*a: Array) -> Array:
        assert workload.loss is not None
        return workload.loss(ops, dict(zip(names, a)), dict(zip(inputs, a[n:])))

    slopes = gradient(loss, argnums=tuple(range(n)))

    @sw.jit
    def step(*a: Array) -> Any:
        value, down = slopes(*a)
        return (value, *(w - RATE * d for w, d in zip(a, down)))

    present = list(weights.values())
    given = list(inputs.values())

    def call() -> Any:
        result = step(*present, *given)
        present[:] = result[1:]
        return result

    return call
