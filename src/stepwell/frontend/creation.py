"""Arrays out of nothing. Shapes are tuples of ints; the default dtype is float32.

Arguments may be given by position in the order that NumPy has them in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import broadcast_to, reshape
from stepwell.frontend.promotion import FLOAT, as_dtype, cast, is_number, lift, number_dtype
from stepwell.frontend.promotion import full as filled
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


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Return zeros of ``shape``."""
    return filled(checked_shape(shape), 0, FLOAT if dtype is None else as_dtype(dtype))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return ones of ``shape``."""
    return filled(checked_shape(shape), 1, FLOAT if dtype is None else as_dtype(dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return ``fill_value``, a number or a value without axes, everywhere in ``shape``."""
    sizes = checked_shape(shape)
    if is_number(fill_value):
        kind = number_dtype(fill_value) if dtype is None else as_dtype(dtype)
        if kind.kind == "bool":
            fill_value = bool(fill_value)
        elif kind.kind != "float" and isinstance(fill_value, float):
            if not math.isfinite(fill_value):
                raise ValueError(f"{fill_value} does not fit into {kind.name}")
            fill_value = int(fill_value)  # toward zero, as NumPy
        return filled(sizes, fill_value, kind)
    value = lift(fill_value)
    value = value if dtype is None else cast(value, as_dtype(dtype))
    return broadcast_to(value, sizes)


def zeros_like(x: Any, /, dtype: Any = None) -> Tensor:
    """Return zeros of the shape and dtype of ``x``."""
    return _like(x, 0, dtype)


def ones_like(x: Any, /, dtype: Any = None) -> Tensor:
    """Return ones of the shape and dtype of ``x``."""
    return _like(x, 1, dtype)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return ``fill_value`` everywhere in the shape of ``x``, in its dtype."""
    value = lift(x)
    return full(value.shape, fill_value, dtype=value.kind if dtype is None else dtype)


def _like(x: Any, number: int, dtype: Any) -> Tensor:
    value = lift(x)
    return filled(value.shape, number, as_dtype(dtype) if dtype else value.kind)


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return ``start, start + step, ...`` below ``stop``; with one argument, that is the stop."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_bound(number) for number in (start, stop, step))
    kind = _number_kind(start, stop, step) if dtype is None else as_dtype(dtype)
    if step == 0:
        raise ZeroDivisionError("the step of arange cannot be 0")
    if not all(map(math.isfinite, (start, stop, step))):
        raise ValueError(f"arange from {start} to {stop} by {step} has no length")
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
    wide = FLOAT if kind.kind == "float" and kind.bytes < FLOAT.bytes else kind
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


def _number_kind(*numbers: Any) -> DType:
    return FLOAT if any(isinstance(n, float) for n in numbers) else number_dtype(0)


def iota(shape: Shape, axis: int, dtype: DType) -> Tensor:
    """Return the index along ``axis`` at every place of ``shape``."""
    return current_trace().emit("iota", (), [(dtype, shape)], (), axis=axis)[0]


def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, *, dtype: Any = None
) -> Tensor:
    """Return ``num`` numbers evenly spaced from ``start`` to ``stop``, along a new first axis.

    start, stop : numbers or arrays, traced ones too; ``num`` must be known while tracing
    """
    (count,) = checked_shape(num)
    if isinstance(start, Tensor) or isinstance(stop, Tensor):
        return _spaced(start, stop, count, endpoint, dtype)
    kind = FLOAT if dtype is None else as_dtype(dtype)
    return current_trace().constant(
        np.linspace(start, stop, num, endpoint=endpoint).astype(kind.numpy)
    )


def _spaced(start: Any, stop: Any, count: int, endpoint: bool, dtype: Any) -> Tensor:
    """Return what `linspace` does of traced values."""
    first, last = e.together(start, stop)
    wide = first.kind if first.kind.kind == "float" else FLOAT
    first, last = cast(first, wide), cast(last, wide)
    index = reshape(iota((count,), 0, wide), (count, *(1,) * first.ndim))
    parts = count - 1 if endpoint else count
    step = e.divide(e.subtract(last, first), float(max(parts, 1)))
    found = e.add(e.multiply(index, step), first)
    if endpoint and count > 1:
        found = e.where(e.equal(index, count - 1), last, found)
    return found if dtype is None else cast(found, as_dtype(dtype))


def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None) -> Tensor:
    """Return ones on diagonal ``k`` of an ``n_rows`` by ``n_cols`` matrix, zeros elsewhere."""
    shape = checked_shape((n_rows, n_rows if n_cols is None else n_cols))
    kind = FLOAT if dtype is None else as_dtype(dtype)
    index = as_dtype("i64")
    rows, columns = iota(shape, 0, index), iota(shape, 1, index)
    return cast(e.equal(e.add(rows, k), columns), kind)


def _triangle(x: Any, k: int, keep: str) -> Tensor:
    value = lift(x)
    if value.ndim < 2:
        raise ValueError(f"a triangle needs two axes, got {value.ndim}")
    shape, index = value.shape[-2:], as_dtype("i64")
    rows, columns = iota(shape, 0, index), iota(shape, 1, index)
    inside = getattr(e, keep)(columns, e.add(rows, k))
    return e.where(inside, value, filled((), 0, value.kind))


def tril(x: Any, /, k: int = 0) -> Tensor:
    """Return ``x`` with zeros above diagonal ``k`` of its last two axes."""
    return _triangle(x, k, "less_equal")


def triu(x: Any, /, k: int = 0) -> Tensor:
    """Return ``x`` with zeros below diagonal ``k`` of its last two axes."""
    return _triangle(x, k, "greater_equal")


def asarray(x: Any, /, dtype: Any = None) -> Tensor:
    """Return an array, a number or a nested list as a value of the trace."""
    if isinstance(x, bool | int | float) and dtype is not None:
        return filled((), x, as_dtype(dtype))
    value = lift(x)
    return value if dtype is None else cast(value, as_dtype(dtype))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """Return each 1-D array spread over the grid of all of them ('xy' swaps the first two axes)."""
    values = [lift(a) for a in arrays]
    if any(v.ndim != 1 for v in values) or indexing not in ("xy", "ij"):
        raise ValueError("meshgrid takes 1-D arrays and indexing 'xy' or 'ij'")
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[:2] = [1, 0]
    shape = tuple(values[i].shape[0] for i in order)
    return [
        v.trace.emit("broadcast", [v], [(v.kind, shape)], (), dims=(order.index(i),))[0]
        for i, v in enumerate(values)
    ]
