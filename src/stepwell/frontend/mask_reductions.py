"""Reductions of ``x[mask]`` with a mask known at run time only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import as_dtype, broadcast, cast, full
from stepwell.frontend.tensor import Tensor


class MaskReductions(ABC):
    """The elements of ``values`` where ``mask``, over its first axes, is true.

    axis : the axis along which they are; the other axes keep their order
    """

    values: Tensor
    mask: Tensor
    axis: int

    @abstractmethod
    def like(self, values: Tensor, axis: int) -> Any:
        """Return other elements that the same mask chooses."""

    @abstractmethod
    def less(self, other: Any) -> Any:
        """Return the elements minus others."""

    @abstractmethod
    def refuse(self) -> NoReturn:
        """Raise: how many elements there are is not known."""
        raise NotImplementedError

    @property
    def wide(self) -> Tensor:
        """The mask, broadcast to all elements."""
        return widened(self.mask, self.values.shape)

    @property
    def ndim(self) -> int:
        """The number of axes: the axes of the mask count as one."""
        return self.values.ndim - self.mask.ndim + 1

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.values.dtype

    def prod(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the product of the elements."""
        return self._reduced(r.prod, self.filled(1), axis, keepdims, others)

    def var(self, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
        """Return the variance of the elements."""
        apart = self.less(self.mean(axis, keepdims=True))
        total = (apart * apart).sum(axis, keepdims=keepdims)
        ones = self.like(full(self.values.shape, 1, apart.values.kind), self.axis)
        return total / np.maximum(ones.sum(axis, keepdims=keepdims) - ddof, 0)

    def std(self, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
        """Return the standard deviation of the elements."""
        return np.sqrt(self.var(axis, ddof=ddof, keepdims=keepdims))

    def ptp(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Return the largest element less the smallest."""
        return self.max(axis, keepdims=keepdims) - self.min(axis, keepdims=keepdims)

    def sum(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the sum of the elements."""
        return self._reduced(r.sum, self.filled(0), axis, keepdims, others)

    def mean(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the mean of the elements."""
        x = self
        if x.values.kind.kind != "float":
            x = x.like(cast(x.values, as_dtype("f64")), x.axis)
        if 0 not in x._axes(axis):
            return x._reduced(r.mean, x.values, axis, keepdims, others)
        total = x._reduced(r.sum, x.filled(0), axis, keepdims, others)
        count = cast(x._reduced(r.sum, x.wide, axis, keepdims, {}), x.values.kind)
        return e.divide(total, count)

    def max(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the largest element."""
        return self._extreme("maximum", axis, keepdims, others)

    def min(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the smallest element."""
        return self._extreme("minimum", axis, keepdims, others)

    def any(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return whether some element is true."""
        given = e.logical_and(self.wide, self.values)
        return self._reduced(r.any, given, axis, keepdims, others)

    def all(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return whether all elements are true."""
        given = e.logical_or(e.logical_not(self.wide), self.values)
        return self._reduced(r.all, given, axis, keepdims, others)

    def _extreme(self, name: str, axis: Any, keepdims: bool, others: dict[str, Any]) -> Any:
        most = name == "maximum"
        kind = self.values.kind
        if kind.kind == "bool":
            return (self.any if most else self.all)(axis, keepdims=keepdims, **others)
        if kind.kind == "float":
            limit: float = -np.inf if most else np.inf
        else:
            limit = np.iinfo(kind.numpy).min if most else np.iinfo(kind.numpy).max
        of = r.max if most else r.min
        if 0 in self._axes(axis):
            said = f"zero-size array to reduction operation {name} which has no identity"
            check(r.any(self.mask), "ValueError", [said])
        return self._reduced(of, self.filled(limit), axis, keepdims, others)

    def filled(self, number: float) -> Tensor:
        """Return all elements, with ``number`` in the places that the mask does not select."""
        return e.where(self.wide, self.values, full((), number, self.values.kind))

    def _axes(self, axis: Any) -> tuple[int, ...]:
        """Return axes by their numbers in ``values``, those of the mask counted as 0."""
        order = [self.axis, *(a for a in range(self.ndim) if a != self.axis)]
        return tuple(order.index(a) for a in r.along(axis, self.ndim))

    def _reduced(
        self, of: Callable[..., Tensor], given: Tensor, axis: Any, keepdims: bool, others: Any
    ) -> Any:
        """Return ``given``, an array of all elements, reduced along axes of ``x[mask]``."""
        if any(v is not None for v in others.values()):
            self.refuse()
        axes, more = self._axes(axis), self.mask.ndim - 1
        if 0 not in axes:
            found = of(given, axis=tuple(a + more for a in axes), keepdims=keepdims)
            gone = 0 if keepdims else sum(a <= self.axis for a in axes)
            return self.like(found, self.axis - gone)
        every = (*range(self.mask.ndim), *(a + more for a in axes if a))
        found = of(given, axis=every, keepdims=keepdims)
        if not keepdims:
            return found
        rest = found.shape[more + 1 :]
        return reshape(found, (*rest[: self.axis], 1, *rest[self.axis :]))


def widened(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a mask over the first axes of ``shape``, broadcast to all axes."""
    if mask.ndim == len(shape):
        return mask
    wide = Tensor.operators["reshape"](mask, (*mask.shape, *(1,) * (len(shape) - mask.ndim)))
    return broadcast(wide, shape)
