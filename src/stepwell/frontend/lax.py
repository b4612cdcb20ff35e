"""Control flow and other primitives on traced values. ``sw.lax``."""

from __future__ import annotations

from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.core.shapes import reduction as windows
from stepwell.frontend.associative_scans import associative_scan
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.indexing import dynamic_slice, dynamic_update_slice
from stepwell.frontend.lax_control import (
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
    """Return ``x``; derivatives take it as a constant.

    x : an array of any shape and dtype
    source : `jax.lax.stop_gradient`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.lax.stop_gradient)(np.arange(3))
    array([0, 1, 2])
    """
    return lift(x)


def dot_general(x: Any, w: Any, batch: Any = ((), ()), contract: Any = ((), ())) -> Tensor:
    """Multiply elementwise over ``batch`` axes and sum over ``contract`` axes.

    x, w : arrays of any shapes; of one dtype, or converted to one
    batch, contract : pairs of lists of axes of ``x`` and ``w``
    returns : batch axes, then the free axes of ``x``, then those of ``w``
    raises ShapeError : the sizes of axes that meet differ
    source : XLA's DotGeneral

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def product(x, w):
    ...     return sw.lax.dot_general(x, w, contract=([1], [0]))
    >>> product(np.ones((2, 3)), np.ones((3, 1)))
    array([[3.],
           [3.]])
    """
    a, b = same_narrow(x, w)
    return _dot_general(a, b, batch, contract)


def reduce_window(
    x: Any, op: str, window: Any, strides: Any = None, padding: Any = None, dilation: Any = None
) -> Tensor:
    """Reduce each window of ``x`` by ``op``.

    x : an array of numbers, whose dtype stays
    op : 'sum', 'max' or 'min'
    window, strides, dilation : one int per axis; strides and dilation are 1 where None
    padding : a pair (before, after) per axis; none where None
    returns : (n + padding - dilation * (window - 1) - 1) // strides + 1 along each axis, or 0
    raises ValueError : there is no such ``op``
    source : XLA's ReduceWindow

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.lax.reduce_window(x, 'sum', (2,)))(np.arange(4.0))
    array([1., 3., 5.])
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
    shape : an int or a tuple of them        dtype : ui32 or ui64
    source : Threefry-2x32, Salmon et al. 2011

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def words(key):
    ...     return sw.lax.random_bits(key, np.uint64(0), 2)
    >>> words(sw.random.key(7)).dtype
    dtype('uint32')
    """
    first = cast(lift(start), as_dtype("ui64"))
    words = cast(lift(key), as_dtype("ui32"))
    kind = (as_dtype(dtype), checked_shape(shape))
    return current_trace().emit("random_bits", [words, first], [kind])[0]


def _primitive(op: str, *operands: Any) -> Tensor:
    values = same_narrow(*operands)
    if len({v.shape for v in values}) > 1:
        listed = " and ".join(str(v.shape) for v in values)
        raise ShapeError(f"operands of {op} have one shape, got {listed}")
    return values[0].graph.emit(op, values, [(values[0].kind, values[0].shape)])[0]


def clz(x: Any) -> Tensor:
    """Return the number of leading zero bits, element by element.

    x : an array of integers, whose dtype stays
    source : `jax.lax.clz`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.lax.clz)(np.int32([1, 255]))
    array([31, 24], dtype=int32)
    """
    return _primitive("clz", x)


def clamp(x: Any, low: Any, high: Any) -> Tensor:
    """Return ``min(max(x, low), high)`` element by element; NaN where any of the three is.

    x, low, high : numbers of one shape; of one dtype, or converted to one
    raises ShapeError : their shapes differ
    source : XLA's Clamp

    >>> import numpy as np, stepwell as sw
    >>> x = np.float32([-1, 0.5, 3])
    >>> sw.jit(sw.lax.clamp)(x, np.zeros_like(x), np.ones_like(x))
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _primitive("clamp", x, low, high)


def fma(x: Any, y: Any, z: Any) -> Tensor:
    """Return ``x * y + z``, rounded once, element by element.

    x, y, z : floats of one shape; of one dtype, or converted to one
    raises ShapeError : their shapes differ
    source : IEEE 754's fusedMultiplyAdd

    >>> import numpy as np, stepwell as sw
    >>> x = np.array([1 + 2.0**-30])
    >>> sw.jit(sw.lax.fma)(x, x, -(x * x))  # what rounding took from x * x
    array([8.67361738e-19])
    """
    return _primitive("fma", x, y, z)


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
