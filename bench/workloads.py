"""What is measured, each workload defined once: its data, and its model in terms of `Ops`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import models
import numpy as np
from drawn import add_drawn
from models import Random, Weights, normal
from ops import Array, Ops
from reference import NumpyOps

Arrays = dict[str, Array]
SOURCES = ("ops.py", "reference.py", "models.py", "drawn.py", "workloads.py")
RATE = 0.1
"""Of the training step."""


def _no_weights(random: Random) -> Arrays:
    return {}


@dataclass(frozen=True)
class Workload:
    """One line of the table."""

    name: str
    model: Callable[[Ops, Weights, Mapping[str, Array]], Any]
    inputs: Callable[[Random], Arrays]
    weights: Callable[[Random], Arrays] = _no_weights
    loss: Callable[[Ops, Weights, Mapping[str, Array]], Any] | None = None
    """Where the workload is a step of training: what a peer with gradients differentiates."""
    passes: int = 1
    """How often the arrays are read and written at least."""
    small: bool = False
    """Whether only what a call costs counts, which no limit of the machine tells."""
    tolerance: float = 1e-3

    def data(self) -> tuple[Arrays, Arrays]:
        """Return weights and inputs, the same in every process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return self.weights(random), self.inputs(random)

    def reference(self, cache: Path) -> Reference:
        """Return the right results, from the cache where they are there."""
        path = cache / f"{self.name}-{stamp()}.npz"
        if not path.exists():
            ops, (p, x) = NumpyOps(), self.data()
            found = as_tuple(self.model(ops, _in_double(p), _in_double(x)))
            arrays = [*p.values(), *x.values()]
            bytes = sum(a.nbytes for a in arrays) + sum(np.size(r) * 4 for r in found)
            path.parent.mkdir(parents=True, exist_ok=True)
            partly = path.with_suffix(".part.npz")
            work = np.array([ops.flops, bytes * self.passes])
            np.savez(partly, work, *found)
            partly.rename(path)
        with np.load(path) as file:
            work, *results = (file[name] for name in file.files)
        return Reference(int(work[0]), int(work[1]), tuple(results))


@dataclass(frozen=True)
class Reference:
    """What a workload is: operations, least bytes read and written, and right results."""

    flops: int
    bytes: int
    results: tuple[Array, ...]

    def error(self, results: list[Array]) -> float:
        """Return the greatest error against the greatest element of each result."""
        if len(results) != len(self.results):
            return float("inf")
        return max(map(_error, results, self.results))


def _error(found: Array, right: Array) -> float:
    if np.size(found) != np.size(right):
        return float("inf")
    found = np.asarray(found).reshape(right.shape)
    if right.dtype.kind in "iu":
        return float(np.abs(found.astype(np.int64) - right).max())
    difference = np.abs(found.astype(np.float64) - right).max()
    relative = difference / max(np.abs(right).max(), 1e-30)
    return float(relative) if np.isfinite(relative) else float("inf")


