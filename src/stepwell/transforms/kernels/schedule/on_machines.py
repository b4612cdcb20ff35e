"""The choices of `schedule` that depend on the machine alone, for `stepwell machine`."""

from __future__ import annotations

from collections.abc import Iterator

from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule import Schedule
from stepwell.transforms.kernels.schedule.beyond import reads_in_place, stays
from stepwell.transforms.kernels.schedule.block_sizes import (
    MAX_SKINNY_ROWS,
    MEMORY_BOUND_ROWS,
    depth_of,
    held_and_computing,
    strips_from,
    usual_tile,
)
from stepwell.transforms.kernels.schedule.reasons import spell_bytes

Choice = tuple[str, str, str]
"""A name, a value, and its meaning."""


def schedule_for(machine: Machine) -> Schedule:
    """Return the pass with the options of a machine."""
    return Schedule(machine=str(machine.options()["machine"]))


def choices_on(machine: Machine) -> Iterator[Choice]:
    """Yield the sizes that `schedule` derives from a machine for products of f32."""
    if not machine.l2:
        yield "blocks", "none", "the target has no scratch to pack operands into"
        return
    tile = usual_tile(machine)
    size = f"{tile[0]} x {tile[1]} x {machine.full_lanes(32)}"
    yield "tile", size, "fastest register tile: rows x vectors x lanes"
    yield "depth", str(depth_of(machine)), "maximum depth of a block that packs an operand"
    in_place = spell_bytes(reads_in_place(machine))
    yield "in place", in_place, "largest operand that is read without packing"
    held, step = held_and_computing(machine)
    near = "yes" if held <= step else "no"
    why = f"a line beyond L2 holds a buffer {held:.0f} cycles, a step of a tile takes {step:.0f}"
    yield "prefetches", near, f"and packs in the first tile: {why}"
    for rows in (MEMORY_BOUND_ROWS, MAX_SKINNY_ROWS):
        least = spell_bytes(strips_from(rows, False, machine))
        yield f"streams {rows} rows", least, "or more of the other operand are read in strips"
    yield "stays", spell_bytes(stays(machine)), "of an operand stay in the caches between calls"
