"""``x[mask]`` where only the run knows the mask: how many elements it has, nobody knows yet.

It can be computed with element by element, summed up, and assigned to the same places of an array:
``x[m] += 1``, ``x[m] = numpy.sqrt(y[m])``, ``x[m].sum()``. All elements are computed, and those at
the places of the mask are taken.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, broadcast, cast, fresh, is_number
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import ufunc


class Masked(np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of ``values`` where ``mask``, of its first axes, is true."""

    def __init__(self, values: Tensor, mask: Tensor) -> None:
        self.values = values
        self.mask = mask

    @property
    def wide(self) -> Tensor:
        """The mask, for each element."""
        return widened(self.mask, self.values.shape)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute with all elements."""
        keywords.pop("out", None)  # x[m] is a copy: nobody sees that it is changed
        if method != "__call__" or keywords:
            self._refuse()
        given: list[Any] = []
        for value in inputs:
            if isinstance(value, Masked):
                self.check(value.mask)
                given.append(value.values)
            elif is_number(value) or np.ndim(value) == 0:
                given.append(value)
            else:
                self._refuse()
        return Masked(ufunc(function, *given), self.mask)

    def check(self, mask: Tensor) -> None:
        """Raise where ``mask`` is not this one's."""
        if mask.name != self.mask.name:
            raise TraceError(
                "x[mask] and y[other] have the same elements only where the masks are one: "
                "keep the mask in a variable, mask = x > 0, and use that for both"
            )

    def sum(self) -> Tensor:
        """Return the sum of the elements."""
        return r.sum(e.where(self.wide, self.values, np.zeros((), self.values.dtype)))

    def mean(self) -> Tensor:
        """Return the mean of the elements."""
        wide = self.values
        if wide.kind.kind != "float":
            wide = cast(wide, as_dtype("f64"))
        count = cast(r.sum(self.wide), wide.kind)
        return e.divide(r.sum(e.where(self.wide, wide, np.zeros((), wide.dtype))), count)

    def any(self) -> Tensor:
        """Return whether some element is true."""
        return r.any(e.logical_and(self.wide, self.values))

    def all(self) -> Tensor:
        """Return whether all elements are true."""
        return r.all(e.logical_or(e.logical_not(self.wide), self.values))

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Sum up."""
        name = getattr(function, "__name__", "")
        if name in ("sum", "mean", "any", "all") and len(args) == 1 and not keywords:
            return getattr(args[0], name)()
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def __iter__(self) -> NoReturn:
        self._refuse()

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse()

    def __bool__(self) -> bool:
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise TraceError(
            "a mask would have a result whose shape is not known while tracing; compute with all "
            "elements and choose: use stepwell.numpy.where (numpy.where(mask, value, x))"
        )


def masked(x: Tensor, mask: Tensor) -> Masked:
    """Return ``x[mask]``, copied now."""
    return Masked(fresh(x), fresh(mask))


def widened(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a mask of the first axes of ``shape`` as one of all."""
    if mask.ndim == len(shape):
        return mask
    wide = Tensor.operators["reshape"](mask, (*mask.shape, *(1,) * (len(shape) - mask.ndim)))
    return broadcast(wide, shape)
