"""PyTorch, eager and with the loss compiled; optimisers are its own, fused."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as nn
from ops import Array
from peers.torch import TorchOps

from training import BETA1, BETA2, EPSILON, MOMENTUM, Arrays, Library, Step, Task, TrainingOps


class TorchTraining(TorchOps, TrainingOps):
    """The functions of PyTorch."""

    def conv(self, x: Array, w: Array, b: Any, stride: int = 1, padding: int = 0, groups: int = 1):
        return nn.conv2d(x, w, b, stride, padding, 1, groups)

    def filtered(self, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Array:
        return nn.conv2d(x, w, None, stride, padding)

    def batch_norm(
        self, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        y = nn.batch_norm(x, mean, variance, scale, shift, training=True, momentum=0.1, eps=1e-5)
        return y, mean, variance  # updated in place

    def flatten(self, x: Array) -> Array:
        return x.flatten(1)

    def heads_attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        return nn.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    @torch.compiler.disable  # inductor 2.13 makes a program of it that fails
    def lstms(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        zero = x.new_zeros(1, x.shape[1], wh.shape[0])
        weights = [wx.T, wh.T, b, torch.zeros_like(b)]
        return torch.lstm(x, [zero, zero], weights, True, 1, 0.0, True, False, False)[0]

    def classified(self, scores: Array, labels: Array) -> Array:
        return nn.cross_entropy(scores, labels)

    def mean_square(self, x: Array) -> Array:
        return x.square().mean()


class Main(Library):
    """PyTorch with so many threads."""

    version = torch.__version__

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        self.kind = torch.float64 if variant == "double" else torch.float32
        torch.set_num_threads(threads)
        if variant != "double":  # which is made beside another
            torch.set_num_interop_threads(1)
        if variant == "compile":
            import torch._inductor.config as inductor

            inductor.compile_threads = 1
            inductor.cpp.threads = threads

    def prepare(self, task: Task) -> None:
        self.task = task

        def plain(p: Any, s: Any, x: Any) -> Any:
            return task.loss(TorchTraining(), p, s, x)[0]

        loss: Any = plain
        if task.optimiser == "examples":
            loss = torch.func.vmap(torch.func.grad(loss), in_dims=(None, None, 0))
        if self.variant == "compile":
            torch.compiler.reset()
            loss = torch.compile(loss, dynamic=False)
        self.loss = loss

    def restart(self) -> Step:
        parameters, statistics, batch = (self._loaded(of) for of in self.task.data())
        self.statistics = statistics
        if self.task.optimiser == "examples":
            return partial(self._examples, parameters, batch)
        self.parameters = {k: v.requires_grad_() for k, v in parameters.items()}
        optimiser = self._optimiser()

        def step() -> Any:
            optimiser.zero_grad(set_to_none=True)
            loss = self.loss(self.parameters, statistics, batch)
            loss.backward()
            optimiser.step()
            return loss

        return step

    def _examples(self, parameters: Arrays, batch: Arrays) -> float:
        self.parameters = self.loss(parameters, {}, batch)
        return 0.0

    def _optimiser(self) -> Any:
        """Return the optimiser with its moments there already, as other libraries have them."""
        given, rate = list(self.parameters.values()), self.task.rate
        if self.task.optimiser != "adam":
            momentum = MOMENTUM if self.task.optimiser == "momentum" else 0.0
            optimiser: Any = torch.optim.SGD(given, lr=rate, momentum=momentum, fused=True)
            for p in given if momentum else ():
                optimiser.state[p] = {"momentum_buffer": _zeros(p)}
            return optimiser
        optimiser = torch.optim.Adam(given, lr=rate, betas=(BETA1, BETA2), eps=EPSILON, fused=True)
        for p in given:
            moments = {"exp_avg": _zeros(p), "exp_avg_sq": _zeros(p)}
            optimiser.state[p] = {"step": torch.tensor(0.0), **moments}
        return optimiser

    def arrays(self) -> Arrays:
        found = self.parameters | self.statistics
        return {k: v.detach().contiguous().numpy() for k, v in found.items()}

    def _loaded(self, arrays: Arrays) -> Arrays:
        return {name: self._tensor(name, array) for name, array in arrays.items()}

    def _tensor(self, name: str, array: Any) -> Array:
        """Return a tensor in the layout that the library is fast with."""
        tensor = torch.tensor(array)
        if tensor.is_floating_point():
            tensor = tensor.to(self.kind)
        if tensor.ndim == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        if name.endswith(".w") or name in ("input", "state"):
            return tensor.T.contiguous().T
        return tensor


def _zeros(like: Array) -> Array:
    return torch.zeros_like(like).fill_(0)  # now, not when a page is first written
