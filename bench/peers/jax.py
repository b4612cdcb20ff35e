"""JAX on XLA's CPU backend; images lie channels last, which is what that is fast at."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from ops import Array, Ops
from workloads import RATE, Arrays, Workload, as_tuple

from peers import Call, Peer


class JaxOps(Ops):
    """The functions of JAX."""

    def matmul(self, x: Array, y: Array) -> Array:
        return jnp.matmul(x, y)

    def relu(self, x: Array) -> Array:
        return jax.nn.relu(x)

    def relu6(self, x: Array) -> Array:
        return jax.nn.relu6(x)

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return jax.nn.gelu(x, approximate=by_tanh)

    def softmax(self, x: Array) -> Array:
        return jax.nn.softmax(x)

    def logsumexp(self, x: Array) -> Array:
        return jax.nn.logsumexp(x, -1)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return centred * lax.rsqrt(variance + 1e-5) * scale + shift

    def total(self, x: Array) -> Array:
        return jnp.sum(x)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return jnp.transpose(x, axes)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        y = lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            ((padding, padding), (padding, padding)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return y + b

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        edge, none = (padding, padding), (0, 0)
        window, strides = (1, size, size, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, (none, edge, edge, none))

    def image_mean(self, x: Array) -> Array:
        return x.mean((1, 2))

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        def cell(carried: Any, row: Array) -> Any:
            h, c = carried
            i, f, g, o = jnp.split(row + h @ wh, 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros(wh.shape[0])
        return lax.scan(cell, (zero, zero), x @ wx + b)[1]

    def jacobi(self, u: Array, sweeps: int) -> Array:
        def sweep(_: int, u: Array) -> Array:
            mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            return u.at[1:-1, 1:-1].set(mean)

        return lax.fori_loop(0, sweeps, sweep, u)

    def identity(self, n: int, like: Array) -> Array:
        return jnp.eye(n, dtype=like.dtype)

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return (jax.nn.logsumexp(x, -1) - (x * shares).sum(-1)).mean()


class Main(Peer):
    """JAX; its threads are as many as the cores it may run on."""

    version = jax.__version__

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        def put(array: Any, axes: Sequence[int]) -> Array:
            array = array.transpose(axes) if array.ndim == 4 else array
            return jax.device_put(np.ascontiguousarray(array))

        filters = {k: put(v, (2, 3, 1, 0)) for k, v in weights.items()}
        images = {k: put(v, (0, 2, 3, 1)) for k, v in inputs.items()}
        return jax.block_until_ready((filters, images))

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        ops = JaxOps()
        if workload.loss is not None:
            return {"": _training(workload, *data)}
        program = jax.jit(lambda p, x: workload.model(ops, p, x))
        return {"": lambda: jax.block_until_ready(program(*data))}

    def arrays(self, result: Any) -> list[Array]:
        found = [np.asarray(a) for a in as_tuple(result)]
        return [a.transpose(0, 3, 1, 2) if a.ndim == 4 else a for a in found]


def _training(workload: Workload, weights: Arrays, inputs: Arrays) -> Call:
    slopes = jax.value_and_grad(lambda p, x: workload.loss(JaxOps(), p, x))

    @functools.partial(jax.jit, donate_argnums=(0,))
    def step(p: Arrays, x: Arrays) -> Any:
        value, down = slopes(p, x)
        return value, jax.tree.map(lambda w, d: w - RATE * d, p, down)

    present = [jax.tree.map(jnp.copy, weights)]

    first: list[Any] = []

    def call() -> Any:
        value, present[0] = step(present[0], inputs)
        jax.block_until_ready(present[0])
        if not first:  # later steps overwrite these weights
            first.append([value, *(np.array(present[0][k]) for k in weights)])
            return first[0]
        return value

    return call
