"""Choose how each loop ends whose extent is no multiple of its step.

A shorter tile is more code, and single iterations are slow: the last vector of a row overlaps the
one before where memory allows that iterations run twice, and so do tiles of rows if few run twice.
"""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import (
    KernelLevels,
    Lanes,
    LoopedOp,
    kernel_levels,
    rebuilt,
    schedule_of,
    write_all,
    write_schedule,
)
from stepwell.analysis.levels.repeats import written
from stepwell.analysis.levels.stores import why_not_nontemporal
from stepwell.analysis.levels.tail_rules import TailRules
from stepwell.analysis.levels.tails import emitted, ends_apart, parts_of
from stepwell.analysis.structured import stride
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import (
    BORDER,
    MASK,
    OVERLAP,
    PEEL,
    REPEAT,
    TAILS,
    Schedule,
)
from stepwell.dialects.kernel.versions import VERSIONS, versions_in
from stepwell.transforms.kernels.schedule.tiles import MIN_ROWS_PER_RECOMPUTED
from stepwell.transforms.kernels.schedule.vectors import Range
from stepwell.transforms.kernels.versions import version

OPS_PER_STORE = 3
"""Operations that run in the time of one scalar store."""


def choose_tails(function: kernel.FuncOp, some: Range | None = None, masks: bool = False) -> None:
    """Write the tail policies of a kernel's levels, or of one version of it."""
    if (schedule := schedule_of(function)) is not None and not schedule.has_groups:
        found = with_best_tails(KernelLevels(function, schedule), some, masks)
        write_schedule(function, found)


def with_best_tails(
    levels: KernelLevels, some: Range | None = None, masks: bool = False
) -> Schedule:
    """Return the schedule of a kernel with the tail policies that are best for it.

    some : the range of the extent of a loop
    masks : whether vectors may end under a mask; they may where a level does
    """
    if levels.whole_reads or not levels.lanes:
        return levels.schedule
    vectors = any(lanes.width > 1 for lanes in levels.lanes)
    masks = masks or any(lanes.tail == MASK for lanes in levels.lanes)
    return _Choice(levels, some, masks).made() if vectors or levels.is_tiled else levels.schedule


def other_tails(levels: KernelLevels) -> list[Schedule]:
    """Return a kernel's schedules in which one loop ends by another policy that it can have."""
    if levels.whole_reads or not levels.lanes:
        return []
    rules, shared, found = TailRules(levels), levels.shared, list[Schedule]()
    rows = [k for k in range(shared) if k != levels.axis and levels.step(k) > 1]
    for loop, tail in product(rows, TAILS):
        if tail != levels.tail(loop) and not rules.shared(loop, tail):
            found.append(rebuilt(levels, tails={**levels.tails, loop: tail}))
    axes = {x.axis for x in levels.lanes if x.axis >= 0}
    for axis, tail in product(sorted(axes), (PEEL, OVERLAP)):
        lanes = tuple(x._replace(tail=tail) if x.axis == axis else x for x in levels.lanes)
        said = (
            rules.vectors(tail) if x.axis < shared else rules.own(n, x) for n, x in enumerate(lanes)
        )
        if lanes != levels.lanes and not any(said):
            found.append(rebuilt(levels, lanes=lanes))
    return found


def settle_tails(function: kernel.FuncOp) -> None:
    """Replace what a kernel cannot have on the memory that `bufferize` gives it.

    That is, tail policies by which iterations run twice, and nontemporal stores.
    """
    schedule = schedule_of(function)
    versions = versions_in(function.attributes.get(VERSIONS))
    lists = [schedule, *(each.schedule.data for each in versions)]
    levels = [level for each in lists if each is not None for level in each.all_levels()]
    past = any(level.action("nontemporal") for level in levels)
    if not past and {level.tail for level in levels} <= {PEEL}:
        return
    each = [function, *(version(function, number) for number in range(len(versions)))]
    write_all(function, [_settled(TailRules(kernel_levels(one))) for one in each])


def _settled(rules: TailRules) -> Schedule:
    levels = rules.levels
    found = {k: tail for k, tail in levels.tails.items() if not rules.shared(k, tail)}
    lanes = [_settled_lanes(rules, number) for number in range(len(levels.lanes))]
    return rebuilt(levels, tails=found, lanes=lanes)


