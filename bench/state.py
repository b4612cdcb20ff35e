"""What state costs: calls that update 180 arrays, and a step of Adam that does.

python bench/state.py

A call's time is that of the least of many, in microseconds, with kernels of four numbers each. The
step is that of a network 784-128-64-10 on 64 images in one thread: parameters and moments given
back as new arrays, donated, or as `sw.Variable`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import stepwell as sw

CALLS, STEPS, LAYERS = 3000, 300, 30


@dataclass
class Layer:
    """A layer's parameters, in a user's class."""

    w: Any
    b: Any


class Named(NamedTuple):
    """A layer's parameters, in a named tuple."""

    w: Any
    b: Any


KINDS: dict[str, Callable[..., Any]] = {
    "dicts": dict,
    "dataclasses": Layer,
    "named tuples": Named,
}


def least(call: Callable[[], object], times: int) -> float:
    """Return the microseconds of the shortest of many calls."""
    found: list[int] = []
    for _ in range(times):
        began = time.perf_counter_ns()
        call()
        found.append(time.perf_counter_ns() - began)
    return min(found) / 1e3


def trees(kind: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Return parameters and two moments of 60 arrays each."""

    def layer() -> Any:
        return kind(w=np.zeros((2, 2), np.float32), b=np.zeros((2, 2), np.float32))

    def layers() -> Any:
        return [layer() for _ in range(LAYERS)]

    return layers(), layers(), layers()


def added(params: Any, mu: Any, nu: Any, x: Any) -> Any:
    """Return all trees with a number added."""
    return tuple(sw.tree.map(lambda leaf: leaf + x, tree) for tree in (params, mu, nu))


def assigned(*given: Any) -> None:
    """Add a number to all variables of trees."""
    *every, x = given
    for tree in every:
        sw.tree.map(lambda leaf: leaf.assign_add(x), tree)


def show_calls() -> None:
    """Print what calls with 180 arrays cost."""
    x = np.ones((), np.float32)
    for name, kind in KINDS.items():
        donated = sw.jit(added, donate_argnums=(0, 1, 2))
        call = partial(donated, *trees(kind), x)
        call()
        row(f"180 donated arrays in {name}", least(call, CALLS))
    variables = sw.tree.map(sw.Variable, trees(dict))
    jitted = sw.jit(assigned)
    jitted(*variables, x)
    row("180 variables, passed", least(lambda: jitted(*variables, x), CALLS))
    outside = sw.jit(lambda x: assigned(*variables, x))
    outside(x)
    row("180 variables, read from outside", least(lambda: outside(x), CALLS))


def loss(params: Any, x: Any, labels: Any) -> Any:
    """Return the mean cross entropy of a network of three layers."""
    for number in range(3):
        x = x @ params[f"w{number}"] + params[f"b{number}"]
        x = sw.nn.relu(x) if number < 2 else x
    return np.mean(sw.nn.softmax_cross_entropy_with_integer_labels(x, labels))


def show_steps() -> None:
    """Print what a step of Adam costs."""
    rng, sizes = np.random.default_rng(0), (784, 128, 64, 10)
    params: dict[str, Any] = {}
    for number, (m, n) in enumerate(pairwise(sizes)):
        params[f"w{number}"] = (rng.standard_normal((m, n)) / m**0.5).astype(np.float32)
        params[f"b{number}"] = np.zeros(n, np.float32)
    x = rng.standard_normal((64, 784)).astype(np.float32)
    labels = rng.integers(0, 10, 64)
    adam = sw.optim.adam(1e-3)

    def step(params: Any, state: Any, x: Any, labels: Any) -> Any:
        value, gradients = sw.value_and_grad(loss)(params, x, labels)
        updates, state = adam.update(gradients, state, params)
        return value, state, sw.optim.apply_updates(params, updates)

    held = sw.tree.map(sw.Variable, params), sw.tree.map(sw.Variable, adam.init(params))

    def in_place(x: Any, labels: Any) -> Any:
        value, state, _ = step(*held, x, labels)
        sw.tree.assign(held[1], state)
        return value

    state = adam.init(params)
    plain, donated = sw.jit(step, threads=1), sw.jit(step, threads=1, donate_argnums=(0, 1))
    variables = sw.jit(in_place, threads=1)
    calls: dict[str, Callable[[], object]] = {
        "new arrays": lambda: plain(params, state, x, labels),
        "donated": lambda: donated(params, state, x, labels),
        "variables": lambda: variables(x, labels),
    }
    found = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(10):
        for name, call in calls.items():
            found[name] = min(found[name], least(call, STEPS // 10))
    for name, microseconds in found.items():
        row(f"a step of Adam, {name}", microseconds)


def row(name: str, microseconds: float) -> None:
    """Print one line."""
    print(f"{name:<40} {microseconds:>8.1f} us")


if __name__ == "__main__":
    show_calls()
    show_steps()
