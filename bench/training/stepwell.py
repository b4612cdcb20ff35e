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

    def linear(self, x: Array, w: Array, b: Array) -> Array:
        return sw.nn.dense(x, w, b)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        return sw.nn.conv(x, w, stride=stride, padding=padding, groups=groups, bias=b)

    def filtered(self, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Array:
        return sw.nn.conv(x, w, stride=stride, padding=padding)

    def batch_norm(
        self, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        y, mean, moved = sw.nn.batch_norm_training(x, mean, variance, scale, shift)
        count, kept = x.size // x.shape[1], 0.9 * variance
        return y, mean, kept + (moved - kept) * (count / (count - 1))

    def flatten(self, x: Array) -> Array:
        return snp.reshape(x, (x.shape[0], -1))

    def rows(self, table: Array, numbers: Array) -> Array:
        return sw.nn.embedding(numbers, table)

    def heads_attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        return sw.nn.dot_product_attention(q, k, v, is_causal=causal)

    def lstms(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        return sw.nn.lstm(x, wx, wh, b)[1]

    def classified(self, scores: Array, labels: Array) -> Array:
        return snp.mean(sw.nn.softmax_cross_entropy_with_integer_labels(scores, labels))

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
