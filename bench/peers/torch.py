"""PyTorch, eager and compiled with frozen weights; images lie channels last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as nn
from ops import Array, Ops
from workloads import RATE, Arrays, Workload, as_tuple

from peers import Call, Peer


class TorchOps(Ops):
    """The functions of PyTorch."""

    def matmul(self, x: Array, y: Array) -> Array:
        return torch.matmul(x, y)

    def relu(self, x: Array) -> Array:
        return torch.relu(x)

    def relu6(self, x: Array) -> Array:
        return nn.relu6(x)

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        return nn.gelu(x, approximate="tanh" if by_tanh else "none")

    def softmax(self, x: Array) -> Array:
        return torch.softmax(x, -1)

    def logsumexp(self, x: Array) -> Array:
        return torch.logsumexp(x, -1)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        return nn.layer_norm(x, scale.shape, scale, shift)

    def total(self, x: Array) -> Array:
        return torch.sum(x)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return x.permute(axes)

    def linear(self, x: Array, w: Array, b: Array) -> Array:
        return nn.linear(x, w.T, b)  # w lies in memory as its transpose: see `_tensor`

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        return nn.conv2d(x, w, b, stride, padding, 1, groups)

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        return nn.max_pool2d(x, size, stride, padding)

    def image_mean(self, x: Array) -> Array:
        return x.mean((2, 3))

    def attention(self, q: Array, k: Array, v: Array, scale: float) -> Array:
        return nn.scaled_dot_product_attention(q, k, v, scale=scale)

    def jacobi(self, u: Array, sweeps: int) -> Array:
        u, v = u.clone(), u.clone()
        for _ in range(sweeps):
            sweep(u, v)
            u, v = v, u
        return u

    def identity(self, n: int, like: Array) -> Array:
        return torch.eye(n, dtype=like.dtype)

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return nn.cross_entropy(x, shares)


def sweep(u: Array, v: Array) -> None:
    """Write one sweep of Jacobi over u into v."""
    v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def cell(row: Array, h: Array, c: Array, wh: Array) -> tuple[Array, Array]:
    """Return the state after one step of an LSTM."""
    i, f, g, o = (row + h @ wh).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


class Model(torch.nn.Module):
    """A workload as a module, its weights parameters that do not change."""

    def __init__(self, workload: Workload, weights: Arrays, inputs: Arrays) -> None:
        super().__init__()
        self.workload, self.names, self.inputs = workload, list(weights), list(inputs)
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter(w, requires_grad=False) for w in weights.values()
        )

    def forward(self, *given: Array) -> Array:
        weights = dict(zip(self.names, self.weights))
        return self.workload.model(TorchOps(), weights, dict(zip(self.inputs, given)))


def _tensor(name: str, array: Any) -> Array:
    tensor = torch.from_numpy(array)
    if tensor.ndim == 4:
        return tensor.contiguous(memory_format=torch.channels_last)
    if name.endswith(".w"):
        return tensor.T.contiguous().T
    return tensor


class Main(Peer):
    """PyTorch with so many threads."""

    version = torch.__version__

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        if variant == "compile":
            import torch._inductor.config as inductor

            inductor.freezing = True
            inductor.compile_threads = 1
            inductor.cpp.threads = threads
            inductor.force_disable_caches = True
            torch.compile(lambda x: x + 1)(torch.ones(4))

    def load(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Any:
        return tuple({k: _tensor(k, v) for k, v in of.items()} for of in (weights, inputs))

    def compile(self, workload: Workload, data: Any) -> Mapping[str, Call]:
        weights, inputs = data
        if workload.loss is not None:
            return {"": self._training(workload, weights, inputs)}
        if workload.name.startswith("lstm"):
            call = self._lstm(weights, inputs["x"])
        elif workload.name.startswith("jacobi") and self.variant == "compile":
            call = self._jacobi(inputs["u"])
        else:
            model = self._made(Model(workload, weights, inputs).eval())
            given = list(inputs.values())
            call = lambda: model(*given)  # noqa: E731
        return {"": _inference(call)}

    def arrays(self, result: Any) -> list[Array]:
        return [t.detach().contiguous().numpy() for t in as_tuple(result)]

    def _made(self, function: Any) -> Any:
        """Compile in the variant that compiles."""
        if self.variant != "compile":
            return function
        torch.compiler.reset()
        return torch.compile(function, fullgraph=True, dynamic=False)

    def _jacobi(self, u: Array) -> Call:
        """Compile one sweep: nobody would have a hundred unrolled."""
        compiled = self._made(sweep)

        def call() -> Array:
            old, new = u.clone(), u.clone()
            for _ in range(100):
                compiled(old, new)
                old, new = new, old
            return old

        return call

    def _lstm(self, weights: Arrays, x: Array) -> Call:
        """Use the library's own LSTM, or a compiled cell: unrolled it compiles for minutes."""
        if self.variant == "compile":
            compiled = self._made(cell)

            def call() -> Array:
                h = c = torch.zeros(weights["state"].shape[0])
                states: list[Array] = []
                for row in torch.addmm(weights["bias"], x, weights["input"]):
                    h, c = compiled(row, h, c, weights["state"])
                    states.append(h)
                return torch.stack(states)

            return call
        width, hidden = x.shape[1], weights["state"].shape[0]
        layer = torch.nn.LSTM(width, hidden)
        with torch.no_grad():
            layer.weight_ih_l0.copy_(weights["input"].T)
            layer.weight_hh_l0.copy_(weights["state"].T)
            layer.bias_ih_l0.copy_(weights["bias"])
            layer.bias_hh_l0.zero_()
        return lambda: layer(x)[0]

    def _training(self, workload: Workload, weights: Arrays, inputs: Arrays) -> Call:
        present = {k: w.clone().requires_grad_() for k, w in weights.items()}
        descent = torch.optim.SGD(list(present.values()), lr=RATE, foreach=True)
        loss = self._made(lambda: workload.loss(TorchOps(), present, inputs))

        def call() -> Any:
            descent.zero_grad(set_to_none=True)
            value = loss()
            value.backward()
            descent.step()
            return value, *present.values()

        return call


def _inference(call: Callable[[], Any]) -> Call:
    def infer() -> Any:
        with torch.inference_mode():
            return call()

    return infer