def as_tuple(result: Any) -> tuple[Any, ...]:
    """Return a result or several as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _in_double(arrays: Arrays) -> Arrays:
    return {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in arrays.items()}


@cache
def stamp() -> str:
    """Return a digest of what workloads and their results depend on."""
    here = Path(__file__).parent
    return sha256(b"".join((here / name).read_bytes() for name in SOURCES)).hexdigest()[:12]


@dataclass
class _Table:
    """Collects workloads by name."""

    found: dict[str, Workload] = field(default_factory=dict[str, Workload])

    def add(self, name: str, model: Any, inputs: Any, weights: Any = _no_weights, **more: Any):
        self.found[name] = Workload(name, model, inputs, weights, **more)

    def of_one(self, name: str, model: Any, shape: tuple[int, ...], weights: Any, **more: Any):
        """Add a model of one input."""
        self.add(
            name,
            lambda ops, p, x: model(ops, p, x["x"]),
            lambda random: {"x": normal(random, *shape)},
            weights,
            **more,
        )


def _products(table: _Table) -> None:
    for n in (128, 256, 512, 1024, 2048):
        table.add(
            f"gemm_{n}",
            lambda ops, p, x: ops.matmul(x["a"], x["b"]),
            lambda random, n=n: {"a": normal(random, n, n), "b": normal(random, n, n)},
        )
    for m, n, k in ((1, 4096, 4096), (8, 3072, 768), (512, 3072, 768)):
        table.of_one(
            f"gemm_m{m}_n{n}_k{k}",
            lambda ops, p, x: ops.matmul(x, p["w"]),
            (m, k),
            lambda random, k=k, n=n: {"w": normal(random, k, n)},
        )


def _elementwise(table: _Table) -> None:
    def chain(ops: Ops, p: Weights, x: Mapping[str, Array]) -> Array:
        inner = ops.gelu(ops.add(ops.multiply(x["x"], x["a"]), x["b"]), by_tanh=True)
        return ops.subtract(ops.multiply(inner, x["c"]), x["x"])

    def rows(random: Random) -> Arrays:
        return {"x": normal(random, 2048, 2048), **{k: normal(random, 2048) for k in "abc"}}

    table.add("gelu_chain_4m", chain, rows)
    table.add(
        "sum_of_products_16m",
        lambda ops, p, x: ops.total(ops.add(x["a"], ops.multiply(x["b"], x["c"]))),
        lambda random: {k: normal(random, 1 << 24) for k in "abc"},
    )
    table.of_one("softmax_1024x1024", lambda o, p, x: o.softmax(x), (1024, 1024), _no_weights)
    table.of_one(
        "layer_norm_4096x768",
        lambda ops, p, x: ops.layer_norm(x, p["scale"], p["shift"]),
        (4096, 768),
        lambda random: {
            "scale": 1 + normal(random, 768, scale=0.1),
            "shift": normal(random, 768, scale=0.1),
        },
    )
    table.of_one("logsumexp_4096x1024", lambda o, p, x: o.logsumexp(x), (4096, 1024), _no_weights)


def _perceptrons(table: _Table) -> None:
    def shares(random: Random) -> Array:
        return np.eye(10, dtype=np.float32)[random.integers(0, 10, 64)]

    table.of_one(
        "mlp_forward_b64",
        lambda ops, p, x: ops.softmax(models.perceptron(ops, p, x)),
        (64, 784),
        models.perceptron_weights,
    )
    table.add(
        "mlp_train_b64",
        lambda ops, p, x: models.perceptron_step(ops, p, x["x"], x["shares"], RATE),
        lambda random: {"x": normal(random, 64, 784), "shares": shares(random)},
        models.perceptron_weights,
        loss=lambda ops, p, x: ops.cross_entropy(models.perceptron(ops, p, x["x"]), x["shares"]),
    )


def _images(table: _Table) -> None:
    for name, shape, weights, options in (
        ("conv3x3_64_56", (1, 64, 56, 56), (64, 64, 3), {"padding": 1}),
        ("conv1x1_256_64_56", (1, 256, 56, 56), (64, 256, 1), {}),
        ("depthwise3x3_128_28", (1, 128, 28, 28), (128, 1, 3), {"padding": 1, "groups": 128}),
    ):
        table.of_one(
            name,
            lambda ops, p, x, options=options: ops.relu(
                models.conv(ops, p, "filter", x, **options)
            ),
            shape,
            partial(_filter, sizes=weights),
        )
    table.of_one(
        "resnet_block_64_56",
        lambda ops, p, x: models.block(ops, p, "block", x, 1),
        (1, 64, 56, 56),
        lambda random: models.block_weights(random, "block", 64, 64, 1),
    )
    table.of_one("resnet18_224", models.resnet18, (1, 3, 224, 224), models.resnet18_weights)
    table.of_one(
        "inverted_residual_24_56",
        models.inverted_residual,
        (1, 24, 56, 56),
        models.inverted_residual_weights,
    )


def _filter(random: Random, sizes: tuple[int, int, int]) -> Arrays:
    return models.conv_weights(random, "filter", *sizes)


def _sequences(table: _Table) -> None:
    shape = (1, models.LENGTH, models.WIDTH)
    table.of_one("attention_s128_d768", models.attention, shape, models.attention_weights)
    table.of_one("encoder_s128_d768", models.encoder, shape, models.encoder_weights)
    table.of_one("bert_base_s128", models.bert, shape, models.bert_weights)
    table.of_one(
        "lstm_t100_h256",
        lambda ops, p, x: ops.lstm(x, p["input"], p["state"], p["bias"]),
        (100, 256),
        lambda random: models.lstm_weights(random, 256),
    )


def _loops(table: _Table) -> None:
    def small(random: Random) -> Arrays:
        return {"x": random.integers(-1, 2, (10, 10)).astype(np.int32)}

    def power(ops: Ops, p: Weights, x: Mapping[str, Array]) -> Array:
        return ops.power(x["x"], 10, 100)

    table.add("power100_f32", power, lambda r: {"x": models.rotation(r, 10)}, small=True)
    table.add("power100_i32", power, small, small=True, tolerance=0.5)
    table.add(
        "call_add8",
        lambda ops, p, x: ops.add(x["x"], x["y"]),
        lambda random: {"x": normal(random, 8), "y": normal(random, 8)},
        small=True,
    )
    table.add(
        "jacobi_1024_100",
        lambda ops, p, x: ops.jacobi(x["u"], 100),
        lambda random: {"u": normal(random, 1024, 1024)},
        passes=100,
    )


def _all() -> dict[str, Workload]:
    table = _Table()
    for part in (_products, _elementwise, _perceptrons, _images, _sequences, _loops):
        part(table)
    add_drawn(table)
    return table.found


def held_out() -> dict[str, Workload]:
    """Return workloads of shapes that no figure but the cost model's error is measured on."""
    table = _Table()
    add_drawn(table, " held out")
    return table.found


WORKLOADS = _all()


def chosen(patterns: str) -> list[Workload]:
    """Return the workloads whose names match one of the patterns, separated by commas."""
    wanted = [p for p in patterns.split(",") if p]
    return [w for w in WORKLOADS.values() if any(fnmatchcase(w.name, p) for p in wanted)]
