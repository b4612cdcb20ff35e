"""Masks and reductions of slices whose bounds are known at run time only.

Elements beyond the bounds are masked with a number that does not change the result.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.bounds import Bounds, length
from stepwell.frontend.checks import check
from stepwell.frontend.creation import iota
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import INTEGER, cast, lift
from stepwell.frontend.table import call_named
from stepwell.frontend.tensor import Tensor

ADVICE = (
    "how many elements a slice with traced bounds, or a choice by a mask, has is not known while "
    "tracing: compute with it, sum it, assign it, loop over it, or choose with "
    "numpy.where(numpy.arange(n) < i, x, 0)"
)

UNRETURNABLE = (
    "a result whose shape is not known while tracing: return all elements, "
    "numpy.where(mask, x, 0), or an array of known size that begins with them, "
    "y[:len(values)] = values"
)


class Masked(ABC):
    """An array of which only the elements within bounds count: its reductions."""

    values: Tensor
    bounds: tuple[Bounds | None, ...]

    @abstractmethod
    def like(self, values: Tensor, bounds: Sequence[Bounds | None]) -> Any:
        """Return another such array."""

    @property
    def mask(self) -> Tensor:
        """The mask of elements within the bounds."""
        found: Tensor | None = None
        self.values.refresh()
        for axis, bounds in enumerate(self.bounds):
            if bounds is None:
                continue
            at = iota(self.values.shape, axis, INTEGER)
            tests = [e.less(at, bounds.high)]
            if isinstance(bounds.low, Tensor) or bounds.low > 0:
                tests.append(e.greater_equal(at, bounds.low))
            for test in tests:
                found = test if found is None else e.logical_and(found, test)
        assert found is not None
        return found

    def filled(self, number: Any) -> Tensor:
        """Return the whole array, with ``number`` in the places beyond the bounds."""
        return e.where(self.mask, self.values, np.asarray(number, self.values.dtype))

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.values.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, some of them traced."""
        sizes = zip(self.bounds, self.values.shape, strict=True)
        return tuple(n if b is None else length(b) for b, n in sizes)

    def refuse(self) -> NoReturn:
        """Raise: the size of the slice is not known."""
        raise TraceError(ADVICE)

    def _reduced(self, name: str, number: Any, axis: Any) -> Any:
        given = self.filled(number)
        found = call_named(name, (given,), {"axis": axis})
        return self._left(found, axis)

    def _left(self, found: Tensor, axis: Any) -> Any:
        """Return the result of a reduction along ``axis`` with the bounds of the other axes."""
        axes = self.axes(axis)
        left = [b for a, b in enumerate(self.bounds) if a not in axes]
        return self.like(found, left) if any(left) else found

    def axes(self, axis: Any) -> tuple[int, ...]:
        """Return the axes that the argument of a reduction names; all if it is None."""
        if axis is None:
            return tuple(range(self.ndim))
        return tuple(a % self.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))

    def _check_some(self, name: str) -> None:
        for bounds in filter(None, self.bounds):
            some = e.less(bounds.low, bounds.high)
            check(lift(some), "ValueError", [f"{name} of a slice without elements"])

    def sum(self, axis: Any = None) -> Any:
        """Return the sum of the elements."""
        return self._reduced("sum", 0, axis)

    def prod(self, axis: Any = None) -> Any:
        """Return the product of the elements."""
        return self._reduced("prod", 1, axis)

    def any(self, axis: Any = None) -> Any:
        """Return whether some element is true."""
        return self._reduced("any", 0, axis)

    def all(self, axis: Any = None) -> Any:
        """Return whether all elements are true."""
        return self._reduced("all", 1, axis)

    def mean(self, axis: Any = None) -> Any:
        """Return the mean of the elements."""
        axes = self.axes(axis)
        count = math.prod(self.shape[a] for a in axes)
        total = self._reduced("sum", 0, axis)
        return total / cast(count, lift(1.0).kind) if isinstance(count, Tensor) else total / count

    def min(self, axis: Any = None) -> Any:
        """Return the least element."""
        self._check_some("the minimum")
        return self._reduced("min", limit(self.dtype, True), axis)

    def max(self, axis: Any = None) -> Any:
        """Return the largest element."""
        self._check_some("the maximum")
        return self._reduced("max", limit(self.dtype, False), axis)

    def argmin(self) -> Any:
        """Return the index of the least element."""
        return self._argument("argmin", True)

    def argmax(self) -> Any:
        """Return the index of the largest element."""
        return self._argument("argmax", False)

    def _argument(self, name: str, least: bool) -> Any:
        (bounds,) = self.bounds if len(self.bounds) == 1 else (None,)
        if bounds is None:
            self.refuse()
        self._check_some(name)
        best = call_named(name[3:], (self.filled(limit(self.dtype, least)),), {})
        found = e.logical_or(e.equal(self.values, best), e.not_equal(self.values, self.values))
        places = iota(self.values.shape, 0, INTEGER)  # masked by the greatest, a minimum's neutral
        first = e.where(e.logical_and(self.mask, found), places, np.iinfo(np.int64).max)
        return e.subtract(call_named("min", (first,), {}), bounds.low)

    def cumsum(self) -> Any:
        """Return the cumulative sums."""
        if len(self.bounds) != 1:
            self.refuse()
        return self.like(call_named("cumsum", (self.filled(0),), {}), self.bounds)


def limit(dtype: Any, most: bool) -> Any:
    """Return the largest or the least value of a dtype."""
    if dtype.kind == "f":
        return np.inf if most else -np.inf
    if dtype.kind == "b":
        return most
    return np.iinfo(dtype).max if most else np.iinfo(dtype).min
