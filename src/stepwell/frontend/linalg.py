"""`numpy.linalg` as far as products and sums suffice: norms, powers, chains of products.

Functions that need a factorization or eigenvalues are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from stepwell.core.shapes import show
from stepwell.frontend import elementwise as e
from stepwell.frontend import linear_algebra as products
from stepwell.frontend import manipulation as m
from stepwell.frontend import matrices
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import eye
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, cast, fresh, lift
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors or matrices, or of all elements.

    x : floats; integers and booleans are converted to f64
    ord : for vectors 0 (the number of nonzeros), 1, 2, any other number, inf or -inf; for
        matrices "fro", 1, -1, inf or -inf. None: the root of the sum of squares
    axis : one axis of vectors, or two of matrices; None: all axes, flattened if ``ord`` is None
    keepdims : keep these axes, with size 1

    The derivative of a root at 0, where it does not exist, is 0. Sums and maxima of absolute values
    have the derivatives of `numpy.abs`, 1 at 0, and of `numpy.max`.

    raises TraceError : ``ord`` of matrices is 2, -2 or "nuc", which need singular values
    raises ValueError, TypeError : as `numpy.linalg.norm`
    """
    value = _floats(x)
    if axis is None:
        plain = ord is None or (ord in ("f", "fro") and value.ndim == 2)
        if plain or (ord == 2 and value.ndim == 1):
            return _kept(_euclidean(m.ravel(value), (0,)), value, range(value.ndim), keepdims)
        axis = tuple(range(value.ndim))
    over = _axes(axis, value.ndim)
    if len(over) == 1:
        return _kept(_of_vectors(value, ord, over[0]), value, over, keepdims)
    if len(over) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _kept(_of_matrices(value, ord, *over), value, over, keepdims)


@public("linalg.vector_norm")
def vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return the norms of vectors along one or several axes; None is all axes.

    x, ord, keepdims : as in `norm`
    """
    value = _floats(x)
    over = tuple(range(value.ndim)) if axis is None else _axes(axis, value.ndim)
    rest = tuple(n for n in range(value.ndim) if n not in over)
    moved = m.permute_dims(value, (*rest, *over))
    flat = m.reshape(moved, (*moved.shape[: len(rest)], math.prod(moved.shape[len(rest) :])))
    return _kept(_of_vectors(flat, ord, len(rest)), value, over, keepdims)


@public("linalg.matrix_norm")
def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norms of the matrices in the last two axes.

    x, ord, keepdims : as in `norm`
    """
    return norm(x, ord, (-2, -1), keepdims)


@public("linalg.vecdot")
def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    """Return the sums of products along ``axis``; the other axes are broadcast."""
    return products.vecdot(x1, x2, axis=axis)


@public("linalg.matmul")
def matmul(x1: Any, x2: Any) -> Tensor:
    """Return the matrix product over the last two axes; leading axes are broadcast."""
    return products.matmul(x1, x2)


@public("linalg.tensordot")
def tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Tensor:
    """Sum products over axes of both: the last and first ``axes``, or a pair of lists of axes."""
    return products.tensordot(x1, x2, axes)


@public("linalg.matrix_transpose")
def matrix_transpose(x: Any) -> Tensor:
    """Return the matrices of the last two axes, transposed."""
    return m.matrix_transpose(x)


@public("linalg.outer")
def outer(x1: Any, x2: Any) -> Tensor:
    """Return ``x1[i] * x2[j]`` for the elements of two vectors."""
    ranks = lift(x1).ndim, lift(x2).ndim
    if ranks != (1, 1):
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={ranks[0]} and x2.ndim={ranks[1]}."
        )
    return products.outer(x1, x2)


@public("linalg.trace")
def trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sum along diagonal ``offset`` of the matrices of the last two axes."""
    return products.trace(x, offset, -2, -1, dtype)


@public("linalg.diagonal")
def diagonal(x: Any, *, offset: int = 0) -> Tensor:
    """Return diagonal ``offset`` of the matrices of the last two axes, as a copy."""
    return matrices.diagonal(x, offset, -2, -1)


@public("linalg.cross")
def cross(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of three elements along ``axis``."""
    sizes = [lift(v).shape[axis] for v in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {sizes[0]} and {sizes[1]} dimensional instead."
        )
    return matrices.cross(x1, x2, axis=axis)


@public("linalg.multi_dot")
def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """Return the product of two or more matrices, in the order with the fewest multiplications.

    arrays : matrices; the first and the last may be vectors
    """
    values = [lift(v) for v in arrays]
    if len(values) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = values[0].ndim == 1, values[-1].ndim == 1
    if first:
        values[0] = m.expand_dims(values[0], 0)
    if last:
        values[-1] = m.expand_dims(values[-1], 1)
    for value in values:
        if value.ndim != 2:
            raise np.linalg.LinAlgError(
                f"{value.ndim}-dimensional array given. Array must be two-dimensional"
            )
    found = _chained(values, _splits([values[0].shape[0], *(v.shape[1] for v in values)]))
    kept = (*found.shape[first:1], *found.shape[1 : 2 - last])
    return fresh(m.reshape(found, kept))


