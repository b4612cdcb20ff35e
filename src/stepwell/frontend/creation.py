"""Creating arrays, from numbers and from other arrays. Shapes are tuples of ints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.joining import stack
from stepwell.frontend.manipulation import broadcast_to, moveaxis, reshape
from stepwell.frontend.promotion import (
    FLOAT,
    SINGLE,
    as_dtype,
    cast,
    common,
    converted,
    fresh,
    has_traced,
    is_number,
    lift,
    number_dtype,
    ours,
    stored_number,
    wrapped_number,
)
from stepwell.frontend.promotion import full as filled
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace


def checked_shape(shape: Any) -> Shape:
    """Return ``shape``, an int or a sequence of ints, as a tuple."""
    try:
        sizes = (shape,) if isinstance(shape, int | np.integer | Tensor) else tuple(shape)
    except TypeError:
        sizes = (shape,)
    for n in sizes:
        if isinstance(n, Tensor):
            raise TraceError("a shape must be known while tracing; pass it in static_argnames")
        if not isinstance(n, int | np.integer):
            raise TypeError(f"a shape is made of ints, got {n!r}")
        if n < 0:
            raise ValueError(f"a size cannot be negative, got {n}")
    return tuple(int(n) for n in sizes)


@public("zeros", "empty")
def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros of ``shape``, by default of float64."""
    return filled(checked_shape(shape), 0, FLOAT if dtype is None else as_dtype(dtype))


@public()
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return ones of ``shape``, by default of float64."""
    return filled(checked_shape(shape), 1, FLOAT if dtype is None else as_dtype(dtype))


@public()
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return ``fill_value`` broadcast to ``shape``.

    dtype : by default that of ``fill_value``
    raises OverflowError, ValueError : the dtype cannot hold the number
    """
    sizes = checked_shape(shape)
    if is_number(fill_value):
        kind = number_dtype(fill_value) if dtype is None else as_dtype(dtype)
        if isinstance(fill_value, float):
            fill_value = wrapped_number(fill_value, kind)
        return filled(sizes, stored_number(fill_value, kind), kind)
    value = lift(fill_value)
    value = value if dtype is None else cast(value, as_dtype(dtype))
    return fresh(broadcast_to(value, sizes))


@public()
def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return zeros, by default of the shape and dtype of ``a``."""
    return _filled_like(a, 0, dtype, shape)


@public()
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return an array, by default of the shape and dtype of ``prototype``."""
    return _filled_like(prototype, 0, dtype, shape)


@public()
def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return ones, by default of the shape and dtype of ``a``."""
    return _filled_like(a, 1, dtype, shape)


@public()
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return an array filled with ``fill_value``, by default of the shape and dtype of ``a``."""
    value = lift(a)
    kind = value.kind if dtype is None else as_dtype(dtype)
    return full(value.shape if shape is None else shape, fill_value, kind)


def _filled_like(x: Any, number: int, dtype: Any, shape: Any) -> Tensor:
    value = lift(x)
    kind = value.kind if dtype is None else as_dtype(dtype)
    return filled(value.shape if shape is None else checked_shape(shape), number, kind)


@public(exact=False)
def arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return ``start, start + step, ...`` below ``stop``; a single argument is the stop."""
    if start is None and stop is None:
        raise TypeError("arange() requires stop to be specified.")
    if stop is None:
        start, stop = 0, start
    start = 0 if start is None else start
    step = 1 if step is None else step
    kind = None if dtype is None else as_dtype(dtype)
    given = start, stop, step
    start, stop, step = (_bound(number) for number in given)
    kind = ours(np.result_type(*given)) if kind is None else kind
    if step == 0:
        raise ZeroDivisionError("division by zero")
    if not all(map(math.isfinite, (start, stop, step))):
        raise ValueError("Maximum allowed size exceeded")
    count = max(math.ceil((stop - start) / step), 0)
    if kind.kind == "bool":
        if count > 2:
            raise TypeError("arange of booleans has two elements at most")
        return current_trace().constant(np.array([start, start + step], np.bool_)[:count])
    return _stepped(start, step, count, kind)


def _bound(number: Any) -> int | float:
    number = number.item() if isinstance(number, np.generic) else number
    if not is_number(number):
        raise TraceError(f"the bounds of arange must be plain numbers, got {number!r}")
    return number


def _stepped(start: int | float, step: int | float, count: int, kind: DType) -> Tensor:
    """Return ``start, start + step, ...`` as NumPy does: by the difference of the first two."""
    wide = SINGLE if kind.kind == "float" and kind.bytes < SINGLE.bytes else kind
    with np.errstate(all="ignore"):
        first, second = (
            kind.round(np.array(n if kind.kind == "float" else int(n)).astype(kind.numpy))
            for n in (start, start + step)
        )
        by = (second.astype(wide.numpy) - first.astype(wide.numpy)).item()
    steps = iota((count,), 0, wide)
    steps = steps if by == 1 else e.multiply(steps, filled((count,), by, wide))
    if first.item() != 0:
        steps = e.add(steps, filled((count,), first.item(), wide))
    return cast(steps, kind)


def iota(shape: Shape, axis: int, dtype: DType) -> Tensor:
    """Return the index along ``axis`` at every position of ``shape``."""
    return current_trace().emit("iota", (), [(dtype, shape)], (), axis=axis)[0]


@public()
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return ``num`` numbers evenly spaced from ``start`` to ``stop``, along a new ``axis``.

    start, stop : numbers or arrays, traced ones too; ``num`` must be known while tracing
    retstep : also return the spacing
    """
    (count,) = checked_shape(num)
    if not isinstance(start, Tensor) and not isinstance(stop, Tensor):
        known, step = np.linspace(start, stop, count, endpoint, retstep=True, axis=axis)
        kind = ours(known.dtype) if dtype is None else as_dtype(dtype)
        found = lift(_floored(known, kind))
    else:
        found, step = _spaced(start, stop, count, endpoint, dtype)
        found = moveaxis(found, 0, axis)
    return (found, step) if retstep else found


