"""Slices: offsets, sizes and strides of a part, and the axes that its type drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.dialects.upstream.verifiers.types import fits, refuse


def check_slice(op: Any, whole: Sequence[int], type: Any) -> tuple[int, ...]:
    """Refuse a slice that is provably not within ``whole``; return its sizes."""
    offsets, sizes, strides = (
        tuple(each.get_values()) for each in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    for name, static, dynamic in (
        ("offsets", offsets, op.offsets),
        ("sizes", sizes, op.sizes),
        ("strides", strides, op.strides),
    ):
        if len(static) != len(whole):
            refuse(f"{type} takes {len(whole)} {name}, one for each axis, not {len(static)}")
        if static.count(DYNAMIC_INDEX) != len(dynamic):
            refuse(f"{static.count(DYNAMIC_INDEX)} of the {name} are `?`, not {len(dynamic)}")
    for axis, each in enumerate(zip(whole, offsets, sizes, strides, strict=True)):
        _check_axis(axis, *each, type)
    return sizes


def _check_axis(axis: int, whole: int, offset: int, size: int, stride: int, type: Any) -> None:
    if size < 0 and size != DYNAMIC_INDEX:
        refuse(f"a slice cannot have {size} elements along axis {axis}")
    if offset < 0 and offset != DYNAMIC_INDEX:
        refuse(f"a slice cannot begin at {offset} of axis {axis}")
    if whole == DYNAMIC_INDEX or DYNAMIC_INDEX in (offset, stride):
        if whole != DYNAMIC_INDEX and size > whole and abs(stride) == 1:
            refuse(f"{size} elements do not lie within axis {axis} of {type}")
        return
    if offset > whole or (offset == whole and size > 0):
        refuse(f"a slice that begins at {offset} does not lie within axis {axis} of {type}")
    last = offset + (size - 1) * stride
    if size > 0 and not 0 <= last < whole:
        refuse(f"a slice up to element {last} does not lie within axis {axis} of {type}")


def rank_reduced(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Return the axes of a slice that ``shape`` keeps, None if it drops others than unit axes."""
    kept: list[int] = []
    for axis, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(axis)
        elif size != 1:
            return None
    return kept if len(kept) == len(shape) else None


def rank_reductions(sizes: Sequence[int], shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Return every way to drop unit axes that gives ``shape``."""
    found: list[tuple[int, ...]] = []

    def go(axis: int, kept: tuple[int, ...]) -> None:
        if len(found) > 64 or len(kept) > len(shape):
            return
        if axis == len(sizes):
            if len(kept) == len(shape):
                found.append(kept)
            return
        if len(kept) < len(shape) and fits(sizes[axis], shape[len(kept)]):
            go(axis + 1, (*kept, axis))
        if sizes[axis] == 1:
            go(axis + 1, kept)

    go(0, ())
    return found
