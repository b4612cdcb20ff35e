"""The rules for the tail policies of levels: one that has no effect, or cannot be, is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from stepwell.analysis.levels.kernel_ops import LoopedOp, op_extents
from stepwell.analysis.levels.legality import refuse
from stepwell.analysis.levels.masks import is_harmless, no_mask, unknown_borders
from stepwell.analysis.levels.queries import KernelLevels, Lanes
from stepwell.analysis.levels.repeats import Repeats
from stepwell.analysis.levels.tails import PaddedRead, within_border
from stepwell.analysis.structured import extents, in_panels, indices, shape
from stepwell.dialects.kernel.levels import BORDER, MASK, OVERLAP, PEEL, REPEAT
from stepwell.dialects.kernel.sharing import is_border

TORN = "vectors that overlap would cross the ends of panels"
TWICE = "some iterations would run twice, and read what the first run has overwritten"


class TailRules:
    """The facts of a kernel that decide which tail policies its levels may have."""

    def __init__(self, levels: KernelLevels) -> None:
        self.levels, self.ops, function = levels, levels.ops, levels.function
        self.sizes = [op_extents(op) for op in self.ops]
        self.repeats = Repeats(function)
        borders: dict[SSAValue, linalg.GenericOp] = {
            op.results[0] if op.results else op.outputs[0]: op
            for op in function.body.block.ops
            if isinstance(op, linalg.GenericOp) and is_border(op)
        }
        self.padded = bool(borders)
        self.masked = self.padded and bool(unknown_borders(self.ops[0]))
        """Whether masks tell where the padding of images is."""
        self.reads = list(_padded_reads(self.ops, borders))

    def shared(self, loop: int, tail: str) -> str:
        """Return why a tiled loop that all ops share cannot end so; "" if it can."""
        unit, size = self.levels.step(loop), self.sizes[0][loop]
        known = size != DYNAMIC_INDEX
        if unit == 1 or tail == PEEL:
            return "its steps are single iterations" if tail != PEEL else ""
        if tail == REPEAT and (known or loop != self.levels.shared - 2):
            return "the last row is repeated only in tiles of rows whose number is not known"
        if tail == BORDER and not known and self.masked and loop == self.levels.shared - 2:
            return self._rows_at_border(loop)
        if tail in (BORDER, OVERLAP) and not known:
            return "the extent of the loop is not known"
        if tail == BORDER:
            outermost = loop == self.levels.shared - 2 and loop >= self.levels.parallel
            inside = within_border(size, unit, self.reads, loop) if self.padded else (0, 0)
            if not outermost or inside[1] == 0:
                return "no whole steps of rows in one thread lie within a border"
        if tail == OVERLAP and (size < unit or size % unit == 0):
            return f"{size} iterations leave no tail, or are less than a step"
        return TWICE if tail in (OVERLAP, REPEAT) and not self.repeats.allowed() else ""

    def _rows_at_border(self, loop: int) -> str:
        """Return why tiles of rows, of unknown number, cannot begin at borders; "" if they can."""
        if loop < self.levels.parallel:
            return "rows at a border run in one thread only"
        if not all(map(is_harmless, self.ops)):
            return "what it computes in rows that have no effect may fail"
        return "" if self.repeats.allowed() else TWICE

    def vectors(self, tail: str) -> str:
        """Return why a vectorised loop that all ops share cannot end so; "" if it can."""
        levels = self.levels
        if tail not in (PEEL, OVERLAP, MASK):
            return f"vectors do not know '{tail}'"
        if tail == PEEL:  # ops without vectors too, which may have no loop
            return ""
        loop, width, size = levels.axis, levels.lanes[0].width, self.sizes[0][levels.axis]
        if tail == MASK:
            if loop != levels.shared - 1:
                return "only vectors along the last shared loop end under a mask"
            said = (no_mask(levels, n, x) for n, x in enumerate(levels.lanes))
            return next(filter(None, said), "")
        if size == DYNAMIC_INDEX:
            if loop != levels.shared - 1 or width == 1 or self.padded:
                return "vectors overlap along the last shared loop only if its extent is not known"
        elif size < width or size % levels.step(loop) == 0:
            return f"{size} iterations leave no tail, or are less than a vector"
        if width == 1 or any(map(self._is_torn, self.ops, [levels.lanes[0]] * len(self.ops))):
            return TORN
        return "" if self.repeats.allowed() else TWICE

    def _is_torn(self, op: LoopedOp, lanes: Lanes) -> bool:
        """Whether the last vector, if it overlaps another, crosses the end of a panel."""
        axis, width, *_ = lanes
        found = indices(op) if isinstance(op, linalg.GenericOp) else []
        panels = [each and each[1] for each in (in_panels(index, axis) for index in found)]
        size = op_extents(op)[axis]
        if size == DYNAMIC_INDEX or any(panels[len(op.inputs) :]):
            return any(panels)
        return any(each and (size - width) // each != (size - 1) // each for each in panels)

    def own(self, number: int, lanes: Lanes) -> str:
        """Return why a vectorised loop of one op cannot end so; "" if it can."""
        op, (axis, width, _, tail, _) = self.ops[number], lanes
        if tail == PEEL:
            return ""
        if tail == MASK:
            return no_mask(self.levels, number, lanes)
        if tail != OVERLAP or width == 1:
            return f"a loop of one op that is not in vectors does not know '{tail}'"
        if not self.levels.loops[number][axis]:
            return "iterations of a sum do not overlap"
        size = self.sizes[number][axis]
        if size != DYNAMIC_INDEX and (size < width or size % width == 0):
            return f"{size} iterations leave no tail, or are less than a vector"
        if self._is_torn(op, lanes):
            return TORN
        return "" if self.repeats.allowed_in(op) else TWICE


def check_tails(levels: KernelLevels) -> None:
    """Check the tail policies of a kernel's levels."""
    lanes = [(n, x) for n, x in enumerate(levels.lanes) if x.tail != PEEL]
    if not levels.tails and not lanes:
        return
    if levels.whole_reads:
        refuse("a sum in steps or in parts peels its tails")
    rules = TailRules(levels)
    for loop, tail in levels.tails.items():
        _refuse_if(loop, tail, rules.shared(loop, tail))
    for number, each in lanes:
        shared = each.axis < levels.shared
        said = rules.vectors(each.tail) if shared else rules.own(number, each)
        _refuse_if(each.axis, each.tail, said)


def _refuse_if(loop: int, tail: str, said: str) -> None:
    if said:
        refuse(f"d{loop} cannot '{tail}': {said}")


def _padded_reads(
    ops: Sequence[LoopedOp], borders: dict[SSAValue, linalg.GenericOp]
) -> Iterator[PaddedRead]:
    for op in ops:
        if not isinstance(op, linalg.GenericOp):
            continue
        sizes = [1 if size == DYNAMIC_INDEX else size for size in extents(op)]
        for value, index in zip(op.inputs, indices(op), strict=False):
            if (border := borders.get(value)) is not None:
                at = [0] * len(border.iterator_types)
                offsets = [expr.eval(at, ()) for expr in indices(border)[-1]]
                yield PaddedRead(index, offsets, shape(border.inputs[0]), sizes)
