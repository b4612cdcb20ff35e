"""Workloads whose sizes nobody chose: drawn by a rule, so that nothing can be tuned for them alone.

Each kind has ranges; a size is drawn so that doubling it is as likely everywhere in its range, and
is not rounded: most are no multiple of a vector, a tile or a line of a cache. The numbers come from
the kind's name, so that every machine and every day measures the same shapes.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import models
import numpy as np
from models import Random, normal

LEAST_WORK, MOST_WORK = 1e6, 3e9
"""Multiply-adds of one call: more than a call costs, less than a second."""


def drawn(random: Random, low: int, high: int) -> int:
    """Return a size from ``low`` to ``high``, every doubling being equally likely."""
    return round(float(np.exp(random.uniform(np.log(low), np.log(high)))))


def products(random: Random) -> tuple[int, ...]:
    """Return rows, depth and columns of a product."""
    return drawn(random, 48, 2500), drawn(random, 48, 2500), drawn(random, 48, 2500)


def few_rows(random: Random) -> tuple[int, ...]:
    """Return a few rows and large weights, as of a layer in a small batch."""
    return drawn(random, 1, 96), drawn(random, 500, 4200), drawn(random, 500, 4200)


def deep(random: Random) -> tuple[int, ...]:
    """Return a small result of a long sum."""
    return drawn(random, 17, 120), drawn(random, 3000, 30000), drawn(random, 17, 120)


def layers(random: Random) -> tuple[int, ...]:
    """Return a batch and the widths of three layers."""
    return drawn(random, 1, 80), *(drawn(random, 60, 1100) for _ in range(4))


def filters(random: Random) -> tuple[int, ...]:
    """Return size of the image, features of both sides, window and stride."""
    size, window = drawn(random, 10, 112), int(random.choice([3, 3, 5, 7]))
    return size, drawn(random, 12, 400), drawn(random, 12, 400), window, int(random.choice([1, 2]))


def points(random: Random) -> tuple[int, ...]:
    """Return the same for windows of one place."""
    return drawn(random, 7, 60), drawn(random, 30, 1200), drawn(random, 30, 1200), 1, 1


def depthwise(random: Random) -> tuple[int, ...]:
    """Return the same for a filter of each feature's own."""
    features, window = drawn(random, 24, 1000), int(random.choice([3, 5]))
    size = drawn(random, 7, 112)
    return size, features, features, window, int(random.choice([1, 2]))


def steps(random: Random) -> tuple[int, ...]:
    """Return the length and the width of a recurrent layer."""
    return drawn(random, 5, 120), drawn(random, 48, 400)


def rows(random: Random) -> tuple[int, ...]:
    """Return rows and columns of what is normalised along its rows."""
    return drawn(random, 30, 6000), drawn(random, 60, 5000)


def work(kind: str, sizes: tuple[int, ...]) -> float:
    """Return about how many multiply-adds a call has."""
    if kind in ("products", "few_rows", "deep"):
        return float(np.prod(sizes, dtype=float))
    if kind == "layers":
        batch, *widths = sizes
        return float(batch * sum(a * b for a, b in itertools.pairwise(widths)))
    if kind == "steps":
        return 8.0 * sizes[0] * sizes[1] ** 2
    if kind == "rows":
        return 10.0 * sizes[0] * sizes[1]
    size, inputs, outputs, window, stride = sizes
    each = outputs if kind == "depthwise" else inputs * outputs
    return float((size // stride) ** 2 * each * window**2)


DRAWN: dict[str, tuple[Callable[[Random], tuple[int, ...]], int]] = {
    "products": (products, 6),
    "few_rows": (few_rows, 4),
    "deep": (deep, 3),
    "layers": (layers, 2),
    "filters": (filters, 5),
    "points": (points, 3),
    "depthwise": (depthwise, 3),
    "steps": (steps, 2),
    "rows": (rows, 2),
}
"""Of each kind: what draws its sizes, and how many shapes are drawn."""


def shapes(salt: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield kinds and sizes: the first of each kind that have some work to do, but not too much.

    salt : another one gives other shapes
    """
    for kind, (draw, count) in DRAWN.items():
        random = np.random.default_rng(zlib.crc32((kind + salt).encode()))
        while count:
            sizes = draw(random)
            if LEAST_WORK <= work(kind, sizes) <= MOST_WORK:
                yield kind, sizes
                count -= 1


def add_drawn(table: Any, salt: str = "") -> None:
    """Add a workload for each shape."""
    for kind, sizes in shapes(salt):
        name = f"drawn_{kind}_{'_'.join(map(str, sizes))}"
        if kind in ("products", "few_rows", "deep"):
            _add_product(table, name, *sizes)
        elif kind == "layers":
            _add_layers(table, name, *sizes)
        elif kind == "steps":
            table.of_one(name, _lstm, sizes, partial(models.lstm_weights, width=sizes[1]))
        elif kind == "rows":
            table.of_one(name, lambda ops, p, x: ops.softmax(x), sizes, lambda random: {})
        else:
            _add_filter(table, name, kind, *sizes)


def _add_product(table: Any, name: str, rows: int, depth: int, columns: int) -> None:
    table.of_one(
        name,
        lambda ops, p, x: ops.matmul(x, p["w"]),
        (rows, depth),
        lambda random: {"w": normal(random, depth, columns)},
    )


def _add_layers(table: Any, name: str, batch: int, *widths: int) -> None:
    pairs = list(itertools.pairwise(widths))

    def model(ops: Any, p: Any, x: Any) -> Any:
        for n in range(len(pairs)):
            x = ops.relu(models.linear(ops, p, f"layer{n}", x))
        return x

    def weights(random: Random) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for n, (inner, outer) in enumerate(pairs):
            found |= models.linear_weights(random, f"layer{n}", inner, outer)
        return found

    table.of_one(name, model, (batch, widths[0]), weights)


def _add_filter(
    table: Any, name: str, kind: str, size: int, inner: int, outer: int, window: int, stride: int
) -> None:
    options = {"stride": stride, "padding": window // 2}
    groups = inner if kind == "depthwise" else 1
    if groups > 1:
        options["groups"] = groups
    table.of_one(
        name,
        lambda ops, p, x: ops.relu(models.conv(ops, p, "filter", x, **options)),
        (1, inner, size, size),
        lambda random: models.conv_weights(random, "filter", outer, inner // groups, window),
    )


def _lstm(ops: Any, p: Any, x: Any) -> Any:
    return ops.lstm(x, p["input"], p["state"], p["bias"])
