"""NumPy's functions that ignore NaN: `nansum`, `nanmean`, `nanmax` and similar ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend import reducing as red
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check
from stepwell.frontend.manipulation import broadcast_to
from stepwell.frontend.operands import array, cumprod, cumsum, dtype_of, stored
from stepwell.frontend.promotion import full
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


def numbers(value: Tensor, where: Any) -> Any:
    """Return the mask of elements that are not NaN and selected by ``where``; True for all."""
    if value.kind.kind != "float":
        return where if where is True else broadcast_to(array(where), value.shape)
    mask = e.logical_not(e.isnan(value))
    return mask if where is True else e.logical_and(mask, broadcast_to(array(where), value.shape))


def _inexact(a: Any, dtype: Any) -> Tensor:
    """Return a value; refuse an integer dtype for the mean of floats, as NumPy does."""
    value = array(a)
    if value.kind.kind == "float" and dtype is not None and dtype_of(dtype).kind != "float":
        raise TypeError("If a is inexact, then dtype must be inexact")
    return value


def replaced(value: Tensor, instead: float) -> Tensor:
    """Return ``value`` with NaN replaced by a number."""
    if value.kind.kind != "float":
        return value
    return e.where(e.isnan(value), full((), instead, value.kind), value)


def _summing(name: str, of: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Tensor:
        return of(replaced(array(a), instead), axis, dtype, out, keepdims, initial, where)

    return _named(function, name)


def _running(name: str, of: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Tensor:
        return stored(of(replaced(array(a), instead), axis, dtype), out)

    return _named(function, name)


def _named(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`numpy.{name}`."
    return public(name)(function)


def _extreme(name: str, of: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def function(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Tensor:
        value = array(a)
        if value.kind.kind != "float":
            return of(value, axis, out, keepdims, initial, where)
        found = of(replaced(value, instead), axis, None, keepdims, initial, where)
        if initial is None:  # NaN if all elements are NaN
            some = red.any(numbers(value, where), axis, None, keepdims)
            found = e.where(some, found, full((), math.nan, value.kind))
        return stored(found, out)

    return _named(function, name)


nansum = _summing("nansum", red.sum, 0.0)
nanprod = _summing("nanprod", red.prod, 1.0)
nancumsum = _running("nancumsum", cumsum, 0.0)
nancumprod = _running("nancumprod", cumprod, 1.0)
nanmax = _extreme("nanmax", red.max, -math.inf)
nanmin = _extreme("nanmin", red.min, math.inf)


def _argument(name: str, of: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Tensor:
        value = array(a)
        if value.kind.kind == "float" and value.size:
            some = red.any(e.logical_not(e.isnan(value)), axis)
            check(red.all(some), "ValueError", ("All-NaN slice encountered",))
        return stored(of(replaced(value, instead), axis, keepdims=keepdims), out)

    return _named(function, name)


nanargmax = _argument("nanargmax", r.argmax, -math.inf)
nanargmin = _argument("nanargmin", r.argmin, math.inf)


@public()
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Tensor:
    """`numpy.nanmean`."""
    value = _inexact(a, dtype)
    return red.mean(value, axis, dtype, out, keepdims, where=numbers(value, where))


@public()
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """`numpy.nanvar`: NaN if no more than ``ddof`` elements are not NaN."""
    value = _inexact(a, dtype)
    mask = numbers(value, where)
    given = {"mean": mean, "correction": correction}
    found = red.var(value, axis, dtype, None, ddof, keepdims, where=mask, **given)
    if value.kind.kind != "float":  # NumPy looks for NaN in floats only
        mask = True
    return stored(_enough(found, mask, axis, keepdims, red.degrees(ddof, correction)), out)


@public()
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """`numpy.nanstd`: NaN if no more than ``ddof`` elements are not NaN."""
    value = _inexact(a, dtype)
    mask = numbers(value, where)
    given = {"mean": mean, "correction": correction}
    found = red.std(value, axis, dtype, None, ddof, keepdims, where=mask, **given)
    if value.kind.kind != "float":  # NumPy looks for NaN in floats only
        mask = True
    return stored(_enough(found, mask, axis, keepdims, red.degrees(ddof, correction)), out)


def _enough(found: Tensor, mask: Any, axis: Any, keepdims: bool, ddof: Any) -> Tensor:
    if mask is True:
        return found
    count = r.sum(mask, axis, keepdims=keepdims)
    enough = e.greater(e.subtract(count, ddof), 0)
    return e.where(enough, found, full((), math.nan, found.kind))
