"""Generate a recipe from a seed: any step whose operands and results are admissible."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from stepwell.testing.user_programs.known import DIGITS, DTYPES, Known, admissible
from stepwell.testing.user_programs.recipe import (
    Leaf,
    Recipe,
    Step,
    apply_known,
    operand,
    values_of,
    widened,
)
from stepwell.testing.user_programs.spaces import Plain

SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (1,), (5,), (16,), (64,), (127,), (1000,), (4097,)),
    *((3, 5), (16, 16), (8, 64), (5, 300), (33, 7), (1, 9), (64, 64), (257, 33), (128, 130)),
    (4320, 24),
    *((2, 3, 5), (4, 16, 8), (2, 64, 33), (3, 1, 70), (6, 40, 40)),
    *((2, 3, 8, 8), (1, 8, 17, 17), (2, 4, 6, 64)),
)
KINDS = ("f32", "f32", "f32", "f32", "i32", "i32", "f64", "f16", "bf16", "i8", "u8", "i64", "u32")
MAX_ELEMENTS = 1 << 17
"""The most elements of a value."""
PRODUCTS = 1 << 25
"""The most products of one contraction."""
TRIES = 12


class Draw:
    """A recipe under construction, with the value of each operand on NumPy."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.leaves: list[Leaf] = []
        self.given: list[Known] = []
        self.steps: list[Step] = []
        self.values: list[Known] = []
        self.kinds = self.random.sample(KINDS, self.random.choice((1, 2, 3, 4)))
        self.busy = self.random.choice((0.2, 0.5, 0.8))
        """The probability that an operand is one of the last few values."""

    # choosing

    def chance(self, part: float = 0.5) -> bool:
        """Return True with probability ``part``."""
        return self.random.random() < part

    def pick(self, some: Sequence[Any]) -> Any:
        """Return one of ``some``."""
        return self.random.choice(some)

    def known(self, n: int) -> Known:
        """Return the value of operand ``n``."""
        return operand(n, self.given, self.values)

    def all(self) -> list[int]:
        """Return every operand, the newest last."""
        return [*(-1 - k for k in range(len(self.given))), *range(len(self.values))]

    def any(self, fits: Callable[[Known], bool] = lambda _: True) -> int | None:
        """Return an operand that fits, preferably a new one."""
        found = [n for n in self.all() if fits(self.known(n)) and admissible(self.known(n))]
        if not found:
            return None
        return self.pick(found[-4:]) if self.chance(self.busy) else self.pick(found)

    def like(self, n: int) -> int:
        """Return an operand of the same type as ``n``: itself, another, or a new argument."""
        x = self.known(n)
        if not self.chance(0.15):
            found = self.any(lambda k: k.dtype == x.dtype and k.shape == x.shape)
            if found is not None:
                return found
        return self.leaf(x.dtype, x.shape)

    # adding

    def leaf(self, dtype: str, shape: Sequence[int], kind: str = "random", **how: Any) -> int:
        """Add an argument or a captured value."""
        if self.closed_in:
            raise Skip
        closed = how.pop("closed", self.chance(0.35))
        if kind == "random" and closed and self.chance(0.25) and "low" not in how:
            kind, how["low"] = "uniform", self.pick((0, 1, 1, 2))
        leaf = Leaf(dtype, tuple(shape), kind, closed=closed, **how)
        array = widened(values_of(leaf, self.seed + len(self.leaves)), dtype)
        self.leaves.append(leaf)
        self.given.append(Known(array, dtype))
        return -len(self.leaves)

    def add(self, op: str, *operands: int, **how: Any) -> int | None:
        """Add a step; return its first result, None if it is not admissible."""
        step = Step(op, operands, how)
        try:
            found = apply_known(Plain(), step, [self.known(n) for n in operands])
        except (ValueError, IndexError, OverflowError, ZeroDivisionError):
            return None
        if not all(admissible(k) and k.array.size <= MAX_ELEMENTS for k in found):
            return None
        for k in found:
            if not k.floats and k.array.dtype != DTYPES[k.dtype]:
                return None
        self.steps.append(step)
        self.values.extend(found)
        return len(self.values) - len(found)

    def tame(self, n: int | None, most: int = 4) -> int | None:
        """Clip floats, or numbers to be cast, to small values."""
        if n is None or self.known(n).dtype == "bool" or self.known(n).greatest <= most:
            return n
        low = 0 if self.known(n).dtype[0] == "u" else -most
        return self.add("clip", n, low=low, high=most)

    def inner(self, leaves: Sequence[Known]) -> Draw:
        """Return a recipe under construction for a body with the arguments ``leaves``."""
        body = Draw(self.random.getrandbits(30))
        body.given = list(leaves)
        body.kinds, body.closed_in = self.kinds, True
        return body

    closed_in = False
    """Whether this is a body, which cannot have leaves of its own."""

    def recipe(self, results: Sequence[int]) -> Recipe:
        """Return the recipe drawn so far."""
        return Recipe(tuple(self.leaves), tuple(self.steps), tuple(results))


def start(seed: int) -> Draw:
    """Return a recipe with a few leaves."""
    g = Draw(seed)
    shapes = g.random.sample(SHAPES, 3)
    for _ in range(g.pick((1, 2, 3, 4))):
        g.leaf(g.pick(g.kinds), g.pick(shapes), closed=False)
    return g


def program(seed: int, rules: Sequence[Callable[[Draw], int | None]], most: int = 80) -> Recipe:
    """Draw a program of 10 to ``most`` steps by ``rules``, with one to five results."""
    g = start(seed)
    wanted = g.random.choice((10, 15, 20, 30, 45, 60, most))
    for _ in range(wanted * TRIES):
        if len(g.steps) >= wanted:
            break
        with suppress(Skip):
            g.pick(rules)(g)
    if not g.steps:
        g.add("plus", -1, by=1)
    unused = set(range(len(g.values))) - {n for s in g.steps for n in s.operands}
    results = list(dict.fromkeys([len(g.values) - 1, *sorted(unused)[-8:]]))
    while len(results) < 5 and g.chance(0.4):
        results.append(g.pick(range(len(g.values))))
    if g.chance(0.1):
        results.append(g.pick(results))
    return g.recipe(results)


class Skip(Exception):
    """A rule finds no operand that fits."""


def need(n: int | None) -> int:
    """Return an operand, or abandon the rule if it is None."""
    if n is None:
        raise Skip
    return n


def is_float(k: Known) -> bool:
    """Whether ``k`` has floats."""
    return k.dtype in DIGITS


def is_number(k: Known) -> bool:
    """Whether ``k`` has numbers, not booleans."""
    return k.dtype != "bool"
