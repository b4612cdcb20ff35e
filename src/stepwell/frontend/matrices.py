"""NumPy's matrix functions: diagonals, triangles, Kronecker and cross products, rotations."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend import reducing as red
from stepwell.frontend.creation import checked_shape, iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import flip, swapaxes
from stepwell.frontend.operands import array, cumprod, dot, dtype_of, stored, taken, ufunc, unified
from stepwell.frontend.promotion import INTEGER, cast, fresh, full, is_number, stored_number
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public(method=True)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """`numpy.diagonal`, as a copy: the diagonal is the last axis."""
    value = array(a)
    if value.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = check_axis(axis1, value.ndim), check_axis(axis2, value.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [i for i in range(value.ndim) if i not in (first, second)]
    moved = m.permute_dims(value, [*rest, first, second])
    *batch, rows, columns = moved.shape
    long = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if not long:
        return full((*batch, 0), 0, value.kind)
    start = offset if offset >= 0 else -offset * columns
    flat = m.reshape(fresh(moved), (*batch, rows * columns))
    stop = start + (long - 1) * (columns + 1) + 1
    return fresh(flat[..., start : stop : columns + 1])


@public()
def diagflat(v: Any, k: int = 0) -> Tensor:
    """`numpy.diagflat`."""
    return diag(m.ravel(array(v)), k)


@public()
def diag(v: Any, k: int = 0) -> Tensor:
    """`numpy.diag`: the diagonal of a matrix, as a copy, or a matrix with this diagonal."""
    value = array(v)
    if value.ndim == 2:
        return diagonal(value, k)
    if value.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = value.size + abs(k)
    if not value.size:
        return full((n, n), 0, value.kind)
    # n rows of the vector, padded so that each element is followed by n zeros
    spread = j.pad(m.expand_dims(value, 1), ((0, 0), (0, n)))
    flat = m.reshape(spread, (value.size * (n + 1),))
    before = k if k >= 0 else -k * n
    after = max(n * n - before - flat.size, 0)
    flat = j.pad(flat, ((before, after),))[: n * n]
    return fresh(m.reshape(flat, (n, n)))


@public()
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:
    """`numpy.tri`: ones at and below diagonal ``k``; the default dtype is float64."""
    shape = checked_shape((N, N if M is None else M))
    rows, columns = iota(shape, 0, INTEGER), iota(shape, 1, INTEGER)
    return cast(e.greater_equal(e.add(rows, k), columns), dtype_of(dtype))


@public(method=True)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Tensor:
    """`numpy.trace`."""
    return stored(red.sum(diagonal(a, offset, axis1, axis2), -1, dtype), out)


@public()
def kron(a: Any, b: Any) -> Tensor:
    """`numpy.kron`."""
    x, y = fresh(array(a)), fresh(array(b))  # numbers have their own dtype here
    rank = max(x.ndim, y.ndim)
    x, y = (m.reshape(v, (*(1,) * (rank - v.ndim), *v.shape)) for v in (x, y))
    left = m.reshape(x, tuple(n for size in x.shape for n in (size, 1)))
    right = m.reshape(y, tuple(n for size in y.shape for n in (1, size)))
    sizes = zip(x.shape, y.shape, strict=True)
    return fresh(m.reshape(ufunc(np.multiply, left, right), tuple(p * q for p, q in sizes)))


@public()
def vdot(a: Any, b: Any) -> Tensor:
    """`numpy.vdot`."""
    x, y = (m.ravel(array(v)) for v in (a, b))
    if x.shape != y.shape:
        raise ValueError("cannot reshape array: vdot takes arrays of one size")
    return dot(x, y)


@public()
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """`numpy.cross`, of vectors with two or three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = array(a), array(b)
    if not x.ndim or not y.ndim:
        raise ValueError("At least one array has zero dimension")
    x, y = m.moveaxis(x, axisa, -1), m.moveaxis(y, axisb, -1)
    sizes = x.shape[-1], y.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {sizes[0]} and {sizes[1]} dimensional instead."
        )
    p, q = ([v[..., i] for i in range(v.shape[-1])] for v in unified(x, y))
    last = p[0] * q[1] - p[1] * q[0]
    if sizes == (2, 2):
        return last
    if sizes == (3, 3):
        found = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], last]
    elif sizes == (2, 3):
        found = [p[1] * q[2], -(p[0] * q[2]), last]
    else:
        found = [-(p[2] * q[1]), p[2] * q[0], last]
    return m.moveaxis(j.stack(found, -1), -1, axisc)


@public()
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """`numpy.rot90`, as a copy."""
    value = array(m)
    first, second = axes
    if first == second or abs(first - second) == value.ndim:
        raise ValueError("Axes must be different.")
    first, second = check_axis(first, value.ndim), check_axis(second, value.ndim)
    turned = k % 4
    if turned in (1, 2):
        value = flip(value, second)
    if turned == 2:
        return fresh(flip(value, first))
    if turned in (1, 3):
        value = swapaxes(value, first, second)
    return fresh(flip(value, second) if turned == 3 else value)


@public()
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """`numpy.vander`."""
    value = array(x)
    if value.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = value.size if N is None else N
    kind = unified(value, np.int64(0))[0].kind
    powers = m.expand_dims(cast(value, kind), 1)
    if not n:
        return full((value.size, 0), 0, kind)
    ones = full((value.size, 1), 1, kind)
    factors = j.concat([ones, m.broadcast_to(powers, (value.size, n - 1))], axis=1)
    found = cumprod(factors, 1, kind)
    return found if increasing else fresh(m.flip(found, 1))


@public()
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`numpy.fill_diagonal`: it writes to ``a``."""
    if not isinstance(a, Tensor) or a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    if a.ndim == 2 and wrap:
        places = np.unravel_index(np.arange(0, a.size, a.shape[1] + 1), a.shape)
    else:
        places = (np.arange(n),) * a.ndim
    if is_number(val):
        a[places] = stored_number(val, a.kind)
        return
    row = m.ravel(array(val))
    a[places] = taken(row, np.arange(len(places[0])) % max(row.size, 1))


def _indices(of: Any, arr: Any, k: int) -> tuple[np.ndarray[Any, Any], ...]:
    value = array(arr)
    if value.ndim != 2:
        raise ValueError("input array must be 2-d")
    return of(value.shape[0], k=k, m=value.shape[1])


@public()
def tril_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray[Any, Any], ...]:
    """`numpy.tril_indices_from`; the indices are known while tracing."""
    return _indices(np.tril_indices, arr, k)


@public()
def triu_indices_from(arr: Any, k: int = 0) -> tuple[np.ndarray[Any, Any], ...]:
    """`numpy.triu_indices_from`; the indices are known while tracing."""
    return _indices(np.triu_indices, arr, k)


@public()
def diag_indices_from(arr: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """`numpy.diag_indices_from`; the indices are known while tracing."""
    value = array(arr)
    if value.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(value.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return np.diag_indices(value.shape[0], value.ndim)
