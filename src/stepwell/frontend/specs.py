"""Array types that stand for arrays, and variable sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Dim:
    """A variable size: ``Dim("n")``; ``n + 1``, ``n - 1`` and ``2 * n`` are derived from it.

    name : sizes of the same name are equal in each call
    min, max : the least and the largest value of the size
    by, constant : the size is ``by * name + constant``; arithmetic sets them

    >>> n = Dim("n", max=100)
    >>> 2 * n + 1
    2 * n + 1
    """

    name: str
    min: int = 0
    max: int | None = None
    by: int = 1
    constant: int = 0

    def __add__(self, other: int) -> Dim:
        return replace(self, constant=self.constant + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self + -other

    def __mul__(self, other: int) -> Dim:
        if other < 1:
            raise ValueError(f"a size is a number of times another, got {other} * {self!r}")
        return replace(self, by=self.by * other, constant=self.constant * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        text = self.name if self.by == 1 else f"{self.by} * {self.name}"
        if not self.constant:
            return text
        return f"{text} {'+' if self.constant > 0 else '-'} {abs(self.constant)}"

    def of(self, size: int) -> int:
        """Return the value of the named size if this is ``size``; ValueError if there is none."""
        value, rest = divmod(size - self.constant, self.by)
        if rest or value < self.min or (self.max is not None and value > self.max):
            limits = f"from {self.min} on" if self.max is None else f"{self.min} to {self.max}"
            raise ValueError(f"{size} is no {self!r}, where {self.name} is {limits}")
        return value


@dataclass(frozen=True, init=False)
class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array; sizes may be `Dim`.

    >>> ShapeDtypeStruct((Dim("n"), 4), "float32")
    ShapeDtypeStruct(shape=(n, 4), dtype=float32)
    """

    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    def __init__(self, shape: Sequence[int | Dim], dtype: Any) -> None:
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", np.dtype(dtype))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def __repr__(self) -> str:
        shape = ", ".join(map(repr, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"ShapeDtypeStruct(shape=({shape}), dtype={self.dtype})"
