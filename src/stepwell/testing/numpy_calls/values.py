"""Parts of random calls: arrays with special numbers, scalars, axes, shapes, indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *SIGNED, *UNSIGNED, *FLOATS)
SMALL = ("float64", "float32", "int32", "int64", "uint8", "bool")
SIZES = (0, 1, 1, 2, 3, 3, 4, 5)
MOST_ELEMENTS = 400


@dataclass
class Call:
    """Lines of Python that assign the result to ``r``, using the module ``m`` and arrays."""

    text: str
    arrays: dict[str, Any]
    """The arguments: arrays, and numbers."""
    name: str
    """The name of the function, for statistics."""
    module: str = "np"
    """Whether ``m`` is ``np`` or ``snp``."""
    rounding: str = "exact"
    """The tolerance for floats: exact, near (a few units in the last place), sums."""
    free_zeros: bool = False
    """Whether zeros may have either sign."""

    def __str__(self) -> str:
        given = ", ".join(f"{k} = {_spelled(v)}" for k, v in self.arrays.items())
        return f"m = {self.module}; {given}; {self.text}"


def _spelled(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return repr(array)
    listed = str(array.tolist())
    shown = listed if len(listed) < 300 else f"{listed[:300]}..."
    return f"np.array({shown}, '{array.dtype}').reshape({array.shape})"


@dataclass
class Draw:
    """Draws the parts of a call."""

    random: Random
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])
    tame: bool = False
    """Whether most numbers are small and finite."""

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return self.random.choice(items)

    def name(self, names: Sequence[str]) -> str:
        """Return one of ``names``; adding a name changes only the calls that draw it."""
        number = self.random.random()
        return max(names, key=lambda name: crc32(f"{number} {name}".encode()))

    def chance(self, p: float) -> bool:
        """Return true with probability ``p``."""
        return self.random.random() < p

    def dtype(self) -> str:
        """Return a dtype's name."""
        return self.pick((*DTYPES, "float32", "float64", "float64", "int64", "int32"))

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Return a shape of ``least`` to ``most`` axes."""
        rank = self.pick([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4) if least <= r <= most] or [least])
        shape = tuple(self.pick(SIZES) for _ in range(rank))
        return shape if np.prod(shape) <= MOST_ELEMENTS else tuple(min(n, 3) for n in shape)

    def like(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape that broadcasts with ``shape``, nearly always."""
        if self.chance(0.02):
            return self.shape()
        kept = list(shape[self.random.randint(0, len(shape)) :]) if self.chance(0.3) else [*shape]
        return tuple(1 if self.chance(0.2) else n for n in kept)

    def numbers(self, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of special and other numbers."""
        kind = np.dtype(dtype)
        count = int(np.prod(shape))
        if dtype == "bool":
            flat = [self.chance(0.5) for _ in range(count)]
        elif kind.kind == "f":
            flat = [self._float(kind) for _ in range(count)]
        else:
            flat = [self._integer(kind) for _ in range(count)]
        with np.errstate(all="ignore"):
            return np.array(flat, kind).reshape(shape)

    def _float(self, kind: Any) -> float:
        if self.tame or self.chance(0.6):
            return round(self.random.uniform(-4, 4), self.pick((0, 1, 3)))
        limits = np.finfo(kind)
        special = (0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, 1e-3, 100.0, -1.0, 1.0)
        ends = (limits.max, limits.min, limits.tiny, limits.smallest_subnormal, limits.eps)
        return float(self.pick((*special, *special, *ends, 3 * limits.smallest_subnormal)))

    def _integer(self, kind: Any) -> int:
        limits = np.iinfo(kind)
        if self.tame or self.chance(0.7):
            return self.random.randint(max(limits.min, -9), 9)
        ends = (limits.min, limits.max, limits.min + 1, limits.max - 1, limits.max // 2)
        return int(self.pick((*ends, self.random.randint(int(limits.min), int(limits.max)))))

    def array(self, shape: Sequence[int] | None = None, dtype: str | None = None) -> str:
        """Return the name of a new array."""
        shape = self.shape() if shape is None else tuple(shape)
        name = f"a{len(self.arrays)}"
        self.arrays[name] = self.numbers(self.dtype() if dtype is None else dtype, shape)
        return name

    def of(self, name: str) -> Any:
        """Return an array by its name."""
        return self.arrays[name]

    def scalar(self) -> str:
        """Return a Python number, or one of NumPy's."""
        if self.chance(0.15):
            dtype = self.dtype()
            number = self.numbers(dtype, ())
            name = f"a{len(self.arrays)}"
            self.arrays[name] = number if self.chance(0.7) else number[()]
            return name
        small = ("2", "-1", "0", "1", "3", "7", "-4", "100", "300", "True", "False")
        if self.chance(0.1):
            name = f"a{len(self.arrays)}"
            self.arrays[name] = self.pick((2, -1, 0, 3, 0.5, -1.5, 2.0, True, False))
            return name
        floats = ("0.5", "-1.5", "2.0", "0.0", "-0.0", "1e-3", "inf", "nan", "1e30", "-3.0")
        return self.pick((*small, *floats, "1000000", "2**40", "-2**31"))

    def operand(self, shape: Sequence[int]) -> str:
        """Return another operand for one of ``shape``: an array or a number."""
        return self.scalar() if self.chance(0.3) else self.array(self.like(shape))

    def axis(self, rank: int, none: bool = True, many: bool = False) -> str:
        """Return an axis of ``rank``, rarely one that does not exist."""
        if none and self.chance(0.25):
            return "None"
        if many and rank > 1 and self.chance(0.3):
            axes = self.random.sample(range(-rank, rank), self.random.randint(1, rank))
            return str(tuple(axes))
        if rank == 0 or self.chance(0.03):
            return str(self.pick((0, -1, rank, -rank - 1)))
        return str(self.random.randrange(-rank, rank))

    def keywords(self, **given: Any) -> str:
        """Return keywords, each left out half of the time; values are drawn when called."""
        parts = [f"{k}={v()}" for k, v in given.items() if self.chance(0.5)]
        return "".join(f", {p}" for p in parts)

    def some_dtype(self) -> str:
        """Return the text of a dtype."""
        if self.chance(0.2):
            return self.pick(("float", "int", "bool"))
        return f"np.{self.pick([*DTYPES[1:], 'bool_'])}"
