"""The choices of `schedule` that depend on the machine alone, for `stepwell machine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule import Schedule
from stepwell.transforms.kernels.schedule.beyond import reads_in_place, stays
from stepwell.transforms.kernels.schedule.block_sizes import (
    MAX_SKINNY_ROWS,
    MEMORY_BOUND_ROWS,
    NARROW_TILES,
    TILES,
    depth_of,
    strips_from,
)
from stepwell.transforms.kernels.schedule.reasons import spell_bytes

Choice = tuple[str, str, str]
"""A name, a value, and its meaning."""


def schedule_for(machine: Machine) -> Schedule:
    """Return the pass with the options of a machine."""
    options = machine.options()
    known = {f.name: options[f.name] for f in fields(Schedule) if f.name in options}
    return Schedule(**known)


def choices_on(machine: Machine) -> Iterator[Choice]:
    """Yield the sizes that `schedule` derives from a machine for products of f32."""
    found = schedule_for(machine)
    vectors, l2 = found.vectors(), found.l2
    if not l2:
        yield "blocks", "none", "the target has no scratch to pack operands into"
        return
    tile = next(iter(TILES if vectors.registers >= 32 else NARROW_TILES))
    lanes = min(vectors.bits // 32, vectors.lanes)
    yield "tile", f"{tile[0]} x {tile[1]} x {lanes}", "rows by vectors by lanes that are fastest"
    yield "depth", str(depth_of(vectors, l2)), "of a block that packs an operand, at most"
    yield "in place", spell_bytes(reads_in_place(l2)), "of an operand are read where they lie"
    taken = vectors.consumes(tile[0], lanes * 4)
    near = "yes" if taken <= vectors.far_bytes else "no"
    why = f"a tile takes {taken:.1f} bytes a cycle, {vectors.far_bytes} come from beyond L2"
    yield "prefetches", near, f"and packs in the first tile: {why}"
    for rows in (MEMORY_BOUND_ROWS, MAX_SKINNY_ROWS):
        least = spell_bytes(strips_from(rows, False, vectors, l2))
        yield f"streams {rows} rows", least, "or more of the other operand, in strips"
    yield "stays", spell_bytes(stays(vectors, l2)), "of an operand from call to call"
