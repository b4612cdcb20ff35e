"""Errors of the interpreter for out-of-bounds accesses in programs on buffers.

The messages are those of the guards in compiled programs (`lowering/emit/guards.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from xdsl.ir import Operation, SSAValue

from stepwell.core.guards import FARTHEST, LONGEST_AXIS, Guard, no_place
from stepwell.dialects.types import called, place_of


def fault(op: Operation, words: tuple[str, ...], *values: int) -> NoReturn:
    """Raise `OutOfBounds` at the location of ``op``; ``values`` go between ``words``."""
    at = place_of(op)
    raise Guard(words, str(at) if at else "").fault([int(v) for v in values])


def place(
    op: Operation, buffer: SSAValue, indices: Sequence[Any], shape: Sequence[int], lanes: int = 1
) -> tuple[Any, ...]:
    """Return ``indices`` if ``lanes`` elements from them on are within ``shape``, else raise.

    Inside of a linalg.generic an index may be an array of those of all its iterations.
    """
    last = len(shape) - 1
    found: list[Any] = []
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        count = lanes if axis == last else 1
        if np.ndim(index) == 0:
            least = most = index = int(index)
        elif np.size(index):
            least, most = int(index.min()), int(index.max())
        else:
            found.append(index)
            continue
        if not 0 <= least <= most <= size - count:
            wrong = least if least < 0 else most
            fault(op, no_place(op.name, called(buffer), axis, count), wrong, size)
        found.append(index)
    return tuple(found)


def check_lane(op: Operation, position: int, lanes: int) -> None:
    """Raise if a vector has no such lane."""
    if not 0 <= position < lanes:
        fault(op, (f"{op.name}: the vector has no lane ", ", it has ", ""), position, lanes)


def check_part(op: Any, axis: int, offset: int, size: int, step: int, room: int) -> None:
    """Raise if a part of an axis is out of bounds."""
    first, last = offset, offset + max(size - 1, 0) * step
    fits = 0 <= first <= room and size >= 0 and (step != 0 or size < 2)
    if not fits or (size and not (first < room and 0 <= last < room)):
        words = f"{op.name}: the part from ", f" on is not within axis {axis} of "
        fault(op, (words[0], f"{words[1]}{called(op.source)}, of size ", ""), offset, room)


def check_sizes(op: Operation, sizes: Sequence[int]) -> None:
    """Raise if sizes are invalid for a buffer."""
    for size in sizes:
        if not 0 <= size <= LONGEST_AXIS:
            fault(op, (f"{op.name}: a size of ", " is not one a buffer has"), size)


def check_equal(op: Operation, a: int, b: int, words: tuple[str, ...]) -> None:
    """Raise if two numbers differ."""
    if a != b:
        fault(op, words, a, b)


def check_loop(op: Operation, low: int, high: int, step: int) -> None:
    """Raise if a loop's step is not positive, or its bounds are too large."""
    if not 1 <= step <= FARTHEST:
        fault(op, (f"{op.name}: it goes on by ", ""), step)
    for bound in (low, high):
        if abs(bound) > FARTHEST:
            fault(op, (f"{op.name}: a bound of ", " is too far away"), bound)
