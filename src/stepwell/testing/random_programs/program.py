"""A program under construction: typed values, statements, and facts about each value."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stepwell.core.dtypes import DTYPES

Array: TypeAlias = "NDArray[Any]"
Size: TypeAlias = "int | str"
"""A static size, or the name of a dynamic one: axes with the same name have equal sizes."""
T = TypeVar("T")

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "ui8", "i8", "i64", "ui32", "i16")
EXACT = {"f64": 2.0**50, "f32": 2.0**22, "f16": 2.0**10, "bf16": 2.0**7}
"""The largest integers that stay exact, also in sums of a few of them."""
LARGEST = 70
"""The largest axis of an argument."""


@dataclass(frozen=True)
class Value:
    """A tensor of the program."""

    name: str
    shape: tuple[Size, ...]
    dtype: str
    bound: float | None = None
    """For floats that are integers (or NaN, or infinite): a bound on their magnitude."""

    @property
    def type(self) -> str:
        """The type, as written."""
        return tensor(self.shape, self.dtype)

    @property
    def floats(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype in FLOATS

    @property
    def exact(self) -> bool:
        """Whether every floor must compute exactly these bits."""
        return not self.floats or self.bound is not None


def tensor(shape: Sequence[Size], dtype: str) -> str:
    """Return the text of a tensor type."""
    axes = "".join(f"{n}x" if isinstance(n, int) else "?x" for n in shape)
    return f"tensor<{axes}{dtype}>"


@dataclass
class Program:
    """The text of a function, written one random op at a time."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    arguments: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    values: list[Value] = field(default_factory=list[Value])
    known: dict[str, tuple[Value, int]] = field(default_factory=dict[str, tuple[Value, int]])
    """Maps each dynamic size to a value and axis that have it."""
    results: list[Value] = field(default_factory=list[Value])
    widened: set[str] = field(default_factory=set[str])
    """The dtypes of inexact values that are cast to other floats."""
    depth: int = 1
    count: int = 0

    # drawing

    def pick(self, what: Sequence[T]) -> T:
        """Draw an item; the first is the simplest."""
        return what[0] if len(what) == 1 else what[self.number(0, len(what) - 1)]

    def number(self, low: int, high: int) -> int:
        """Draw an integer; ``low`` is the simplest."""
        return self.draw(st.integers(low, high))

    def chance(self) -> bool:
        """Draw a boolean."""
        return self.draw(st.booleans())

    def some(self, fits: Callable[[Value], bool]) -> Value | None:
        """Draw a value that fits, the latest being the simplest; None if there is none."""
        found = [v for v in reversed(self.values) if fits(v)]
        return self.pick(found) if found else None

    def like(self, x: Value, exact: bool = False) -> Value:
        """Draw a value of the type of ``x``, possibly itself; or a new argument."""
        found = self.some(
            lambda v: v.shape == x.shape and v.dtype == x.dtype and (v.exact or not exact)
        )
        if found is not None and (found != x or self.chance()):
            return found
        return self.argument(x.shape, x.dtype) if _has_argument_sizes(x.shape) else found or x

    # writing

    def fresh(self, prefix: str = "v") -> str:
        """Return a new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("  " * self.depth + text)

    def argument(self, shape: Sequence[Size], dtype: str) -> Value:
        """Return a new argument of the function; its numbers are small integers."""
        bound = 3.0 if dtype in FLOATS else None
        created = Value(self.fresh("a"), tuple(shape), dtype, bound)
        self.arguments.append(created)
        self.values.insert(len(self.arguments) - 1, created)
        self._note(created)
        return created

    def op(
        self,
        text: str,
        shape: Sequence[Size],
        dtype: str,
        bound: float | None = None,
        types: str | None = None,
    ) -> Value:
        """Write ``%v = text : types`` and return the value; ``types`` defaults to the result's."""
        keep = bound is not None and dtype in FLOATS and bound <= EXACT[dtype]
        created = Value(self.fresh(), tuple(shape), dtype, bound if keep else None)
        self.line(f"%{created.name} = {text} : {created.type if types is None else types}")
        self.values.append(created)
        self._note(created)
        return created

    def _note(self, value: Value) -> None:
        for axis, size in enumerate(value.shape):
            if isinstance(size, str) and self.depth == 1:
                self.known.setdefault(size, (value, axis))

    def size(self, size: Size) -> str:
        """Return the name of an index that equals ``size``."""
        name = self.fresh("n")
        if isinstance(size, int):
            self.line(f"%{name} = arith.constant {size} : index")
        else:
            value, axis = self.known[size]
            self.line(f"%{name} = nd.dim %{value.name} {{axis = {axis}}} : {value.type}")
        return f"%{name}"

    def sizes(self, shape: Sequence[Size]) -> str:
        """Return ``, sizes(...)`` for the dynamic sizes of ``shape``, or ""."""
        unknown = [self.size(n) for n in shape if isinstance(n, str)]
        return f", sizes({', '.join(unknown)})" if unknown else ""

    def has_sizes(self, shape: Sequence[Size]) -> bool:
        """Whether every dynamic size of ``shape`` is that of a visible value."""
        return all(isinstance(n, int) or n in self.known for n in shape)

    def plain(self, shape: Sequence[Size]) -> bool:
        """Whether an argument can have this shape: its dynamic sizes are those of arguments."""
        return _has_argument_sizes(shape)

    def lengths(self) -> list[Size]:
        """Return sizes for a new axis."""
        return [3, 1, 7, *(n for n in self.known if not n.startswith("d"))]

    @contextmanager
    def region(self) -> Generator[None]:
        """Write the lines inside one level deeper; their values are out of scope afterwards."""
        before = list(self.values)
        self.depth += 1
        yield
        self.depth -= 1
        arguments = [a for a in self.arguments if a not in before]
        self.values = [*arguments, *before]

    # finished

    @property
    def text(self) -> str:
        """The module."""
        arguments = ", ".join(f"%{a.name}: {a.type}" for a in self.arguments)
        types = ", ".join(r.type for r in self.results)
        names = ", ".join(f"%{r.name}" for r in self.results)
        body = "\n".join(self.lines)
        return (
            f"func.func @main({arguments}) -> ({types}) {{\n{body}\n"
            f"  func.return {names} : {types}\n}}\n"
        )

    @property
    def unknown(self) -> list[str]:
        """The dynamic sizes of the arguments."""
        return list(dict.fromkeys(n for a in self.arguments for n in a.shape if isinstance(n, str)))

    def inputs(self, sizes: dict[str, int], seed: int) -> list[Array]:
        """Return arguments: small integers, in every other run with NaN and infinities."""
        random = np.random.default_rng(seed)
        return [_draw(random, a, sizes, seed % 2 == 1) for a in self.arguments]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Make hypothesis print the text of a failing program."""
        printer.text(f"\n{self.text}")


def _has_argument_sizes(shape: Sequence[Size]) -> bool:
    """Whether an argument can have this shape: its dynamic sizes are those of arguments."""
    return all(isinstance(n, int) or not n.startswith("d") for n in shape)


def _draw(random: np.random.Generator, value: Value, sizes: dict[str, int], odd: bool) -> Array:
    shape = [n if isinstance(n, int) else sizes[n] for n in value.shape]
    kind = DTYPES[value.dtype]
    low = 0 if kind.kind in ("unsigned", "bool") else -3
    numbers = np.asarray(random.integers(low, 2 if kind.kind == "bool" else 4, shape))
    if kind.kind == "float" and odd:
        strange = random.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), shape)
        numbers = np.where(random.random(shape) < 0.05, strange, numbers)
    elif odd and kind.kind != "bool":
        strange = random.integers(-(2**62), 2**62, shape)
        numbers = np.where(random.random(shape) < 0.1, strange, numbers)
    return np.asarray(numbers).astype(kind.numpy)
