"""Write the copies that remain at an op in an order in which none overwrites another's source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.copies import Kind
from stepwell.lowering.bufferize.views import (
    Slice,
    Steps,
    disjoint,
    inverse,
    join,
    part,
    same_or_apart,
)
from stepwell.lowering.bufferize.writer import HostWriter
from stepwell.transforms.passes import remark


class Row(NamedTuple):
    """A tensor to be copied from a source to a target place; ``why`` is for the remark."""

    value: SSAValue
    source: tuple[Storage, Steps]
    target: tuple[Storage, Steps]
    why: str


def write_copies(writer: HostWriter, at: Operation, kind: Kind) -> None:
    """Write the remaining copies of one kind at an op as a parallel copy."""
    rows: list[Row] = []
    for copy in writer.analysis.left(at):
        if copy.kind == kind:
            _, target = writer.analysis.interference.ends(copy)
            storage, steps = writer.places.of(copy.value)
            if all(isinstance(step, Slice) for step in copy.seen):
                steps = join(steps, copy.seen)
            else:  # no view exists, as the layout is not contiguous: copy before the reshape
                back = inverse(copy.seen)
                assert back is not None, "a reshape has an inverse"
                target = target[0], join(target[1], back)
            rows.append(Row(copy.value, (storage, steps), target, copy.why))
    write_rows(writer, rows, "two carried tensors are exchanged")


def write_rows(writer: HostWriter, rows: Sequence[Row], why: str) -> None:
    """Write a parallel copy in sequence; a temporary breaks each cycle.

    A row whose target may overlap its own source is a cycle of one. The loop ends after at most
    two rounds a row: a round writes a row, or, where every row overwrites a source, gives a
    temporary to a source that is overwritten. No row overwrites a temporary.

    why : the reason for a cycle of several rows, for the remark
    """
    left = list(rows)
    while left:
        over = {r: next((o for o in left if _overwrites(writer, r, o)), None) for r in left}
        if (row := next((r for r, other in over.items() if other is None), None)) is None:
            _break_cycle(writer, left, over, why)
            continue
        left.remove(row)
        if row.why or row.source[0].members:
            _remark(writer, row)
        _write(writer, row)


def _break_cycle(
    writer: HostWriter, left: list[Row], over: Mapping[Row, Row | None], why: str
) -> None:
    """Copy a source of a cycle of rows, each of which overwrites the next, to a temporary."""
    row, passed = left[0], set[Row]()
    while row not in passed:  # at most once around all rows
        passed.add(row)
        other = over[row]
        assert other is not None
        row = other
    aside = writer.places.storage(row.value)
    aside.beside = writer.source
    if over[row] is row:
        why = "its new place may overlap it"
    to_aside = row._replace(target=(aside, ()), why=why)
    _remark(writer, to_aside)
    _write(writer, to_aside)
    left[left.index(row)] = row._replace(source=(aside, ()), why="")


def _overwrites(writer: HostWriter, row: Row, other: Row) -> bool:
    """Whether a copy overwrites the source of another, or its own in part."""
    return any(
        not (
            same_or_apart(writer.sizes, over, read)
            if row is other
            else disjoint(writer.sizes, part(over), part(read))
        )
        for source in _ends(writer, *other.source)
        for over, read in writer.analysis.interference.shared(row.target, source)
    )


def _ends(writer: HostWriter, source: Storage, steps: Steps) -> list[tuple[Storage, Steps]]:
    """Return a place with those outside of a loop that it may be in a copy after the loop."""
    loop, found = writer.analysis.loops.get(writer.source), [(source, steps)]
    if loop is not None and source in loop.carried:
        ends = loop.ends[loop.carried.index(source)]
        found += [writer.places.root(end, steps) for end in ends]
    return found


def _remark(writer: HostWriter, row: Row) -> None:
    name = f"%{row.value.name_hint}" if row.value.name_hint else "a tensor"
    remark(writer.source, f"{name} is copied because {row.why or 'its place is taken'}")


def _write(writer: HostWriter, row: Row) -> None:
    """Append a copy; xDSL wants equal shapes, so the source is cast to that of the target."""
    buffer, into = writer.memory(*row.source), writer.memory(*row.target)
    has, goal = buffer.type, into.type
    assert isinstance(has, MemRefType) and isinstance(goal, MemRefType)
    buffer = writer.cast(buffer, MemRefType(has.element_type, goal.get_shape(), has.layout))
    writer.put(memref.CopyOp(buffer, into))
