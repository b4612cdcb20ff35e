"""Result shapes of the ops that only move elements: broadcast, reshape, slice, pad."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError, same_size, show

END = 2**63 - 1
"""The limit of a slice that ends at the end of its axis, for axes of any size."""


def checked_axes(rank: int, axes: Sequence[int], what: str = "axes") -> tuple[int, ...]:
    """Return ``axes``, which must be distinct axes of a tensor of that rank, ascending."""
    if any(not 0 <= a < rank for a in axes):
        raise ShapeError(f"{what} must lie in 0..{rank - 1}, got {list(axes)}")
    if list(axes) != sorted(set(axes)):
        raise ShapeError(f"{what} must rise and name no axis twice, got {list(axes)}")
    return tuple(axes)


def checked_axis(rank: int, axis: int) -> int:
    """Return ``axis``, which must be an axis of a tensor of that rank."""
    if not 0 <= axis < rank:
        raise ShapeError(f"axis must lie in 0..{rank - 1}, got {axis}")
    return axis


def broadcast(x: Shape, dims: Sequence[int], result: Shape) -> Shape:
    """Return ``result`` if ``x`` broadcasts to it, axis k of ``x`` becoming axis ``dims[k]``.

    >>> broadcast((1, 4), (0, 2), (3, 5, 4))
    (3, 5, 4)
    """
    if len(dims) != len(x):  # broadcast_c1
        raise ShapeError(
            f"dims must name one result axis for each of {len(x)} axes, got {len(dims)}"
        )
    checked_axes(len(result), dims, "dims")  # broadcast_c1
    for axis, to in enumerate(dims):
        if x[axis] not in (1, result[to]):  # broadcast_c2
            raise ShapeError(
                f"axis {axis} of {show(x)} cannot become axis {to} of {show(result)}: "
                "its size must be 1 or the same"
            )
    return result


def broadcast_unknown(x: Shape, dims: Sequence[int], result: Shape) -> tuple[int, ...]:
    """Return the axes of ``result`` whose `?` needs a size: it is not that of an axis of ``x``.

    >>> broadcast_unknown((DYNAMIC,), (1,), (DYNAMIC, DYNAMIC))
    (0,)
    """
    known = {to for axis, to in enumerate(dims) if x[axis] == DYNAMIC}
    return tuple(a for a, n in enumerate(result) if n == DYNAMIC and a not in known)


def reshape(x: Shape, result: Shape) -> Shape:
    """Return ``result`` if it can have as many elements as ``x``."""
    have, want = (prod(n for n in s if n != DYNAMIC) for s in (x, result))
    free_x, free_result = DYNAMIC in x, DYNAMIC in result
    fits = have == want
    if free_x and free_result:
        fits = True
    elif free_x or free_result:
        known, part = (have, want) if free_result else (want, have)
        fits = known == 0 if part == 0 else known % part == 0
    if not fits:  # reshape_c1
        raise ShapeError(f"cannot reshape {show(x)} to {show(result)}: the elements do not add up")
    return result


def reshape_unknown(x: Shape, result: Shape) -> tuple[int, ...]:
    """Return the axes of ``result`` whose `?` needs a size.

    If ``x`` and ``result`` have one `?` each and equal known sizes, the `?` are equal.

    >>> reshape_unknown((DYNAMIC, 6), (2, DYNAMIC, 3)), reshape_unknown((DYNAMIC,) * 2, (DYNAMIC,))
    ((), (0,))
    """
    unknown = tuple(a for a, n in enumerate(result) if n == DYNAMIC)
    known = [prod(n for n in s if n != DYNAMIC) for s in (x, result)]
    is_same = len(unknown) == 1 == x.count(DYNAMIC) and known[0] == known[1] != 0
    return () if is_same else unknown


def transpose(x: Shape, permutation: Sequence[int]) -> Shape:
    """Return the shape whose axis k is axis ``permutation[k]`` of ``x``.

    >>> transpose((2, 3, 4), (2, 0, 1))
    (4, 2, 3)
    """
    if sorted(permutation) != list(range(len(x))):  # transpose_c1
        raise ShapeError(
            f"permutation must name each of {len(x)} axes once, got {list(permutation)}"
        )
    return tuple(x[a] for a in permutation)


def slice_bounds(n: int, start: int, limit: int) -> tuple[int, int]:
    """Return the bounds of a slice of an axis of known size, with Python's rules.

    >>> slice_bounds(5, -3, END), slice_bounds(5, 4, 2), slice_bounds(5, 0, -1)
    ((2, 5), (4, 4), (0, 4))
    """
    begin, end, _ = slice(start, limit).indices(n)
    return begin, max(begin, end)


def slice_(x: Shape, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Shape:
    """Return the shape of ``x[starts:limits:strides]``, with Python's rules for bounds.

    >>> show(slice_((5, DYNAMIC, DYNAMIC), (0, 1, 2), (-1, END, 2), (2, 1, 1)))
    '2x?x0'
    """
    if not len(starts) == len(limits) == len(strides) == len(x):  # slice_c1
        raise ShapeError(f"slice must say a range for each of {len(x)} axes, got {len(starts)}")
    if any(s < 1 for s in strides):  # slice_c2
        raise ShapeError(f"strides must be positive, got {list(strides)}")
    return tuple(map(_sliced, x, starts, limits, strides))


def _sliced(n: int, start: int, limit: int, stride: int) -> int:
    if n == DYNAMIC:
        empty = limit <= start and (start >= 0) == (limit >= 0)
        return 0 if empty else DYNAMIC
    begin, end = slice_bounds(n, start, limit)
    return -(-(end - begin) // stride)


def pad(x: Shape, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Shape:
    """Return the shape of ``x`` with padding before, after and between its elements.

    >>> show(pad((3, DYNAMIC), (1, 0), (0, 2), (1, 0)))
    '6x?'
    """
    if not len(low) == len(high) == len(interior) == len(x):  # pad_c1
        raise ShapeError(f"low, high and interior must have {len(x)} entries each")
    if any(n < 0 for n in (*low, *high, *interior)):  # pad_c1
        raise ShapeError("low, high and interior must not be negative")
    return tuple(
        DYNAMIC if n == DYNAMIC else n + a + b + max(n - 1, 0) * c
        for n, a, b, c in zip(x, low, high, interior, strict=True)
    )


def concat(shapes: Sequence[Shape], axis: int) -> Shape:
    """Return the shape of tensors concatenated along ``axis``.

    >>> concat([(2, DYNAMIC), (3, 4)], 0)
    (5, 4)
    """
    if not shapes:  # concat_c1
        raise ShapeError("concat needs at least one operand")
    first = shapes[0]
    checked_axis(len(first), axis)  # concat_c1
    total = list(first)
    for other in shapes[1:]:
        if len(other) != len(first):  # concat_c1
            raise ShapeError(
                f"concat wants operands of one rank, got {show(first)} and {show(other)}"
            )
        for a, n in enumerate(other):
            if a == axis:
                total[a] = DYNAMIC if DYNAMIC in (n, total[a]) else total[a] + n
            elif (size := same_size(total[a], n)) is None:  # concat_c2
                raise ShapeError(f"sizes of axis {a} differ: {show(first)} and {show(other)}")
            else:
                total[a] = size
    return tuple(total)


def reverse(x: Shape, axes: Sequence[int]) -> Shape:
    """Return the shape of ``x`` reversed along ``axes``: the same shape."""
    checked_axes(len(x), axes)  # reverse_c1
    return x
