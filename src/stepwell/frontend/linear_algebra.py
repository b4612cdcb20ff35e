"""Matrix and tensor products."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError
from stepwell.core.shapes import contraction as shapes
from stepwell.frontend import elementwise as e
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.manipulation import moveaxis, permute_dims, reshape
from stepwell.frontend.promotion import BOOL, as_dtype, broadcast, cast, fresh, lift, same_dtype
from stepwell.frontend.reduction import any
from stepwell.frontend.reduction import sum as summed
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor

Axes = Sequence[int]
COUNT = as_dtype("i32")
"""The accumulator dtype of products of booleans."""


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix product over the last two axes; leading axes are broadcast.

    x1 : (..., m, k) or (k,)        x2 : (..., k, n) or (k,), of one dtype after promotion
    returns : (..., m, n), without m or n where that operand had one axis
    """
    a, b = same_dtype(x1, x2)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if batch and min(a.ndim, b.ndim) > 2 and (a.shape[:-2] != batch or b.shape[:-2] != batch):
        a = broadcast(a, (*batch, *a.shape[-2:]))
        b = broadcast(b, (*batch, *b.shape[-2:]))
    shape = shapes.matmul(a.shape, b.shape)
    if a.kind is BOOL:
        return e.not_equal(matmul(cast(a, COUNT), cast(b, COUNT)), 0)
    return a.graph.emit("matmul", [a, b], [(a.kind, shape)])[0]


def dot_general(
    a: Tensor, b: Tensor, batch: tuple[Axes, Axes], contract: tuple[Axes, Axes]
) -> Tensor:
    """Multiply and sum over ``contract``, per element of ``batch``; then a's axes, then b's."""
    shape = shapes.dot_general(a.shape, b.shape, batch, contract)
    if a.kind is BOOL:  # a logical or of logical ands
        return e.not_equal(dot_general(cast(a, COUNT), cast(b, COUNT), batch, contract), 0)
    return a.graph.emit(
        "dot_general",
        [a, b],
        [(a.kind, shape)],
        (),
        x_batch=tuple(batch[0]),
        w_batch=tuple(batch[1]),
        x_contract=tuple(contract[0]),
        w_contract=tuple(contract[1]),
    )[0]


@public()
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Sum products over axes of both: the last and first ``axes``, or a pair of lists of axes."""
    x, y = same_dtype(a, b)
    if isinstance(axes, int):
        axes = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    left, right = (axes_of(k) for k in axes)
    left = tuple(check_axis(i, x.ndim) for i in left)
    right = tuple(check_axis(i, y.ndim) for i in right)
    return dot_general(x, y, ((), ()), (left, right))


@public(method=True)
def dot(a: Any, b: Any) -> Tensor:
    """Return the product of matrices or vectors: the sums of products over the last axis of
    ``a`` and the last but one of ``b``."""
    x, y = same_dtype(a, b)
    if not x.ndim or not y.ndim:
        return e.multiply(x, y)
    if x.ndim <= 2 >= y.ndim:
        return matmul(x, y)
    return tensordot(x, y, ((-1,), (-1 if y.ndim == 1 else -2,)))


@public()
def inner(a: Any, b: Any) -> Tensor:
    """Return the sums of products along the last axes of both."""
    x, y = same_dtype(a, b)
    if not x.ndim or not y.ndim:
        return e.multiply(x, y)
    return tensordot(x, y, ((-1,), (-1,)))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sums of products along ``axis``; the other axes are broadcast."""
    return _total(e.multiply(x1, x2), axis)


def _total(x: Tensor, axis: Any) -> Tensor:
    """Return a sum in the dtype of its elements; for booleans, whether any is true."""
    return any(x, axis=axis) if x.kind is BOOL else summed(x, axis=axis, dtype=x.kind)


