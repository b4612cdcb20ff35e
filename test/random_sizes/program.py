"""A program being written: its text, and what it means in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Env: TypeAlias = dict[str, Any]
Step: TypeAlias = Callable[[Env], None]

MOST = 200_000
"""Elements beyond which a call is left out: it would take long, and is not refused."""
LIMIT = 1 << 47
"""Bytes that no array may have."""


class Unfit(Exception):
    """Sizes are not what an op wants."""


class TooLarge(Exception):
    """An array would be larger than this test wants to make."""


@dataclass(frozen=True)
class Value:
    """A tensor: its declared sizes, None for `?`, and for each a text of what it is made of."""

    name: str
    dtype: str
    sizes: tuple[int | None, ...]
    keys: tuple[str, ...]

    @property
    def type(self) -> str:
        """Its type in IR."""
        return type_of(self.dtype, self.sizes)

    @property
    def unknown(self) -> int:
        """How many `?` it has."""
        return self.sizes.count(None)


@dataclass(frozen=True)
class Number:
    """An index."""

    name: str
    key: str


def type_of(dtype: str, sizes: Sequence[int | None]) -> str:
    """Spell a type."""
    return f"tensor<{''.join('?x' if n is None else f'{n}x' for n in sizes)}{dtype}>"


def want(condition: bool) -> None:
    """Raise `Unfit` where a condition does not hold."""
    if not condition:
        raise Unfit


def sized(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that an array may have."""
    count = 1
    for n in shape:
        want(0 <= n <= LIMIT)
        count *= n
    want(count * 4 <= LIMIT)
    if max((count, *shape)) > MOST:
        raise TooLarge
    return tuple(shape)


@dataclass
class Block:
    """A block being written: what is there to use, what has been written, and what it means."""

    env: Env
    """What everything is in the call that the program is written for."""
    values: list[Value] = field(default_factory=list[Value])
    numbers: list[Number] = field(default_factory=list[Number])
    lines: list[str] = field(default_factory=list[str])
    steps: list[Step] = field(default_factory=list[Step])
    depth: int = 0

    def inside(self) -> Block:
        """Return a block that sees what there is here."""
        return Block(self.env, list(self.values), list(self.numbers), depth=self.depth + 1)

    def seeing(self, *values: Value) -> Block:
        """Return this block, in which there are these values too."""
        self.values += values
        return self

    def fresh(self) -> str:
        """Return a new name."""
        self.env["names"] = number = self.env.get("names", 0) + 1
        return f"v{number}"

    def add(self, value: Value, text: str, meaning: Callable[[Env], Any]) -> Value | None:
        """Write an op, if the call that is written for can run it."""

        def step(env: Env) -> None:
            result = np.asarray(meaning(env), _NUMPY[value.dtype])
            sized(result.shape)
            for n, known in zip(result.shape, value.sizes, strict=True):
                want(known in (None, n))
            env[value.name] = result

        return value if self.put(value, f"%{value.name} = {text}", step) else None

    def put(self, value: Value | Number, text: str, step: Step) -> bool:
        """Write lines, if the call that is written for can run them."""
        try:
            step(self.env)
        except (Unfit, TooLarge):
            return False
        self.lines += text.split("\n")
        self.steps.append(step)
        if isinstance(value, Value):
            self.values.append(value)
        else:
            self.numbers.append(value)
        return True

    def run(self, env: Env) -> None:
        """Do what the block means."""
        for step in self.steps:
            step(env)

    @property
    def text(self) -> str:
        """The lines, indented."""
        return "\n".join(f"  {line}" for line in self.lines)


_NUMPY = {"i32": np.int32, "f32": np.float32, "i64": np.int64, "i1": np.bool_}


@dataclass
class Program:
    """A program and its reference."""

    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    block: Block

    @property
    def text(self) -> str:
        """The module."""
        given = ", ".join(f"%{a.name}: {a.type}" for a in self.arguments)
        names = ", ".join(f"%{r.name}" for r in self.results)
        types = ", ".join(r.type for r in self.results)
        head = f"func.func @main({given}) -> ({types}) {{"
        return f"{head}\n{self.block.text}\n  func.return {names} : {types}\n}}\n"

    @property
    def unknown(self) -> int:
        """How many `?` the arguments have."""
        return sum(a.unknown for a in self.arguments)

    def inputs(self, sizes: Sequence[int], seed: int) -> list[Array]:
        """Return arguments whose `?` are ``sizes``, in order."""
        random, rest = np.random.default_rng(seed), iter(sizes)
        return [
            random.integers(-9, 10, [next(rest) if n is None else n for n in a.sizes], np.int32)
            for a in self.arguments
        ]

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what the program gives; `Unfit` where it must refuse, `TooLarge` where it may."""
        env: Env = {a.name: x for a, x in zip(self.arguments, inputs, strict=True)}
        with np.errstate(all="ignore"):
            self.block.run(env)
        return [env[r.name] for r in self.results]
