"""One nest while its loops are written: the extents of loops, and the ranges that levels opened."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.dialects.kernel.levels import MASK
from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.accesses import Memory, lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.within import part
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.transforms.passes import fail

Bounds: TypeAlias = tuple[Index, Index]
Loads: TypeAlias = Callable[[Structured, Sequence[Point]], dict[object, SSAValue]]
"""Returns the operands of an op at points that are in registers, keyed by where they are read."""
Row: TypeAlias = Callable[[Structured, Sequence[int], Sequence[Point]], None]
"""Writes what comes before the remaining loops of a sum, at points that these do not bind yet."""


class Frame:
    """The writer of a nest, its plan, its memory and its loops."""

    def __init__(self, writer: Writer, plan: Plan, loads: Loads = lambda op, points: {}) -> None:
        self.writer, self.plan, self.loads = writer, plan, loads
        self.before_row: Row = lambda op, inner, points: None
        self.memory = Memory(writer, plan)
        self.ranges: dict[tuple[Structured, int], Bounds] = {}
        """The part of an op's loop that runs now, where a level has opened one."""
        self.begins: dict[int, Index] = {}
        """First iterations of shared loops that do not begin at 0; extents count from there."""
        self.locate()
        self.extents: dict[Structured, list[Index]] = {}
        """The extents of the loops of each op."""
        for op in plan.ops:
            shared = self.ends[: plan.levels.shared] if self.extents else []
            own = range(len(shared), len(op.reductions))
            self.extents[op] = [*shared, *(self._extent(op, k) for k in own)]
        for padding in plan.padding.values():
            for dim, bounded in enumerate(padding.bounded):
                if bounded:
                    self.memory.dim(padding.image, dim)

    def locate(self) -> None:
        """Write at the location of all ops."""
        self.writer.location = fuse_locations(o.op.location for o in self.plan.ops)

    @property
    def ends(self) -> list[Index]:
        """The extents of the loops of the first op, the shared ones among them."""
        return self.extents[self.plan.first]

    def _extent(self, op: Structured, k: int) -> Index:
        """Return the extent of loop ``k``, as a number where some operand's type has it."""
        candidates = [
            (access.buffer, dim)
            for access in (*op.inputs, *op.outputs)
            for dim, expr in enumerate(access.exprs)
            if isinstance(expr, AffineDimExpr) and expr.position == k
        ]
        if not candidates:
            fail(op.op, f"no operand tells how often loop {k} runs")
        static = [c for c in candidates if self.memory.is_static(*c)]
        return self.memory.dim(*(static or candidates)[0])

    def whole(self, op: Structured, k: int) -> Bounds:
        """Return the range of a loop, or the part of it that a level has opened."""
        return self.ranges.get((op, k)) or (Index(), self.extents[op][k])

    def lengths(self, op: Structured, k: int) -> tuple[int, int]:
        """Return how often a loop runs at least and at most where ``op`` computes all of it.

        Both are 0 where that is not known.
        """
        partly = k in op.within or (op, k) in self.ranges
        return (0, 0) if partly else self.plan.lengths(op, k)

    def ends_under_mask(self, op: Structured, k: int) -> bool:
        """Whether vectors along a loop, one at a time, always end in one under a mask.

        That one has a lane at least, as the loop runs at least once.
        """
        return op.interleave == 1 and self.lengths(op, k)[0] > 0 and self.masks([op], k)

    def bounds(self, op: Structured, k: int) -> Bounds:
        """Return the range of a loop in which the op has an effect."""
        return self.ranges.get((op, k)) or part(self.writer, op, k, self.whole(op, k))

    @contextmanager
    def opened(self, op: Structured, k: int, bounds: Bounds) -> Generator[None]:
        """Open a part of a loop for as long as the context lasts."""
        before = self.ranges.get((op, k))
        self.ranges[op, k] = bounds
        yield
        del self.ranges[op, k]
        if before is not None:
            self.ranges[op, k] = before

    def masks(self, ops: Sequence[Structured], k: int) -> bool:
        """Whether vectors along loop ``k`` end in one under a mask."""
        return all(op.tail == MASK and self._can_mask(op, k) for op in ops)

    def _can_mask(self, op: Structured, k: int) -> bool:
        """Whether the layouts of all operands allow masks; `check_levels` has checked all else.

        Virtual padding is read under masks of its own where an image says so.
        """

        def lies_well(access: Access) -> bool:
            if (padding := self.plan.padding.get(access.buffer)) is not None:
                return padding.masked
            stored_past = self.plan.buffers[access.buffer].nontemporal
            return lanes_at(access, k, op.width) >= 0 and not stored_past

        return all(map(lies_well, (*op.inputs, *op.outputs)))
