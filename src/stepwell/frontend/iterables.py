"""What loops go through: ranges, sequences and elements whose bounds or places are traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.bounds import length
from stepwell.frontend.errors import TraceError
from stepwell.frontend.masked import unmasked
from stepwell.frontend.promotion import lift
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import weakened


class Range:
    """A range whose bounds are traced."""

    def __init__(self, *bounds: Any) -> None:
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.step = bounds[2] if len(bounds) > 2 else 1
        if isinstance(self.step, Tensor):
            raise TraceError("the step of a range must be known while tracing")
        if not self.step:
            raise ValueError("range() arg 3 must not be zero")
        self.first, self.last = first, last

    def count(self) -> Any:
        """Return the number of iterations."""
        apart = self.last - self.first if self.step > 0 else self.first - self.last
        step = abs(self.step)
        return weakened(e.maximum(lift(apart + (step - 1)) // step, 0))

    def backwards(self) -> Range:
        """Return the numbers in reverse order."""
        before = self.first - self.step
        return Range(before + self.count() * self.step, before, -self.step)

    def __repr__(self) -> str:
        return f"<range({self.first!r}, {self.last!r}, {self.step!r})>"

    def __iter__(self) -> NoReturn:
        raise TraceError(
            "how often this goes round is not known while tracing; "
            "write it as a for statement: for i in range(n): ..."
        )


class Items:
    """The iterable of a loop as an indexed sequence: any index may be traced."""

    def __init__(self, length: int, get: Callable[[Any], Any]) -> None:
        self.length, self.get = length, get

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return (self.get(k) for k in range(self.length))

    def __getitem__(self, k: Any) -> Any:
        return self.get(k)


@dataclass(frozen=True)
class Counted:
    """The iterable of a loop whose length only the run knows; any index may be traced."""

    length: Any
    get: Callable[[Any], Any]


def counted(values: Any) -> Counted | None:
    """Return elements whose number only the run knows; None for anything else."""
    values = unmasked(values)
    bounds = values.bounds[0] if isinstance(values, Window) else None
    if bounds is None:
        return values if isinstance(values, Counted) else None
    return Counted(length(bounds), lambda k: values.values[k + bounds.low])


def items_of(values: Any) -> Items | None:
    """Return an iterable that can be indexed, as `Items`; None for any other."""
    if isinstance(values, Items):
        return values
    if isinstance(values, range):
        return Items(len(values), lambda k: values.start + values.step * k)
    if isinstance(values, Tensor) and values.shape:
        return Items(len(values), lambda k: values[k])
    if isinstance(values, np.ndarray) and values.ndim:
        return Items(len(values), lambda k: (lift(values) if isinstance(k, Tensor) else values)[k])
    if isinstance(values, list | tuple):
        return Items(len(values), lambda k: values[k])
    return None
