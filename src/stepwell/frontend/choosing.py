"""Selecting among arrays and elements: `select`, `choose`, `piecewise`, `partition`, `copyto`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.frontend import elementwise as e
from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take, take_along_axis
from stepwell.frontend.known import NotKnown, content
from stepwell.frontend.operands import array, clip, common, cumsum, in_order, known, stored, unified
from stepwell.frontend.promotion import (
    BOOL,
    INTEGER,
    broadcast,
    cast,
    fresh,
    full,
    is_number,
    kind_of,
    stored_number,
    wrapped_number,
)
from stepwell.frontend.sorting import argsort, sort
from stepwell.frontend.table import method, public
from stepwell.frontend.tensor import Tensor


@public()
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """`numpy.select`."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    masks = [array(c) for c in condlist]
    for i, mask in enumerate(masks):
        if mask.kind is not BOOL:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    kind = common(*(c if is_number(c) else array(c) for c in (*choicelist, default)))
    *choices, found = (_fitted(c, kind) for c in (*choicelist, default))
    for mask, choice in zip(reversed(masks), reversed(choices), strict=True):
        found = e.where(mask, choice, found)
    return fresh(found)


def _fitted(choice: Any, kind: DType) -> Tensor:
    """Return a choice in the common dtype; a number that does not fit wraps, as in NumPy."""
    if is_number(choice):
        return cast(array(np.asarray(choice).astype(kind.numpy)), kind)
    return cast(array(choice), kind)


@public(method=True)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Tensor:
    """`numpy.choose`; an index out of range is clamped."""
    index = array(a)
    if index.kind.kind == "float":
        raise TypeError("Cannot cast array data from floats to int64 according to the rule 'safe'")
    options = unified(*(choices if not isinstance(choices, Tensor) else list(choices)))
    number = cast(index, INTEGER)
    number = clip(number, 0, len(options) - 1) if mode != "wrap" else number % len(options)
    shape = np.broadcast_shapes(index.shape, *(v.shape for v in options))
    found = broadcast(options[-1], shape)
    for i, option in reversed(list(enumerate(options[:-1]))):
        found = e.where(e.equal(number, i), option, found)
    return stored(fresh(found), out)


@public()
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """`numpy.piecewise`; each function is applied to all of ``x``."""
    value = array(x)
    masks = [condlist] if _is_mask(condlist, value) else list(condlist)
    masks = [cast(array(c), BOOL) for c in masks]
    if len(funclist) == len(masks) + 1:
        some = masks[0]
        for mask in masks[1:]:
            some = e.logical_or(some, mask)
        masks.append(e.logical_not(some))
    elif len(funclist) != len(masks):
        n = len(masks)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    found = full(value.shape, 0, value.kind)
    for mask, function in zip(masks, funclist, strict=True):
        given = function(value, *args, **kw) if callable(function) else function
        if is_number(given):
            given = full((), stored_number(given, value.kind), value.kind)
        found = e.where(mask, cast(array(given), value.kind), found)
    return found


def _is_mask(condlist: Any, value: Tensor) -> bool:
    """Whether ``condlist`` is one condition, not a list of conditions."""
    if isinstance(condlist, Tensor | np.ndarray):
        return condlist.ndim in (0, value.ndim)
    if not isinstance(condlist, list | tuple):
        return True
    return bool(value.ndim) and all(not isinstance(c, Tensor) and np.ndim(c) == 0 for c in condlist)


@public()
def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    """`numpy.partition`: the whole axis is sorted, which is a valid partition."""
    _check_kth(a, kth, axis)
    return sort(array(a), axis)


