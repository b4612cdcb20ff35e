"""A program as data: steps that run on NumPy or in a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from stepwell.testing.user_programs.known import DIGITS, DTYPES, Known


@dataclass(frozen=True)
class Step:
    """One call: the name in `OPS`, the numbers of its operands, and its other arguments."""

    op: str
    operands: tuple[int, ...]
    how: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Leaf:
    """An array: an argument or a captured value. ``low`` and ``high`` bound the numbers."""

    dtype: str
    shape: tuple[int, ...]
    kind: str = "random"
    """random, uniform (all equal), range, permutation, places (indices) or fixed."""
    low: int = -3
    high: int = 4
    closed: bool = False
    """Whether the function captures it."""
    fixed: Any = None


@dataclass(frozen=True)
class Recipe:
    """A function: operand ``-1 - k`` is leaf ``k``, operand ``n`` the n-th value of its steps."""

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]


Told: TypeAlias = Sequence[tuple[str, float]]
"""dtype and error of each result."""


@dataclass(frozen=True)
class Op:
    """The implementation of a step.

    apply(xp, xs, how) : a value or a tuple of them, on NumPy or traced
    known(ks, ys, how) : dtype and error of each result, from the operands and NumPy's results
    direct(xp, ks, how) : the complete results on NumPy, for steps that contain steps
    """

    apply: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
    known: Callable[[Sequence[Known], Sequence[Any], Mapping[str, Any]], Told] | None = None
    direct: Callable[[Any, Sequence[Known], Mapping[str, Any]], list[Known]] | None = None


OPS: dict[str, Op] = {}


def values_of(leaf: Leaf, seed: int) -> Any:
    """Return the array of a leaf, in its own dtype."""
    random, dtype = np.random.default_rng(seed), DTYPES[leaf.dtype]
    match leaf.kind:
        case "uniform":
            return np.full(leaf.shape, leaf.low).astype(dtype)
        case "range":
            return np.arange(int(np.prod(leaf.shape))).reshape(leaf.shape).astype(dtype)
        case "permutation":
            return random.permutation(int(np.prod(leaf.shape))).reshape(leaf.shape).astype(dtype)
        case "fixed":
            return np.asarray(leaf.fixed).astype(dtype)
        case _:
            low = max(leaf.low, 0) if leaf.dtype[0] in "ub" and leaf.dtype != "bf16" else leaf.low
            high = 2 if leaf.dtype == "bool" else max(leaf.high, low + 1)
            return random.integers(low, high, leaf.shape).astype(dtype)


def widened(array: Any, dtype: str) -> Any:
    """Return an array for NumPy's computation: floats in 64 bits."""
    return array.astype(np.float64) if dtype in DIGITS else array


def run_known(xp: Any, steps: Sequence[Step], leaves: Sequence[Known]) -> list[Known]:
    """Return the values of ``steps`` on NumPy."""
    values: list[Known] = []
    for step in steps:
        values.extend(apply_known(xp, step, [operand(n, leaves, values) for n in step.operands]))
    return values


def operand(n: int, leaves: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the value of operand number ``n``."""
    return leaves[-1 - n] if n < 0 else values[n]


def apply_known(xp: Any, step: Step, operands: Sequence[Known]) -> list[Known]:
    """Return the results of one step on NumPy."""
    op = OPS[step.op]
    if op.direct is not None:
        return op.direct(xp, operands, step.how)
    assert op.known is not None
    with np.errstate(all="ignore"):
        ys = op.apply(xp, [k.array for k in operands], step.how)
        many = [np.asarray(y) for y in (ys if isinstance(ys, tuple) else (ys,))]
        bounds = op.known(operands, many, step.how)
    return [Known(y, dtype, error) for y, (dtype, error) in zip(many, bounds, strict=True)]


def run_traced(xp: Any, steps: Sequence[Step], leaves: Sequence[Any]) -> list[Any]:
    """Return the traced values of ``steps``."""
    values: list[Any] = []
    for step in steps:
        ys = OPS[step.op].apply(xp, [operand(n, leaves, values) for n in step.operands], step.how)
        values.extend(ys if isinstance(ys, tuple) else (ys,))
    return values
