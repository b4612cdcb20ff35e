"""``x[mask]`` with a mask known at run time only: the number of elements is not known.

It supports elementwise operations, reductions, products, and assignment to the same places of
an array: ``x[m] += 1``, ``x[m] = numpy.sqrt(y[m])``, ``x[m].sum()``. All elements are computed, and
the mask selects from them. What needs the elements side by side packs them into a `Window`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.compressed import chosen_elements
from stepwell.frontend.equal_values import is_same_value
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import moveaxis, permute_dims, reshape
from stepwell.frontend.mask_reductions import MaskReductions
from stepwell.frontend.promotion import (
    INTEGER,
    broadcast,
    cast,
    fresh,
    is_number,
    lift,
)
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.tensor import Partial, Tensor
from stepwell.frontend.ufuncs import ufunc, weakened


class Masked(MaskReductions, Partial, np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of ``values`` where ``mask``, over its first axes, is true."""

    def __init__(self, values: Tensor, mask: Tensor, axis: int = 0) -> None:
        self.values = values
        self.mask = mask
        self.axis = axis

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute with all elements, masked or not."""
        out = keywords.pop("out", None)
        if method == "reduce" and len(inputs) == 1 and function in _REDUCED and out is None:
            return getattr(self, _REDUCED[function])(**{"axis": 0, **keywords})
        if method != "__call__" or keywords:
            self.refuse()
        if function is np.matmul:
            found = product(*inputs)
        elif any(isinstance(value, Window) for value in inputs):
            found = function(*map(unmasked, inputs))
        else:
            found = self._each(function, inputs)
        if out is None:
            return found
        out[0][...] = found
        return out[0]

    def _each(self, function: Any, inputs: Sequence[Any]) -> Masked:
        given: list[Any] = []
        for value in inputs:
            if isinstance(value, Masked):
                self.check(value.mask)
                if (value.ndim, value.axis) != (self.ndim, self.axis):
                    self.refuse()
                given.append(value.values)
            elif (each := for_each(value, self.ndim, self.axis)) is not None:
                given.append(each)
            else:
                self.refuse()
        return Masked(ufunc(function, *given), self.mask, self.axis)

    def check(self, mask: Tensor) -> None:
        """Raise if ``mask`` is not equal to this one's."""
        if not is_same_value(fresh(mask), self.mask):
            raise TraceError(
                "x[mask] and y[other] have the same elements only where the masks are one: "
                "keep the mask in a variable, mask = x > 0, and use that for both"
            )

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: that along the selected elements is traced."""
        rest = self.values.shape[self.mask.ndim :]
        return (*rest[: self.axis], weakened(self._count()), *rest[self.axis :])

    @property
    def size(self) -> Any:
        """The number of elements, traced."""
        return math.prod(self.shape)

    @property
    def T(self) -> Masked:
        """The array with its axes in reverse order."""
        first = self.mask.ndim
        axes = (*range(first), *reversed(range(first, self.values.ndim)))
        return Masked(permute_dims(self.values, axes), self.mask, self.ndim - 1 - self.axis)

    def like(self, values: Tensor, axis: int) -> Masked:
        """Return other elements that the same mask chooses."""
        return Masked(values, self.mask, axis)

    def less(self, other: Any) -> Any:
        """Return the elements minus others."""
        return self - other

    def _count(self) -> Tensor:
        return cast(r.sum(self.mask), INTEGER)

    def packed(self) -> Window:
        """Return the elements side by side."""
        return chosen_elements(self.values, self.mask, self.axis)

    def copy(self) -> Masked:
        """Return a copy."""
        return Masked(fresh(self.values), self.mask, self.axis)

    def astype(self, dtype: Any) -> Masked:
        """Return the elements in another dtype."""
        return Masked(self.values.astype(dtype), self.mask, self.axis)

    def dot(self, other: Any) -> Any:
        """Return the product with another such array."""
        return product(self, other)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        """Call one of the reductions."""
        name = getattr(function, "__name__", "")
        name = _NAMES.get(name, name)
        known = keywords.keys() <= {"axis", "keepdims", "ddof"}
        if name in _REDUCTIONS and len(args) in (1, 2) and isinstance(args[0], Masked) and known:
            return getattr(args[0], name)(*args[1:], **keywords)
        if name == "dot" and len(args) == 2 and not keywords:
            return product(*args)
        if any(isinstance(value, Masked) for value in args):
            return function(*map(unmasked, args), **keywords)
        self.refuse()

    def __len__(self) -> int:
        self.refuse()

    def __iter__(self) -> NoReturn:
        self.refuse()

    def __getitem__(self, index: Any) -> Any:
        parts = index if type(index) is tuple else (index,)
        if isinstance(index, Masked) and index.dtype == bool:
            self.check(index.mask)
            return Masked(self.values, e.logical_and(self.mask, index.values), self.axis)
        known = len(parts) > self.axis and all(map(_is_known, parts))
        if not known or parts[self.axis] != slice(None):
            return self.packed()[index]
        at = sum(isinstance(p, slice) for p in parts[: self.axis])
        rest = (*parts[: self.axis], *parts[self.axis + 1 :])
        whole = (slice(None),) * self.mask.ndim
        return Masked(fresh(self.values[(*whole, *rest)]), self.mask, at)

    def __setitem__(self, index: Any, value: Any) -> None:
        chosen: Any = True
        if isinstance(index, Masked) and index.dtype == bool:
            self.check(index.mask)
            chosen = index.values
        elif index is not Ellipsis and not (isinstance(index, slice) and index == slice(None)):
            self.refuse()
        if isinstance(value, Masked):
            self.check(value.mask)
            if value.axis != self.axis or value.ndim != self.ndim:
                self.refuse()
            value = value.values
        elif (value := for_each(value, self.ndim, self.axis)) is None:
            self.refuse()
        new = broadcast(cast(lift(value, self.values.kind), self.values.kind), self.values.shape)
        Tensor.operators["write_whole"](self.values, e.where(chosen, new, self.values))

    def __bool__(self) -> bool:
        self.refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.packed(), name)

    def refuse(self) -> NoReturn:
        """Raise: how many elements there are is not known."""
        raise TraceError(
            "a mask would have a result whose shape is not known while tracing; compute with all "
            "elements and choose: use stepwell.numpy.where (numpy.where(mask, value, x))"
        )


_REDUCTIONS = (
    *("sum", "prod", "mean", "max", "min", "any", "all"),
    *("var", "std", "ptp"),
)
_NAMES = {"amin": "min", "amax": "max"}
_REDUCED = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


def unmasked(value: Any) -> Any:
    """Return the elements that a mask chooses side by side; other values as they are."""
    return value.packed() if isinstance(value, Masked) else value


def _is_known(part: Any) -> bool:
    return isinstance(part, int | np.integer | slice) and not isinstance(part, bool)


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b``, of which one or both are elements that one mask chooses."""
    masks = [v.mask for v in (a, b) if isinstance(v, Masked)]
    both = len(masks) == 2
    if any(mask.ndim != 1 for mask in masks) or max(v.ndim for v in (a, b)) > 2:
        return np.matmul(unmasked(a), unmasked(b))
    summed = [isinstance(a, Masked) and a.axis == a.ndim - 1, isinstance(b, Masked) and b.axis == 0]
    if both and all(summed):
        a.check(b.mask)
        one, two = (moveaxis(v.filled(0), 0, v.axis) for v in (a, b))
        return one @ two
    if any(summed) or both or any(isinstance(v, Window) for v in (a, b)):
        return np.matmul(unmasked(a), unmasked(b))
    if isinstance(a, Masked):
        return Masked(np.matmul(a.values, b), a.mask)
    found = np.matmul(a, moveaxis(b.values, 0, b.axis))
    return Masked(moveaxis(found, -1, 0), b.mask, found.ndim - 1)


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
