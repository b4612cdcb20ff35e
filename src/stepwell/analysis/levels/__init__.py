"""The attribute `kernel.schedule` as the passes read and write it."""

from stepwell.analysis.levels.nesting import Lanes, Nesting, loop_ops
from stepwell.analysis.levels.reading import (
    check_levels,
    lanes_of,
    nesting_of,
    nestings_of,
    schedule_of,
    sums_in_steps,
)
from stepwell.analysis.levels.writing import levels_of, write_nesting, write_nestings

__all__ = [
    "Lanes",
    "Nesting",
    "check_levels",
    "lanes_of",
    "levels_of",
    "loop_ops",
    "nesting_of",
    "nestings_of",
    "schedule_of",
    "sums_in_steps",
    "write_nesting",
    "write_nestings",
]
