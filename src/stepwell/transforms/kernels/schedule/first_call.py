"""The call for which a program is compiled first: which versions of kernels run in it.

The versions that a call runs depend on its sizes alone. So a program that has only these serves all
calls whose sizes are in the same ranges. They are stated on the entry, as conditions on its `?`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, ModuleOp, UnitAttr

from stepwell.analysis.constness import MAKER, RESOURCE, attributes_of, entries
from stepwell.analysis.launch_sizes import Launches
from stepwell.analysis.levels import kernel_levels
from stepwell.analysis.loop_extents import argument_of_extent
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import shape
from stepwell.core.host_schedule import Tree, in_call
from stepwell.dialects import kernel
from stepwell.dialects.checks import write_served
from stepwell.dialects.kernel.levels import OVERLAP
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import FIRST_FITS, VERSIONS
from stepwell.transforms.kernels.schedule.vectors import MIN_LANES, Range

LONGEST = 2**62
"""A length that no loop has."""


@dataclass
class FirstCall:
    """The sizes of a call, and how far they may change until other versions run."""

    entry: func.FuncOp
    launches: Launches
    sizes: Sequence[int]
    """The size of each `?` of the arguments."""
    limits: dict[Tree, tuple[int, int | None]] = field(
        default_factory=dict[Tree, tuple[int, int | None]]
    )
    """For each size of a launch its least value, and the least that is too large, if any."""

    @classmethod
    def of(cls, module: ModuleOp, call: str) -> FirstCall | None:
        """Return the call with arguments of these shapes, None if they are not the entry's."""
        found = [each for each in entries(module) if not each.sym_name.data.endswith(MAKER)]
        if len(found) != 1:
            return None
        entry = found[0]
        given = [[int(n) for n in each.split("x") if n] for each in call.split(",")]
        inputs = [a for k, a in enumerate(entry.args) if RESOURCE not in attributes_of(entry, k)]
        types = [shape(argument) for argument in inputs]
        if [len(each) for each in types] != [len(each) for each in given]:
            return None
        pairs = zip(chain(*types), chain(*given), strict=True)
        return cls(entry, Launches(module), [n for known, n in pairs if known == DYNAMIC_INDEX])

    def fitting(self, function: kernel.FuncOp, ranges: Sequence[Range]) -> list[Range] | None:
        """Return the ranges that the lengths in all launches of a kernel are in.

        Return None if these are not known before the call, or differ between launches. A kernel
        that is not launched has none; its own levels are chosen, by which weights are laid out.
        """
        if not self._is_launched(function):
            return []
        inner = Sizes(function.body.block.args)
        found: list[Range] = []
        limits: list[tuple[Tree, int, int | None]] = []
        for each in ranges:
            lengths = self._lengths(function, each.loop, inner)
            if not lengths:
                return None
            within = {each.low <= n <= each.high for _, n in lengths}
            if len(within) > 1:
                return None
            found += [each] * within.pop()
            limits += [(tree, *_around(n, each)) for tree, n in lengths]
        for tree, low, end in limits:
            self._limit(tree, low, end)
        return found

    def shorten(self, function: kernel.FuncOp) -> None:
        """Leave out how tiles of several rows run that are not as long as those of the call.

        Rows shorter than a vector run in vectors of fewer lanes, with a text for each number of
        lanes, which has all rows of a tile. Single rows are so little text that they stay.
        """
        levels = kernel_levels(function)
        axis = levels.axis
        if VERSIONS in function.attributes or levels.blocks or axis < 0 or levels.tile[0] < 2:
            return
        if not self._is_launched(function):
            return
        width = levels.lanes[0].width
        if levels.lanes[0].tail != OVERLAP or width < MIN_LANES:
            return
        lengths = self._lengths(function, axis, Sizes(function.body.block.args))
        ends = [0, *_lanes(width), LONGEST + 1]
        fits = [(a, b - 1) for a, b in pairwise(ends) if all(a <= n < b for _, n in lengths)]
        schedule = function.attributes.get(SCHEDULE)
        if not lengths or not fits or not isinstance(schedule, kernel.ScheduleAttr):
            return
        ((low, high),) = fits
        version = kernel.VersionAttr.of(axis, low, high, schedule)
        function.attributes[VERSIONS] = ArrayAttr([version])
        function.attributes[FIRST_FITS] = UnitAttr()
        for tree, _ in lengths:
            self._limit(tree, low, high + 1 if high < LONGEST else None)

    def _is_launched(self, function: kernel.FuncOp) -> bool:
        """Whether the call may take the branches in which a kernel is launched."""
        condition = self.launches.condition(function)
        return condition is None or condition.holds(self.sizes)

    def _lengths(self, function: kernel.FuncOp, loop: int, inner: Sizes) -> list[tuple[Tree, int]]:
        """Return how often a loop runs in each launch, as a tree and in the call.

        Return none if it is not known before the call.
        """
        place = argument_of_extent(function, loop)
        if place is None:
            return []
        size = inner.shape(function.body.block.args[place[0]])[place[1]]
        trees = self.launches.trees(function, size, inner) or []
        return [(tree, in_call(tree, self.sizes) or 0) for tree in trees]

    def _limit(self, tree: Tree, low: int, end: int | None) -> None:
        least, most = self.limits.get(tree, (low, end))
        ends = [n for n in (most, end) if n is not None]
        self.limits[tree] = max(least, low), min(ends, default=None)

    def write_served(self) -> None:
        """State on the entry which sizes its kernels serve; nothing if they serve all."""
        conditions: list[Tree] = []
        for tree, (low, end) in self.limits.items():
            if isinstance(tree, int):  # it is the same in every call
                continue
            conditions += [("<=", low, tree)] if low > 0 else []
            conditions += [("<", tree, end)] if end is not None else []
        write_served(self.entry, conditions)


def _around(number: int, some: Range) -> tuple[int, int | None]:
    """Return the lengths that a range treats as it does this one: the least, and the end."""
    if number < some.low:
        return 0, some.low
    if number > some.high:
        return some.high + 1, None
    return some.low, some.high + 1


def _lanes(width: int) -> list[int]:
    """Return the lanes of the vectors in which short rows run, the fewest first.

    >>> _lanes(16)
    [4, 8, 16]
    """
    return [*(_lanes(width // 2) if width >= 2 * MIN_LANES else []), width]
