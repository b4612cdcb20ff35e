"""``x[mask]`` with a mask known at run time only: the number of elements is not known.

It supports elementwise operations, reductions, and assignment to the same places of an array:
``x[m] += 1``, ``x[m] = numpy.sqrt(y[m])``, ``x[m].sum()``. All elements are computed, and the mask
selects from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check
from stepwell.frontend.equal_values import is_same_value
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import as_dtype, broadcast, cast, fresh, full, is_number, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import ufunc


class Masked(np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of ``values`` where ``mask``, over its first axes, is true.

    axis : the axis along which they are; the other axes keep their order
    """

    def __init__(self, values: Tensor, mask: Tensor, axis: int = 0) -> None:
        self.values = values
        self.mask = mask
        self.axis = axis

    @property
    def wide(self) -> Tensor:
        """The mask, broadcast to all elements."""
        return widened(self.mask, self.values.shape)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute with all elements, masked or not."""
        keywords.pop("out", None)  # x[m] is a copy: writes to it are not visible
        if method != "__call__" or keywords:
            self._refuse()
        given: list[Any] = []
        for value in inputs:
            if isinstance(value, Masked):
                self.check(value.mask)
                if (value.ndim, value.axis) != (self.ndim, self.axis):
                    self._refuse()
                given.append(value.values)
            elif (each := for_each(value, self.ndim, self.axis)) is not None:
                given.append(each)
            else:
                self._refuse()
        return Masked(ufunc(function, *given), self.mask, self.axis)

    def check(self, mask: Tensor) -> None:
        """Raise if ``mask`` is not equal to this one's."""
        if not is_same_value(fresh(mask), self.mask):
            raise TraceError(
                "x[mask] and y[other] have the same elements only where the masks are one: "
                "keep the mask in a variable, mask = x > 0, and use that for both"
            )

    @property
    def ndim(self) -> int:
        """The number of axes: the axes of the mask count as one."""
        return self.values.ndim - self.mask.ndim + 1

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.values.dtype

    def sum(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the sum of the elements."""
        return self._reduced(r.sum, self._filled(0), axis, keepdims, others)

    def mean(self, axis: Any = None, *, keepdims: bool = False, **others: Any) -> Any:
        """Return the mean of the elements."""
        x = self
        if x.values.kind.kind != "float":
            x = Masked(cast(x.values, as_dtype("f64")), x.mask, x.axis)
        if 0 not in x._axes(axis):
            return x._reduced(r.mean, x.values, axis, keepdims, others)
        total = x._reduced(r.sum, x._filled(0), axis, keepdims, others)
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
        return self._reduced(of, self._filled(limit), axis, keepdims, others)

    def _filled(self, number: float) -> Tensor:
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
            self._refuse()
        axes, more = self._axes(axis), self.mask.ndim - 1
        if 0 not in axes:
            found = of(given, axis=tuple(a + more for a in axes), keepdims=keepdims)
            gone = 0 if keepdims else sum(a <= self.axis for a in axes)
            return Masked(found, self.mask, self.axis - gone)
        every = (*range(self.mask.ndim), *(a + more for a in axes if a))
        found = of(given, axis=every, keepdims=keepdims)
        if not keepdims:
            return found
        rest = found.shape[more + 1 :]
        return reshape(found, (*rest[: self.axis], 1, *rest[self.axis :]))

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Call one of the reductions."""
        name = getattr(function, "__name__", "")
        name = _NAMES.get(name, name)
        known = keywords.keys() <= {"axis", "keepdims"}
        if name in _REDUCTIONS and len(args) in (1, 2) and isinstance(args[0], Masked) and known:
            return getattr(args[0], name)(*args[1:], **keywords)
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


_REDUCTIONS = ("sum", "mean", "max", "min", "any", "all")
_NAMES = {"amin": "min", "amax": "max"}


def masked(x: Tensor, mask: Tensor, axis: int = 0) -> Masked:
    """Return ``x[mask]`` as a copy; ``axis`` is the one along which its elements are."""
    return Masked(fresh(x), fresh(mask), axis)


def for_each(value: Any, ndim: int, axis: int) -> Any:
    """Return a value beside ``x[mask]`` as one for each selected element, None if it is none.

    ndim : the number of axes of ``x[mask]``
    axis : the one along which the selected elements are; the value has size 1 there, or not that
        axis, which the result leaves out
    """
    if is_number(value) or np.ndim(value) < ndim - axis:
        return value
    shape = (*(1,) * (ndim - np.ndim(value)), *np.shape(value))
    if len(shape) != ndim or shape[axis] != 1:
        return None
    return reshape(lift(value), (*shape[:axis], *shape[axis + 1 :]))


def widened(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a mask over the first axes of ``shape``, broadcast to all axes."""
    if mask.ndim == len(shape):
        return mask
    wide = Tensor.operators["reshape"](mask, (*mask.shape, *(1,) * (len(shape) - mask.ndim)))
    return broadcast(wide, shape)