def _floored(array: Any, kind: DType) -> Any:
    """Return numbers in another dtype; integers are rounded down."""
    return (np.floor(array) if kind.kind in ("signed", "unsigned") else array).astype(kind.numpy)


def _spaced(start: Any, stop: Any, count: int, endpoint: bool, dtype: Any) -> Any:
    """Return `linspace` of traced values, and the spacing."""
    wide = common(*(v if is_number(v) else lift(v) for v in (start, stop)), float(count))
    first, last = e.together(converted(start, wide), converted(stop, wide))
    index = reshape(iota((count,), 0, wide), (count, *(1,) * first.ndim))
    parts = count - 1 if endpoint else count
    step = e.divide(e.subtract(last, first), float(max(parts, 1)))
    found = e.add(e.multiply(index, step), first)
    if endpoint and count > 1:
        found = e.where(e.equal(index, count - 1), last, found)
    if dtype is None:
        return found, step
    kind = as_dtype(dtype)
    return cast(e.floor(found) if kind.kind in ("signed", "unsigned") else found, kind), step


@public()
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return ones on diagonal ``k`` of an ``N`` by ``M`` matrix, zeros elsewhere."""
    shape = checked_shape((N, N if M is None else M))
    kind = FLOAT if dtype is None else as_dtype(dtype)
    index = as_dtype("i64")
    rows, columns = iota(shape, 0, index), iota(shape, 1, index)
    return cast(e.equal(e.add(rows, k), columns), kind)


@public()
def identity(n: int, dtype: Any = None) -> Tensor:
    """Return the ``n`` by ``n`` matrix of ones on the diagonal, zeros elsewhere."""
    return eye(n, dtype=dtype)


def _triangle(x: Any, k: int, keep: str) -> Tensor:
    value = lift(x)
    if not value.ndim:
        raise TypeError("a triangle needs an axis")
    if value.ndim < 2:
        value = broadcast_to(value, (value.size, *value.shape))
    shape, index = value.shape[-2:], as_dtype("i64")
    rows, columns = iota(shape, 0, index), iota(shape, 1, index)
    inside = getattr(e, keep)(columns, e.add(rows, k))
    return e.where(inside, value, filled((), 0, value.kind))


@public()
def tril(m: Any, k: int = 0) -> Tensor:
    """Return ``m`` with zeros above diagonal ``k`` of its last two axes."""
    return _triangle(m, k, "less_equal")


@public()
def triu(m: Any, k: int = 0) -> Tensor:
    """Return ``m`` with zeros below diagonal ``k`` of its last two axes."""
    return _triangle(m, k, "greater_equal")


@public()
def ascontiguousarray(a: Any, dtype: Any = None) -> Tensor:
    """Return `asarray` with at least one axis."""
    found = asarray(a, dtype)
    return found if found.ndim else reshape(found, (1,))


@public("asarray", "asanyarray")
def asarray(a: Any, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array, number or nested list, also of traced values, as a traced value."""
    if is_number(a):
        kind = number_dtype(a) if dtype is None else as_dtype(dtype)
        return filled((), stored_number(a, kind), kind)
    value = _from_list(a)
    kind = value.kind if dtype is None else as_dtype(dtype)
    found = cast(value, kind)
    return fresh(found) if copy else found


@public()
def array(object: Any, dtype: Any = None, copy: bool | None = True, ndmin: int = 0) -> Tensor:
    """Return an array, number or nested list, also of traced values, as a new array."""
    found = fresh(asarray(object, dtype))
    return reshape(found, ((1,) * (ndmin - found.ndim) + found.shape))


def _from_list(a: Any) -> Tensor:
    """Return a nested list that contains traced values as one value."""
    if not isinstance(a, list | tuple) or not any(map(has_traced, a)):
        value = lift(a)
        return fresh(value) if value.weak else value  # in an array a number has a dtype of its own
    return stack([_from_list(v) for v in a])


@public()
def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """Return coordinate arrays of the grid of all arrays ('xy' swaps the first two axes).

    sparse : return axes of size 1 where an array does not vary
    """
    values = [reshape(lift(a), -1) for a in xi]
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[:2] = [1, 0]
    shape = tuple(values[i].shape[0] for i in order)
    if sparse:
        return tuple(
            reshape(fresh(v), [-1 if a == order.index(i) else 1 for a in range(len(shape))])
            for i, v in enumerate(values)
        )
    return tuple(
        v.graph.emit("broadcast", [v], [(v.kind, shape)], (), dims=(order.index(i),))[0]
        for i, v in enumerate(values)
    )
