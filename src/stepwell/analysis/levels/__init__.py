"""The attribute `kernel.schedule` as the passes read and build it."""

from stepwell.analysis.levels.building import rebuilt
from stepwell.analysis.levels.checking import check_levels
from stepwell.analysis.levels.kernel_ops import LoopedOp, loop_ops, loops_of
from stepwell.analysis.levels.queries import (
    NO_LANES,
    KernelLevels,
    Lanes,
    kernel_levels,
    levels_of_versions,
    schedule_of,
    write_all,
    write_schedule,
)

__all__ = [
    "NO_LANES",
    "KernelLevels",
    "Lanes",
    "LoopedOp",
    "check_levels",
    "kernel_levels",
    "levels_of_versions",
    "loop_ops",
    "loops_of",
    "rebuilt",
    "schedule_of",
    "write_all",
    "write_schedule",
]
