"""The choices for a contraction in blocks, in strips or in tiles, and the levels they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stepwell.analysis.levels import Lanes
from stepwell.analysis.levels.building import Inner, around, block, in_threads, nest, strip
from stepwell.analysis.structured import in_panels
from stepwell.dialects.kernel.levels import FOR, Action, Level, Levels, Schedule
from stepwell.transforms.kernels.schedule.tiles import PREFETCH_STEPS
from stepwell.transforms.kernels.schedule.vectors import Loops


@dataclass(frozen=True)
class Contraction:
    """The choices for a kernel with one large contraction."""

    width: int
    """Lanes of its vectors, along the columns."""
    tile: tuple[int, int]
    """Rows and vectors that stay in registers."""
    block: tuple[int, ...] = ()
    """Sizes of a block: of the last shared loops, columns last, and the depth; () without blocks.
    """
    strip: tuple[int, int] | None = None
    """Columns and depth of a strip, where the operand is read in place once and there is no block.
    """
    pack_columns: str = ""
    """How a block packs the operand of its columns: plainly, as ``first`` or as ``dot``."""
    pack_rows: str | None = None
    """How the operand of the rows is packed; None if it is read in place."""
    prefetch: bool = False
    in_place: float = 0.0
    """The part of the time in place that blocks must not exceed; 0 if they are settled."""
    mirror: bool = False
    """Whether blocks on and below the diagonal are computed, and the others are copied."""
    taller: Contraction | None = None
    """The choice with a tile of more rows and fewer vectors, where the cost model may prefer it."""

    def levels(self, ops: Sequence[Loops], shared: int) -> Schedule:
        """Return the levels of a kernel with these ops."""
        found, column = next(loops for loops in ops if not all(loops.parallel)), shared - 1
        tile = self.tile[0], self.tile[1] * self.width
        steps = [*[1] * (shared - 2), *tile]
        inner, kernel_ops = (
            Inner(steps, [Lanes(column, self.width)] * len(ops)),
            [x.op for x in ops],
        )
        depth = max(k for k, parallel in enumerate(found.parallel) if not parallel)
        if self.block:
            return around(kernel_ops, inner, self._block(found, shared, tile, depth))
        if self.strip:
            columns, deep = self.strip
            far = (Action("prefetch"),) if self.prefetch else ()
            split = Level(FOR, depth, deep, actions=(*self._rows_packed(found, column), *far))
            return around(kernel_ops, inner, strip(shared, columns, tile, split))
        inner = Inner(steps, inner.lanes, prefetch=PREFETCH_STEPS if self.prefetch else 0)
        return nest(kernel_ops, inner, in_threads(steps))

    def _block(self, found: Loops, shared: int, tile: tuple[int, int], depth: int) -> Levels:
        *lengths, deep = self.block
        column, first = shared - 1, shared - len(lengths)
        sizes = [*[1] * first, *lengths]
        actions = list(self._columns_packed(found, range(first, column), column, tile[1]))
        rows = tuple(self._rows_packed(found, column))
        lines = [k for k in range(first, column - 1) if sizes[k] > 1]
        if not lines:
            actions = sorted((*actions, *rows), key=lambda action: action.number or 0)
        if self.prefetch:
            actions.append(Action("prefetch"))
        split = Level(FOR, depth, deep, actions=tuple(actions))
        packs = {lines[-1]: rows} if lines else {}
        return block(sizes, tile, split, packs, mirror=self.mirror)

    def _columns_packed(
        self, found: Loops, rows: range, column: int, width: int
    ) -> Iterator[Action]:
        """Yield the action that packs the operand of the columns, if it is not in panels."""
        for number, _, index, dims in found.operands:
            if column in dims and dims.isdisjoint(rows):
                ready = in_panels(index, column)
                if self.pack_columns == "dot" or ready is None or ready[1] != width:
                    yield Action("pack", number, self.pack_columns)

    def _rows_packed(self, found: Loops, column: int) -> Iterator[Action]:
        """Yield the action that packs the operand of the rows, if it is packed."""
        for number, _, _, dims in found.operands if self.pack_rows is not None else ():
            if column - 1 in dims:
                yield Action("pack", number, self.pack_rows or "")


def as_deep(chosen: Contraction, other: Contraction) -> Contraction:
    """Return a choice whose blocks, also of a taller tile, are as deep as those of another."""
    if chosen.taller is not None and other.taller is not None:
        chosen = replace(chosen, taller=as_deep(chosen.taller, other.taller))
    if not chosen.block or not other.block:
        return chosen
    return replace(chosen, block=(*chosen.block[:-1], other.block[-1]))