@public("linalg.matrix_power")
def matrix_power(a: Any, n: int) -> Tensor:
    """Return the ``n``-th power of square matrices; for 0 the identity.

    raises TraceError : ``n`` is negative, which needs an inverse
    raises ValueError, TypeError : as `numpy.linalg.matrix_power`
    """
    value = lift(a)
    if value.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{value.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if value.shape[-1] != value.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    try:
        count = index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None
    if count < 0:
        raise _needs("matrix_power", f"n={count}", "an inverse")
    if count == 0:
        one = eye(value.shape[-1], dtype=value.dtype)
        return fresh(m.broadcast_to(one, value.shape))
    square, found = value, None
    while True:
        count, odd = divmod(count, 2)
        if odd:
            found = square if found is None else products.matmul(found, square)
        if not count:
            assert found is not None
            return fresh(found)
        square = products.matmul(square, square)


def _needs(name: str, said: str, what: str) -> TraceError:
    return TraceError(f"numpy.linalg.{name}: {said} needs {what}, which is not known to Stepwell")


def _floats(x: Any) -> Tensor:
    value = fresh(lift(x))
    return value if value.kind.kind == "float" else cast(value, as_dtype("f64"))


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Return axes as a tuple, counted from the front."""
    if not isinstance(axis, tuple):
        try:
            axis = (index(axis),)
        except TypeError:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from None
    return tuple(check_axis(n, rank) for n in axis)


def _kept(found: Tensor, value: Tensor, over: Sequence[int], keepdims: bool) -> Tensor:
    """Return the reduction's result, with the reduced axes if ``keepdims``."""
    if not keepdims:
        return fresh(found)
    shape = tuple(1 if n in over else size for n, size in enumerate(value.shape))
    return fresh(m.reshape(found, shape))


def _rooted(total: Tensor, root: Callable[[Tensor], Any]) -> Tensor:
    """Return a root whose derivative at 0 is 0."""
    return e.where(e.equal(total, 0), 0, root(total))


def _euclidean(value: Tensor, over: tuple[int, ...]) -> Tensor:
    return _rooted(r.sum(e.multiply(value, value), axis=over, dtype=value.kind), e.sqrt)


def _of_vectors(value: Tensor, ord: Any, axis: int) -> Tensor:
    if ord is None or (not isinstance(ord, str) and ord == 2):
        return _euclidean(value, (axis,))
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    sizes = e.abs(value)
    if ord in (np.inf, -np.inf):
        return (r.max if ord > 0 else r.min)(sizes, axis=axis)
    if ord == 0:
        return r.sum(cast(e.not_equal(value, 0), value.kind), axis=axis, dtype=value.kind)
    if ord == 1:
        return r.sum(sizes, axis=axis, dtype=value.kind)
    total = r.sum(e.pow(sizes, float(ord)), axis=axis, dtype=value.kind)
    return _rooted(total, lambda t: e.pow(t, 1 / ord)) if ord > 0 else e.pow(total, 1 / ord)


def _of_matrices(value: Tensor, ord: Any, row: int, column: int) -> Tensor:
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord in (None, "fro", "f"):
        return _euclidean(value, (row, column))
    if ord in (2, -2, "nuc"):
        raise _needs("norm", f"ord={ord!r} of matrices", "singular values")
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    along, other = (row, column) if abs(ord) == 1 else (column, row)
    sums = r.sum(e.abs(value), axis=along, dtype=value.kind)
    return (r.max if ord > 0 else r.min)(sums, axis=other - (other > along))


Split = tuple[Any, Any] | int
"""A product of two splits, or the index of a matrix."""


def _splits(sizes: Sequence[int]) -> Split:
    """Return the cheapest order of multiplying matrices of ``sizes[k] x sizes[k + 1]``."""
    count = len(sizes) - 1
    best: dict[tuple[int, int], tuple[int, Split]] = {(k, k): (0, k) for k in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best[i, j] = min(
                (
                    (
                        best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1],
                        (best[i, k][1], best[k + 1, j][1]),
                    )
                    for k in range(i, j)
                ),
                key=lambda found: found[0],
            )
    return best[0, count - 1][1]


def _chained(values: Sequence[Tensor], split: Split) -> Tensor:
    if isinstance(split, int):
        return values[split]
    a, b = (_chained(values, part) for part in split)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"shapes ({show(a.shape)}) and ({show(b.shape)}) not aligned")
    return products.dot(a, b)


HERE = (
    *("cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "matrix_transpose"),
    *("multi_dot", "norm", "outer", "tensordot", "trace", "vecdot", "vector_norm"),
)
"""The supported functions of `numpy.linalg`."""