@public()
def outer(a: Any, b: Any) -> Tensor:
    """Return ``a[i] * b[j]`` for the elements of two flattened arrays."""
    # lift as arrays: a number's own dtype counts here
    x, y = (reshape(v, (-1,)) for v in same_dtype(fresh(lift(a)), fresh(lift(b))))
    return dot_general(x, y, ((), ()), ((), ()))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum along diagonal ``offset`` of the matrices in two axes."""
    value = lift(a)
    if value.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = (check_axis(k, value.ndim) for k in (axis1, axis2))
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    value = moveaxis(value, (first, second), (-2, -1))
    *batch, rows, columns = value.shape
    long = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = offset if offset >= 0 else -offset * columns
    stop = start + max(long - 1, 0) * (columns + 1) + min(long, 1)
    flat = reshape(value, (*batch, rows * columns))
    start = min(start, stop, rows * columns)
    return summed(flat[..., start : min(stop, rows * columns) : columns + 1], axis=-1, dtype=dtype)


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    """Return the sum of products that ``subscripts`` describes, as numpy.einsum.

    Takes one or more operands, without repeated indices within an operand or an ellipsis. More than
    two operands are contracted from left to right.
    """
    inputs, _, output = subscripts.replace(" ", "").partition("->")
    names = inputs.split(",")
    values = same_dtype(*operands)
    if len(names) != len(values):
        raise ValueError(f"{len(names)} subscripts for {len(values)} operands")
    _check_subscripts(names, values)
    if "->" not in subscripts:
        every = "".join(names)
        output = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    name, value = names[0], values[0]
    for i, (other, operand) in enumerate(zip(names[1:], values[1:], strict=True), 1):
        later = "".join([*names[i + 1 :], output])
        name, value = _pair(name, value, other, operand, later)
    gone = tuple(i for i, c in enumerate(name) if c not in output)
    if gone:
        value = _total(value, gone)
        name = "".join(c for c in name if c in output)
    if len(set(output)) < len(output):
        raise ValueError(f"the output {output!r} names an index twice")
    if sorted(name) != sorted(output):
        strange = "".join(c for c in output if c not in name)
        raise ValueError(f"the output {output!r} has an index that no operand has: {strange!r}")
    return fresh(permute_dims(value, [name.index(c) for c in output]))


def _check_subscripts(names: Sequence[str], values: Sequence[Tensor]) -> None:
    """Check that each operand has an axis for each letter, of consistent sizes."""
    sizes: dict[str, tuple[int, int]] = {}
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        if len(set(name)) != len(name) or set(name) - set(string.ascii_letters):
            raise ValueError(f"subscript {name!r} must be distinct letters")
        if len(name) != value.ndim:
            raise ValueError(f"subscript {name!r} names {len(name)} axes of {value.ndim}")
        for letter, size in zip(name, value.shape, strict=True):
            before, other = sizes.setdefault(letter, (size, number))
            if size != before:
                raise ShapeError(
                    f"index {letter!r} of einsum has size {before} in operand {other}, "
                    f"{size} in operand {number}"
                )


def _pair(name: str, a: Tensor, other: str, b: Tensor, later: str) -> tuple[str, Tensor]:
    """Contract two operands; an index that no later operand needs is summed."""
    name, a, other, b = (*_without(name, a, other + later), *_without(other, b, name + later))
    shared = [c for c in name if c in other]
    batch = [c for c in shared if c in later]
    contract = [c for c in shared if c not in later]
    result = dot_general(
        a,
        b,
        ([name.index(c) for c in batch], [other.index(c) for c in batch]),
        ([name.index(c) for c in contract], [other.index(c) for c in contract]),
    )
    free = [c for c in name if c not in shared] + [c for c in other if c not in shared]
    return "".join(batch + free), result


def _without(name: str, value: Tensor, kept: str) -> tuple[str, Tensor]:
    """Sum over the indices of an operand that are not among ``kept``."""
    alone = tuple(i for i, c in enumerate(name) if c not in kept)
    if not alone:
        return name, value
    return "".join(c for c in name if c in kept), _total(value, alone)
