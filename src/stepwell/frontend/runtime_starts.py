"""Blocks of an array that begin at traced indices: ``A[i]``, ``A[i, 1:-1]``, ``A[:, j]``.

They are read and written as dynamic slices, not by one index per element: so a read is a view, and
a write costs only the block.
"""

from __future__ import annotations

from typing import Any

from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import INTEGER, broadcast, cast, lift
from stepwell.frontend.subscripts import BLOCK, Subscript
from stepwell.frontend.tensor import Tensor


def is_block(place: Subscript) -> bool:
    """Whether an index selects a block of several elements by traced scalars, slices and ints."""
    numbers = [
        part for part in map(place.parts.__getitem__, place.fancy) if isinstance(part, Tensor)
    ]
    if not numbers or len(numbers) < len(place.fancy) or any(n.shape for n in numbers):
        return False
    sizes = [len(s) for a, s in enumerate(_spans(place)) if a not in place.fancy]
    return 0 not in place.shape and 0 not in sizes and any(n > 1 for n in sizes)


def is_written_as_block(place: Subscript) -> bool:
    """Whether an index selects a block that can be written as one: slices, scalars, ints."""
    return not place.fancy or is_block(place)


def shape_at(place: Subscript) -> Shape:
    """Return the shape of an index's result."""
    block = place.block()[0].shape if place.fancy else ()
    spans = _spans(place)
    shape: list[int] = []
    for item in place.layout:
        shape += [1] if item is None else block if item == BLOCK else [len(spans[item])]
    return tuple(shape)


def row_of(x: Tensor, place: Subscript) -> tuple[Tensor, list[Any]]:
    """Read the block of ``x`` that contains an index's elements; return the rest of the index.

    The rest contains the slices with steps. An axis with an int or traced scalar keeps size 1.
    """
    spans = _spans(place)
    taken = [a in place.fancy or s.step == 1 for a, s in enumerate(spans)]
    rest = [slice(None) if t else part for t, part in zip(taken, place.parts, strict=True)]
    return _dense(x, place, spans), rest


def _dense(x: Tensor, place: Subscript, spans: list[range]) -> Tensor:
    """Return a block of ``x``, with all elements of axes that are sliced with a step."""
    taken = [a in place.fancy or s.step == 1 for a, s in enumerate(spans)]
    starts = _starts(place, [s if t else range(1) for s, t in zip(spans, taken, strict=True)])
    shape = tuple(
        1 if a in place.fancy else len(spans[a]) if taken[a] else n for a, n in enumerate(x.shape)
    )
    return _read(x, starts, shape)


def _strided(x: Tensor, place: Subscript, spans: list[range]) -> Tensor:
    """Return a block of ``x``; steps are positive."""
    block = _dense(x, place, spans)
    if all(s.step == 1 for s in spans):
        return block
    whole = [range(n) if s.step == 1 else s for s, n in zip(spans, block.shape, strict=True)]
    return x.graph.emit(
        "slice",
        [block],
        [(x.kind, tuple(map(len, whole)))],
        (),
        starts=tuple(s.start for s in whole),
        limits=tuple(s[-1] + 1 for s in whole),
        strides=tuple(s.step for s in whole),
    )[0]


def _starts(place: Subscript, spans: list[range]) -> list[Tensor]:
    return [
        cast(place.parts[a] if a in place.fancy else lift(s.start), INTEGER)
        for a, s in enumerate(spans)
    ]


def _read(x: Tensor, starts: list[Tensor], shape: Shape) -> Tensor:
    axes = tuple(range(x.ndim))
    results = [(x.kind, shape)]
    return x.graph.emit("dynamic_slice", [x, *starts], results, (), axes=axes, sizes=shape)[0]


def write_block(x: Tensor, place: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, of the index's shape, at a block.

    If a traced index is out of range, the write is dropped.
    """
    spans = _spans(place)
    if not all(spans):
        return x
    flipped = tuple(a for a, s in enumerate(spans) if s.step < 0)
    shape = tuple(1 if a in place.fancy else len(s) for a, s in enumerate(spans))
    block = reshape(value, shape)
    if flipped:
        block = x.graph.emit("reverse", [block], [(x.kind, shape)], (), axes=flipped)[0]
        spans = [s if s.step > 0 else s[::-1] for s in spans]
    inside = _inside(x, place)
    if shape == x.shape and inside is None:
        return block
    starts = _starts(place, spans)
    if inside is not None:
        block = e.where(broadcast(inside, shape), block, _strided(x, place, spans))
    operands, steps = [x, block, *starts], tuple(s.step if len(s) > 1 else 1 for s in spans)
    optional = {} if set(steps) == {1} else {"strides": steps}
    return x.graph.emit(
        "dynamic_update_slice",
        operands,
        [(x.kind, x.shape)],
        (),
        axes=tuple(range(x.ndim)),
        **optional,
    )[0]


def _inside(x: Tensor, place: Subscript) -> Tensor | None:
    """Return whether all traced indices are in range; None if that is known."""
    found: Tensor | None = None
    for axis in place.fancy:
        low, high = x.graph.ranges.of(place.parts[axis]) or (0, 0)
        if low >= 0 and high < x.shape[axis]:
            continue
        index = cast(place.parts[axis], INTEGER)
        fits = e.logical_and(e.greater_equal(index, 0), e.less(index, x.shape[axis]))
        found = fits if found is None else e.logical_and(found, fits)
    return found


def _spans(place: Subscript) -> list[range]:
    """Return the range that an index selects of each axis; the whole axis for a traced index."""
    return [range(n)[_slice(p)] for p, n in zip(place.parts, place.shape, strict=True)]


def _slice(part: Any) -> slice:
    if isinstance(part, slice):
        return part
    return slice(part, part + 1) if isinstance(part, int) else slice(None)


def taken_out(shape: Shape, axes: list[int]) -> Shape:
    """Return ``shape`` without ``axes``."""
    return tuple(n for a, n in enumerate(shape) if a not in axes)
