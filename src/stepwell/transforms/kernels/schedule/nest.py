"""The nest that is chosen for a kernel, before threads share it, and its levels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from stepwell.analysis.levels.building import Inner, in_threads, nest
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Levels, Schedule
from stepwell.transforms.kernels.schedule.vectors import Loops

ELEMENTS_PER_STEP = 1024
"""Elements of a vectorised loop, or of the last of several, in one parallel iteration without inner
loops: enough cache lines of each operand that the loop around them costs nothing."""


@dataclass
class Nest:
    """The choices for one kernel; the vectors of each op are chosen in its `Loops`."""

    function: kernel.FuncOp
    ops: Sequence[Loops]
    shared: int
    """How many of the first loops all ops share."""
    steps: dict[int, int] = field(default_factory=dict[int, int])
    """Iterations of shared loops that run at a time: rows, and columns of a register tile."""
    unroll: Collection[int] = ()
    """The loops of sums that are unrolled."""
    prefetch: int = 0
    """How many steps of a sum before their use operands are prefetched, 0 for none."""
    panels: int = 0
    """Columns of a panel, in a kernel that only copies an operand into panels."""

    @property
    def axis(self) -> int:
        """The shared loop that is vectorised, or -1."""
        axis = self.ops[0].lanes.axis
        return axis if axis < self.shared else -1

    @property
    def inner(self) -> Inner:
        """The levels inside of those of shared loops."""
        lanes = [loops.lanes for loops in self.ops]
        steps = [self.steps.get(k, 1) for k in range(self.shared)]
        if self.axis >= 0 and self.axis not in self.steps:
            steps[self.axis] = lanes[0].width * lanes[0].many
        return Inner(steps, lanes, self.unroll, self.prefetch)

    def set_tile(self, rows: int, columns: int) -> None:
        """Choose a register tile: iterations of the last two shared loops."""
        self.steps |= {self.shared - 2: rows, self.shared - 1: columns}

    def levels(self, threads: Levels = ()) -> Schedule:
        """Return the levels, with others of threads around them."""
        return nest([loops.op for loops in self.ops], self.inner, threads)

    def in_threads(self, count: int, grain: int = 1, pipeline_rows: int = 0) -> Schedule:
        """Return the levels with the first ``count`` loops in parallel."""
        steps = list(self.inner.steps[:count])
        if self.panels:
            steps = [self.panels if k == self.shared - 1 else 1 for k in range(count)]
        elif all(len(loops.extents) == self.shared for loops in self.ops):
            steps = parallel_steps(self.inner.steps, count, self.axis)
        return self.levels(in_threads(steps, grain, pipeline_rows))


def parallel_steps(steps: Sequence[int], count: int, axis: int) -> list[int]:
    """Return the iterations of each parallel loop that one takes of ops without further loops.

    steps : iterations of each shared loop that run at a time
    axis : the shared loop that is vectorised, or -1
    """
    found, last = list(steps[:count]), len(steps) - 1
    for k, step in enumerate(found):
        alone = axis < 0 and k == last > 0 and step == 1
        if k == axis or alone:
            found[k] = -(-ELEMENTS_PER_STEP // step) * step
    return found
