"""The call for which a program is compiled first: which versions of kernels run in it.

The versions that a call runs depend on its sizes alone. So a program that has only these serves all
calls whose sizes are in the same ranges. They are stated on the entry, as conditions on its `?`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp

from stepwell.analysis.constness import MAKER, RESOURCE, attributes_of, entries
from stepwell.analysis.launch_sizes import Launches
from stepwell.analysis.loop_extents import argument_of_extent
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import shape
from stepwell.core.host_schedule import Tree, in_call
from stepwell.dialects import kernel
from stepwell.dialects.checks import write_served
from stepwell.transforms.kernels.schedule.vectors import Range


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
        condition = self.launches.condition(function)
        if condition is not None and not condition.holds(self.sizes):
            return []
        inner = Sizes(function.body.block.args)
        found: list[Range] = []
        limits: list[tuple[Tree, int, int | None]] = []
        for each in ranges:
            place = argument_of_extent(function, each.loop)
            if place is None:
                return None
            size = inner.shape(function.body.block.args[place[0]])[place[1]]
            trees = self.launches.trees(function, size, inner)
            if not trees:
                return None
            numbers = [in_call(tree, self.sizes) or 0 for tree in trees]
            within = {each.low <= n <= each.high for n in numbers}
            if len(within) > 1:
                return None
            found += [each] * within.pop()
            limits += [(t, *_around(n, each)) for t, n in zip(trees, numbers, strict=True)]
        for tree, low, end in limits:
            self._limit(tree, low, end)
        return found

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