@method("partition")
def _partition(
    x: Tensor, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    x[...] = partition(x, kth, axis, kind, order)


@public(method=True)
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    """`numpy.argpartition`: the whole axis is sorted, which is a valid partition."""
    _check_kth(a, kth, axis)
    return argsort(array(a), axis)


def _check_kth(a: Any, kth: Any, axis: int | None) -> None:
    value = array(a)
    n = value.size if axis is None else value.shape[check_axis(axis, value.ndim)]
    places = np.atleast_1d(known(kth, "where a partition is cut must be known while tracing"))
    for place in places.tolist():
        if not -n <= place < max(n, 1):
            raise ValueError(f"kth(={place}) out of bounds ({n})")


@public()
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """`numpy.lexsort`: the last key is the primary one."""
    rows = [array(k) for k in keys]
    if not rows:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    order = argsort(rows[0], axis)
    for row in rows[1:]:
        again = argsort(take_along_axis(row, order, axis), axis)
        order = take_along_axis(order, again, axis)
    return order


@public()
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """`numpy.put_along_axis`: it writes to ``arr``."""
    target = _target(arr, "put_along_axis")
    index = array(indices)
    if axis is None:
        target, axis = m.reshape(target, (target.size,)), 0
    at = check_axis(axis, target.ndim)
    if index.ndim != target.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    places: list[Any] = [
        np.arange(n).reshape((*(1,) * a, n, *(1,) * (target.ndim - a - 1)))
        for a, n in enumerate(target.shape)
    ]
    places[at] = index
    target[tuple(places)] = values


def _target(arr: Any, name: str) -> Tensor:
    if not isinstance(arr, Tensor):
        raise TraceError(
            f"numpy.{name} writes to an array that is not part of the trace; "
            "pass it as an argument, or make it in the function"
        )
    return arr


@public()
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """`numpy.copyto`: it writes to ``dst``."""
    target = _target(dst, "copyto")
    source = src if is_number(src) else array(src)
    if casting != "unsafe":
        _check_cast(source, target, casting)
    if is_number(source):
        number = wrapped_number if casting == "unsafe" else stored_number
        source = full((), number(source, target.kind), target.kind)
    source = cast(source, target.kind)
    if where is True:
        target[...] = source
    else:
        wide = broadcast(source, target.shape)
        target[...] = e.where(array(where), wide, target)


def _check_cast(source: Any, target: Tensor, casting: str) -> None:
    """Raise where NumPy does not convert; Python integers may be converted to unsigned ones."""
    kind = kind_of(source)
    if kind is int and target.kind.kind == "unsigned":
        return
    dtype: Any = np.dtype(kind)
    rule: Any = casting
    if not np.can_cast(dtype, target.dtype, rule):
        what = "scalar" if isinstance(kind, type) or is_number(source) else "array data"
        raise TypeError(
            f"Cannot cast {what} from {dtype!r} to {target.dtype!r} according to the rule "
            f"'{casting}'"
        )


def _as_stored(values: Any, target: Tensor) -> Tensor:
    """Return values to be stored; Python numbers that do not fit raise, as in NumPy."""
    if is_number(values):
        return full((), stored_number(values, target.kind), target.kind)
    return array(values)


@public()
def putmask(a: Any, mask: Any, values: Any) -> None:
    """`numpy.putmask`: it writes to ``a``; too few values are repeated."""
    target = _target(a, "putmask")
    value = m.ravel(_as_stored(values, target))
    if not value.size:
        return
    flat = take(value, np.arange(target.size) % value.size) if value.size > 1 else value
    wide = broadcast(flat, (target.size,))
    chosen = e.logical_not(e.logical_not(array(mask)))
    new = cast(m.reshape(wide, target.shape), target.kind)
    target[...] = e.where(m.reshape(chosen, target.shape), new, target)


@public()
def place(arr: Any, mask: Any, vals: Any) -> None:
    """`numpy.place`: it writes the first values to ``arr`` where the mask is true, in order."""
    target = _target(arr, "place")
    value = m.ravel(_as_stored(vals, target))
    truths = m.ravel(e.logical_not(e.logical_not(array(mask))))
    number = cumsum(cast(truths, INTEGER)) - 1
    flat = take(value, e.clip(number, 0, None) % value.size)
    new = cast(m.reshape(flat, target.shape), target.kind)
    target[...] = e.where(m.reshape(truths, target.shape), new, target)


@public(method=True)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`numpy.put`: it writes to ``a`` at flat, row-major indices."""
    target = _target(a, "put")
    index = m.ravel(array(ind))
    value = m.ravel(_as_stored(v, target))
    if not index.size or not value.size:
        return
    if mode == "clip":
        index = clip(index, 0, target.size - 1)
    elif mode == "wrap":
        index = index % target.size
    new = take(value, np.arange(index.size) % value.size)
    flat = m.reshape(target, (target.size,))
    changed = flat.at[index].set(cast(new, target.kind))
    target[...] = m.reshape(changed, target.shape)


@public(method=True)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Tensor:
    """`numpy.compress`; with a condition that only the run knows, `nonzero` says of the result."""
    value = m.ravel(array(a)) if axis is None else array(a)
    at = 0 if axis is None else check_axis(axis, value.ndim)
    try:
        mask = np.asarray(content(condition))
    except NotKnown:
        return _chosen(e.truth(condition), value, at)
    places = np.flatnonzero(mask)
    if places.size and places[-1] >= value.shape[at]:
        raise IndexError(
            f"index {places[-1]} is out of bounds for axis {at} with size {value.shape[at]}"
        )
    return stored(take(value, places, axis=at), out)


def _chosen(mask: Tensor, value: Tensor, axis: int) -> Any:
    """Return the slices of ``value`` along an axis where a traced mask is true."""
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if mask.size > value.shape[axis]:
        raise TraceError(
            f"a condition of {mask.size} elements for an axis of {value.shape[axis]}: "
            "slice it to the size of the axis"
        )
    before = (slice(None),) * axis
    return value[(*before, slice(mask.size))][(*before, mask)]


@public()
def extract(condition: Any, arr: Any) -> Tensor:
    """`numpy.extract`; with a condition that only the run knows, `nonzero` says of the result."""
    mask = m.ravel(condition) if isinstance(condition, Tensor) else np.ravel(condition)
    return compress(mask, m.ravel(array(arr)))


@public()
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """`numpy.unravel_index`; indices out of range are not detected."""
    in_order(order)
    rest = cast(array(indices), INTEGER)
    found: list[Tensor] = []
    for n in reversed(tuple(shape) if not isinstance(shape, int) else (shape,)):
        found.append(rest % n)
        rest = rest // n
    return tuple(reversed(found))


@public()
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Tensor:
    """`numpy.ravel_multi_index`; indices out of range are not detected."""
    in_order(order)
    sizes = tuple(dims)
    if len(multi_index) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    found: Any = 0
    for index, n, how in zip(multi_index, sizes, modes, strict=True):
        place = cast(array(index), INTEGER)
        if how == "clip":
            place = clip(place, 0, n - 1)
        elif how == "wrap":
            place = place % n
        found = found * n + place
    return found


@public("ix_")
def ix_(*args: Any) -> tuple[Any, ...]:
    """`numpy.ix_` of traced indices; masks must be known while tracing."""
    found: list[Any] = []
    for i, arg in enumerate(args):
        value = array(arg)
        if value.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if value.kind is BOOL:
            value = array(np.flatnonzero(known(arg, "a mask among indices must be known")))
        shape = (*(1,) * i, value.size, *(1,) * (len(args) - i - 1))
        found.append(m.reshape(value, shape))
    return tuple(found)


@public()
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """`numpy.apply_along_axis`: it traces the function for each row, so rows must be few."""
    value = array(arr)
    at = check_axis(axis, value.ndim)
    rows = m.moveaxis(value, at, -1)
    lead = rows.shape[:-1]
    if not np.prod(lead, dtype=np.int64):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [array(func1d(fresh(rows[i]), *args, **kwargs)) for i in np.ndindex(lead)]
    whole = j.stack(unified(*found))
    whole = m.reshape(whole, (*lead, *found[0].shape))
    inner = range(len(lead), len(lead) + found[0].ndim)
    return fresh(m.moveaxis(whole, tuple(inner), tuple(range(at, at + found[0].ndim))))


@public()
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    """`numpy.apply_over_axes`."""
    value = array(a)
    rank = value.ndim
    for axis in axes_of(axes):
        at = check_axis(axis, rank)
        found = array(func(value, at))
        value = found if found.ndim == rank else m.expand_dims(found, at)
        if value.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
    return value
