"""Concatenate cotangents of disjoint parts of a value, instead of adding parts padded with zeros.

If all parts of a split value are used, its cotangent is one concat.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.creation import FullOp, number
from stepwell.dialects.nd.shape import ConcatOp, PadOp
from stepwell.dialects.nd.syntax import element, shape_of


def side_by_side(c: Composer, parts: Sequence[SSAValue]) -> list[SSAValue]:
    """Return ``parts`` with those zero-padded along one axis and disjoint concatenated."""
    found: dict[int, list[tuple[int, PadOp]]] = {}
    rest: list[SSAValue] = []
    for part in parts:
        place = _place(part)
        if place is None:
            rest.append(part)
            continue
        axis, low, pad = place
        found.setdefault(axis, []).append((low, pad))
    for axis, placed in found.items():
        placed.sort(key=lambda each: each[0])
        row: list[tuple[int, PadOp]] = []
        end = 0
        for low, pad in placed:
            if row and low < end:
                rest.append(pad.y)
                continue
            row.append((low, pad))
            end = low + shape_of(pad.x)[axis]
        rest.append(_concat(c, axis, row))
    return rest


def _place(part: SSAValue) -> tuple[int, int, PadOp] | None:
    """Return the axis and the offset of a zero-padded ``part``, and its pad; None for others."""
    pad = part.owner
    if not isinstance(pad, PadOp) or DYNAMIC in shape_of(part):
        return None
    low, high, interior = pad.amounts
    moved = [a for a in range(len(low)) if low[a] or high[a]]
    value = pad.value.owner
    if len(moved) != 1 or any(interior) or not isinstance(value, FullOp):
        return None
    return (moved[0], low[moved[0]], pad) if number(value.value) == 0 else None


def _concat(c: Composer, axis: int, row: Sequence[tuple[int, PadOp]]) -> SSAValue:
    """Return the parts of a row concatenated, with zeros in gaps."""
    whole = row[0][1].y
    if len(row) == 1:
        return whole
    pieces: list[SSAValue] = []

    def zeros(count: int) -> None:
        if count:
            sizes = list(shape_of(whole))
            sizes[axis] = count
            pieces.append(c.of(FullOp.of(0, TensorType(element(whole), sizes))))

    end = 0
    for low, pad in row:
        zeros(low - end)
        pieces.append(pad.x)
        end = low + shape_of(pad.x)[axis]
    zeros(shape_of(whole)[axis] - end)
    return c.of(ConcatOp(pieces, axis))
