"""Stepwell: one program for a step, its state donated."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from ops import Array
from peers.stepwell import StepwellOps

import stepwell as sw
import stepwell.numpy as snp
from training import BETA1, BETA2, EPSILON, MOMENTUM, Arrays, Library, Step, Task, TrainingOps


class StepwellTraining(StepwellOps, TrainingOps):
    """The public functions of Stepwell."""

    def filtered(self, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Array:
        return sw.nn.conv(x, w, stride=stride, padding=padding)

    def batch_norm(
        self, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        axes, count = (0, 2, 3), x.size // x.shape[1]
        own = snp.mean(x, axis=axes, keepdims=True)
        spread = snp.mean(snp.square(x - own), axis=axes, keepdims=True)
        factor = snp.reshape(scale, (-1, 1, 1)) / snp.sqrt(spread + 1e-5)
        y = (x - own) * factor + snp.reshape(shift, (-1, 1, 1))
        unbiased = snp.reshape(spread, (-1,)) * (count / (count - 1))
        running = 0.9 * mean + 0.1 * snp.reshape(own, (-1,))
        return y, running, 0.9 * variance + 0.1 * unbiased

    def flatten(self, x: Array) -> Array:
        return snp.reshape(x, (x.shape[0], -1))

    def causal_attention(self, q: Array, k: Array, v: Array, scale: float) -> Array:
        scores = snp.matmul(q, snp.matrix_transpose(k)) * scale
        earlier = snp.tril(snp.ones(scores.shape[-2:], dtype=bool))
        return snp.matmul(sw.nn.softmax(snp.where(earlier, scores, -snp.inf)), v)

    def lstms(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        hidden = wh.shape[0]

        def cell(carried: Any, row: Array) -> Any:
            h, c = carried
            z = row + snp.matmul(h, wh)
            i, f, g, o = (z[:, k * hidden : (k + 1) * hidden] for k in range(4))
            c = sw.nn.sigmoid(f) * c + sw.nn.sigmoid(i) * snp.tanh(g)
            h = sw.nn.sigmoid(o) * snp.tanh(c)
            return (h, c), h

        zero = snp.zeros((x.shape[1], hidden), dtype=snp.float32)
        return sw.lax.scan(cell, (zero, zero), snp.matmul(x, wx) + b)[1]

    def classified(self, scores: Array, labels: Array) -> Array:
        shares = sw.nn.log_softmax(scores)
        return -snp.mean(snp.take_along_axis(shares, labels[:, None], axis=-1))

    def mean_square(self, x: Array) -> Array:
        return snp.mean(snp.square(x))


def optimiser(task: Task) -> Any:
    """Return the optimiser of a task: init and update."""
    if task.optimiser == "adam":
        return sw.optim.adam(task.rate, b1=BETA1, b2=BETA2, eps=EPSILON)
    return sw.optim.sgd(task.rate, momentum=MOMENTUM if task.optimiser == "momentum" else None)


class Main(Library):
    """Stepwell in this environment."""

    version = sw.__version__

    def prepare(self, task: Task) -> None:
        self.task = task
        ops = StepwellTraining()
        if task.optimiser == "examples":
            slope = sw.grad(lambda p, x: task.loss(ops, p, {}, x)[0])
            self.step = sw.jit(sw.vmap(slope, in_axes=(None, 0)))
            return
        self.optimiser = optimiser(task)
        slopes = sw.value_and_grad(lambda p, s, x: task.loss(ops, p, s, x), has_aux=True)

        @sw.jit(donate_argnames=("p", "s", "moments"))
        def step(p: Any, s: Any, moments: Any, x: Any) -> Any:
            (loss, s), down = slopes(p, s, x)
            changes, moments = self.optimiser.update(down, moments, p)
            return loss, sw.optim.apply_updates(p, changes), s, moments

        self.step = step

    def restart(self) -> Step:
        parameters, statistics, batch = self.task.data()
        if self.task.optimiser == "examples":
            return partial(self._examples, parameters, batch)
        moments = sw.tree.map(np.array, self.optimiser.init(parameters))
        self.state = parameters, statistics, moments

        def step() -> Any:
            loss, *self.state = self.step(*self.state, batch)
            return loss

        return step

    def _examples(self, parameters: Arrays, batch: Arrays) -> float:
        self.state = self.step(parameters, batch), {}
        return 0.0

    def arrays(self) -> Arrays:
        return {k: np.array(v) for k, v in (self.state[0] | self.state[1]).items()}
