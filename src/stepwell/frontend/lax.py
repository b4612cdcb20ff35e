"""Control flow and other primitives on traced values. ``sw.lax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stepwell.core.shapes import reduction as windows
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.indexing import dynamic_slice, dynamic_update_slice
from stepwell.frontend.lax_control import (
    associative_scan,
    cond,
    fori_loop,
    map,
    scan,
    switch,
    while_loop,
)
from stepwell.frontend.linear_algebra import dot_general as _dot_general
from stepwell.frontend.promotion import as_dtype, cast, lift, same_narrow
from stepwell.frontend.sorting import top_k
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace


def stop_gradient(x: Any) -> Any:
    """Return ``x``; derivatives take it as a constant."""
    return lift(x)


def dot_general(x: Any, w: Any, batch: Any = ((), ()), contract: Any = ((), ())) -> Tensor:
    """Multiply elementwise over ``batch`` axes and sum over ``contract`` axes.

    batch, contract : pairs of lists of axes of ``x`` and ``w``
    returns : batch axes, then the free axes of ``x``, then those of ``w``
    """
    a, b = same_narrow(x, w)
    return _dot_general(a, b, batch, contract)


def reduce_window(
    x: Any, op: str, window: Any, strides: Any = None, padding: Any = None, dilation: Any = None
) -> Tensor:
    """Reduce each window of ``x`` by ``op``, one of 'sum', 'max' and 'min'.

    window, strides, dilation : one int per axis        padding : a pair (before, after) per axis
    """
    if op not in ("sum", "max", "min"):
        raise ValueError(f"op must be 'sum', 'max' or 'min', got {op!r}")
    value = lift(x)
    ones, zeros = (1,) * value.ndim, (0,) * value.ndim
    size = tuple(window)
    strides = ones if strides is None else tuple(strides)
    apart = ones if dilation is None else tuple(dilation)
    low = zeros if padding is None else tuple(p[0] for p in padding)
    high = zeros if padding is None else tuple(p[1] for p in padding)
    shape = windows.window_reduce(value.shape, size, strides, low, high, apart)
    return value.graph.emit(
        f"window_{op}",
        [value],
        [(value.kind, shape)],
        (),
        window=size,
        strides=strides,
        low=low,
        high=high,
        dilation=apart,
    )[0]


def random_bits(key: Any, start: Any, shape: Any, dtype: Any = "ui32") -> Tensor:
    """Return random integers that depend on ``key`` and ``start`` alone.

    key : (2,) uint32        start : uint64 without axes, the number of the first element
    dtype : ui32 or ui64
    """
    first = cast(lift(start), as_dtype("ui64"))
    words = cast(lift(key), as_dtype("ui32"))
    kind = (as_dtype(dtype), checked_shape(shape))
    return current_trace().emit("random_bits", [words, first], [kind])[0]


def _primitive(op: str, doc: str, result: Any = None) -> Callable[..., Tensor]:
    def function(*operands: Any) -> Tensor:
        values = same_narrow(*operands)
        first = values[0]
        return first.graph.emit(op, values, [(result or first.kind, first.shape)])[0]

    function.__name__, function.__doc__ = op, doc
    return function


clz = _primitive("clz", "Return the number of leading zero bits of integers.")
clamp = _primitive("clamp", "Return ``min(max(x, low), high)`` of three arrays of one shape.")
fma = _primitive("fma", "Return ``x * y + z`` rounded once, for floats of one shape.")

__all__ = [
    "associative_scan",
    "clamp",
    "clz",
    "cond",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "fma",
    "fori_loop",
    "map",
    "random_bits",
    "reduce_window",
    "scan",
    "stop_gradient",
    "switch",
    "top_k",
    "while_loop",
]


def __dir__() -> list[str]:
    """Leave out what is imported."""
    return __all__
