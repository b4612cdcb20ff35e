"""JAX: one program for a step, its state donated; images lie channels last."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from ops import Array
from peers.jax import JaxOps

from training import BETA1, BETA2, EPSILON, MOMENTUM, Arrays, Library, Step, Task, TrainingOps


class JaxTraining(JaxOps, TrainingOps):
    """The functions of JAX."""

    def filtered(self, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Array:
        return self.conv(x, w, 0.0, stride, padding)

    def batch_norm(
        self, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        own, count = x.mean((0, 1, 2)), x.size // x.shape[-1]
        spread = jnp.square(x - own).mean((0, 1, 2))
        y = (x - own) * (lax.rsqrt(spread + 1e-5) * scale) + shift
        unbiased = spread * (count / (count - 1))
        return y, 0.9 * mean + 0.1 * own, 0.9 * variance + 0.1 * unbiased

    def flatten(self, x: Array) -> Array:
        return x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)

    def heads_attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

    def lstms(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        def cell(carried: Any, row: Array) -> Any:
            h, c = carried
            i, f, g, o = jnp.split(row + h @ wh, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[1], wh.shape[0]))
        return lax.scan(cell, (zero, zero), x @ wx + b)[1]

    def classified(self, scores: Array, labels: Array) -> Array:
        shares = jax.nn.log_softmax(scores)
        return -jnp.take_along_axis(shares, labels[:, None], -1).mean()

    def mean_square(self, x: Array) -> Array:
        return jnp.square(x).mean()


def start(optimiser: str, parameters: Arrays) -> Any:
    """Return the state of an optimiser."""
    zeros = partial(jax.tree.map, jnp.zeros_like)
    if optimiser == "adam":
        return jnp.zeros((), jnp.int32), zeros(parameters), zeros(parameters)
    return zeros(parameters) if optimiser == "momentum" else ()


def updated(task: Task, p: Arrays, down: Arrays, state: Any) -> tuple[Arrays, Any]:
    """Return parameters and the optimiser's state after a step, as optax computes them."""
    if task.optimiser == "adam":
        count, m, v = state[0] + 1, *state[1:]
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, down)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, down)
        first, second = 1 - BETA1**count, 1 - BETA2**count

        def move(w: Array, m: Array, v: Array) -> Array:
            return w - task.rate * (m / first) / (jnp.sqrt(v / second) + EPSILON)

        return jax.tree.map(move, p, m, v), (count, m, v)
    if task.optimiser == "momentum":
        down = state = jax.tree.map(lambda m, g: MOMENTUM * m + g, state, down)
    return jax.tree.map(lambda w, g: w - task.rate * g, p, down), state


class Main(Library):
    """JAX; its threads are as many as the cores it may run on."""

    version = jax.__version__

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        jax.config.update("jax_compilation_cache_dir", f"{os.environ['XDG_CACHE_HOME']}/jax")
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    def prepare(self, task: Task) -> None:
        self.task = task
        ops: Any = JaxTraining()
        slopes = jax.value_and_grad(lambda p, s, x: task.loss(ops, p, s, x), has_aux=True)

        if task.optimiser == "examples":
            slope = jax.grad(lambda p, x: task.loss(ops, p, {}, x)[0])
            self.step = jax.jit(jax.vmap(slope, in_axes=(None, 0)))
            return

        def step(p: Arrays, s: Arrays, state: Any, x: Arrays) -> Any:
            (loss, s), down = slopes(p, s, x)
            return loss, (*updated(task, p, down, state), s)

        self.step = jax.jit(step, donate_argnums=(0, 1, 2))

    def restart(self) -> Step:
        parameters, statistics, batch = (
            {k: jax.device_put(_laid_out(k, v)) for k, v in of.items()} for of in self.task.data()
        )
        self.state = (parameters, start(self.task.optimiser, parameters), statistics)
        jax.block_until_ready((self.state, batch))

        def examples() -> Any:
            self.state = (jax.block_until_ready(self.step(parameters, batch)), (), {})
            return 0.0

        def step() -> Any:
            p, state, s = self.state
            loss, self.state = self.step(p, s, state, batch)
            jax.block_until_ready(self.state)
            return loss

        return examples if self.task.optimiser == "examples" else step

    def arrays(self) -> Arrays:
        found = self.state[0] | self.state[2]
        arrays = {k: np.asarray(v) for k, v in found.items()}
        return {k: v.transpose(3, 2, 0, 1) if v.ndim == 4 else v for k, v in arrays.items()}


def _laid_out(name: str, array: Any) -> Any:
    """Return images channels last, and filters features last."""
    if array.ndim != 4:
        return np.array(array)
    return np.ascontiguousarray(array.transpose((0, 2, 3, 1) if name == "x" else (2, 3, 1, 0)))