def _settled_lanes(rules: TailRules, number: int) -> Lanes:
    levels, op, found = rules.levels, rules.ops[number], rules.levels.lanes[number]
    if found.axis < 0:
        return found
    own = found.axis >= levels.shared
    said = rules.own(number, found) if own else rules.vectors(found.tail)
    kept = (n for n in found.nontemporal if not why_not_nontemporal(levels, op, found, n))
    return found._replace(tail=PEEL if said else found.tail, nontemporal=tuple(kept))


class _Choice:
    """Chooses the tail policies of one list of levels."""

    def __init__(self, levels: KernelLevels, some: Range | None, masks: bool) -> None:
        self.levels, self.some, self.masks = levels, some, masks
        self.rules = TailRules(levels)
        self.long = any(len(loops) > levels.shared for loops in levels.loops)
        """Whether some op has loops besides the shared ones."""

    def made(self) -> Schedule:
        levels, shared = self.levels, self.levels.shared
        rows = [k for k in (shared - 2, shared - 1) if k >= 0 and k != levels.axis]
        tails = {k: self._rows(k) for k in rows if levels.step(k) > 1}
        along = self._along() if levels.axis >= 0 else PEEL
        lanes = tuple(
            x if x.axis < 0 else x._replace(tail=along if x.axis < shared else self._own(n, x))
            for n, x in enumerate(levels.lanes)
        )
        return rebuilt(levels, tails=tails, lanes=lanes)

    def _rows(self, loop: int) -> str:
        """Choose for tiles of rows.

        Those of a copy that is transposed in registers have no fewer rows: lanes of a lower tile
        would be loaded one by one.
        """
        size, unit = self.rules.sizes[0][loop], self.levels.step(loop)
        if size == DYNAMIC_INDEX:
            low = self.some.low if self.some is not None and self.some.loop == loop else 0
            if self.masks and not self.rules.shared(loop, BORDER):
                return BORDER
            return REPEAT if 2 * low >= unit and not self.rules.shared(loop, REPEAT) else PEEL
        few = 0 < -size % unit * MIN_ROWS_PER_RECOMPUTED <= size
        chosen = OVERLAP if few and not self.rules.shared(loop, OVERLAP) else PEEL
        if self.rules.padded and not self.rules.shared(loop, BORDER):
            rest = ends_apart(parts_of(size, unit, chosen))
            peeled = parts_of(size, unit, BORDER, self.rules.reads, loop)
            return BORDER if emitted(peeled) < emitted(rest) else chosen
        return chosen

    def _along(self) -> str:
        """Choose for vectors along the last shared loop.

        The last one overlaps where a partial tile then has fewer vectors and no single elements,
        each of which would need a serial sum of its own.
        """
        levels, axis = self.levels, self.levels.axis
        size, width = self.rules.sizes[0][axis], levels.lanes[0].width
        if self.masks and size == DYNAMIC_INDEX and not self.rules.vectors(MASK):
            return MASK
        if self.rules.vectors(OVERLAP):
            return PEEL
        tiled = levels.tile != (1, 1)
        pays = width > 1 and (self.long or self._pays(axis, size % width))
        return OVERLAP if size == DYNAMIC_INDEX or tiled or pays else PEEL

    def _pays(self, axis: int, rest: int) -> bool:
        """Whether a vector over the tail of a row costs less than ``rest`` single elements.

        It does, unless results are scattered: then each lane is stored alone, one in each cycle, in
        which three other operations are done.
        """
        if axis < self.levels.parallel:
            return False
        ops = self.rules.ops
        work, alone = sum(map(_operations, ops)), sum(_scattered(op, axis) for op in ops)
        return alone * (self.levels.lanes[0].width - rest) * OPS_PER_STORE <= (rest - 1) * work

    def _own(self, number: int, lanes: Lanes) -> str:
        """Choose for vectors along a loop of one op."""
        if lanes.nontemporal or lanes.tail == MASK:
            return lanes.tail
        known = self.rules.sizes[number][lanes.axis] != DYNAMIC_INDEX
        if self.masks and not known and not self.rules.own(number, lanes._replace(tail=MASK)):
            return MASK
        return PEEL if self.rules.own(number, lanes._replace(tail=OVERLAP)) else OVERLAP


def _operations(op: LoopedOp) -> int:
    return len(op.inputs) + len(op.body.block.ops) if isinstance(op, linalg.GenericOp) else 0


def _scattered(op: LoopedOp, axis: int) -> int:
    """Return how many results are not contiguous along a loop."""
    return sum(stride(index, axis) not in (0, 1) for _, index in written(op))
