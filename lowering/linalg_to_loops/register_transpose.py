"""Transpose operands that cross the vectors of a register tile through registers.

A tile with as many rows as a vector has lanes reads such an operand in contiguous vectors, one for
each lane, and transposes the block; otherwise every lane would be loaded alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.accesses import Memory, lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.writer import Writer


def read_transposed(
    memory: Memory, access: Access, points: Sequence[Point], row: int, cache: dict[object, SSAValue]
) -> None:
    """Read ``access`` at ``points`` into ``cache``, if it is to be transposed through registers."""
    first = points[0]
    width = first.width
    if width < 2 or not 0 <= row != first.axis or row >= len(first.indices):
        return
    if lanes_at(access, first.axis, width) >= 0 or lanes_at(access, row, width) != width:
        return
    columns: dict[object, list[Point]] = {}
    for point in points:
        if point.axis != first.axis or point.width != width:
            return
        at = point.indices[point.axis]
        assert at is not None
        columns.setdefault(at.key, []).append(point)
    if any(len(rows) != width for rows in columns.values()):
        return
    for rows in columns.values():
        start = rows[0].indices[row]
        assert start is not None
        lanes = [rows[0].lane(k).bind(row, start, width) for k in range(width)]
        transposed = transpose_block(
            memory.writer, [memory.read(access, lane, {}) for lane in lanes]
        )
        for point, value in zip(rows, transposed, strict=True):
            cache[memory.gathered(access, point)] = value


def transpose_block(writer: Writer, rows: list[SSAValue]) -> list[SSAValue]:
    """Transpose a square of lanes: in each step, pairs of rows exchange every second block."""
    width = len(rows)
    step = width // 2
    while step:
        first = [n if n & step == 0 else n - step + width for n in range(width)]
        second = [n + step if n & step == 0 else n + width for n in range(width)]
        rows = [
            writer.shuffle(rows[n], rows[n + step], first, rows[n].name_hint)
            if n & step == 0
            else writer.shuffle(rows[n - step], rows[n], second, rows[n].name_hint)
            for n in range(width)
        ]
        step //= 2
    return rows
