"""The storage of a kernel's values while a group computes: memory, local memory or registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.ir import Attribute, Block, SSAValue

from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.lowering.nests.scope import Scope

SPACE = "kernel.space"
"""Attribute of memory of a group: the lanes that share it."""
LOCAL, LANES = "local", "lanes"
"""Shared by all lanes of the group; or private to each lane, whose number is the first index."""


@dataclass(frozen=True)
class Tile:
    """A part of a buffer in local memory, and the index at which it begins in each dimension."""

    memory: SSAValue
    begins: tuple[Index, ...]


@dataclass
class Places:
    """Reads and writes the operands of ops at points."""

    writer: Writer
    group: Block | None = None
    """The body of a group; its allocations are at its beginning."""
    tiles: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    """Buffers of the kernel of which a group holds only its part."""
    staged: dict[tuple[Structured, int], Tile] = field(
        default_factory=dict[tuple[Structured, int], Tile]
    )
    """The staged copy of an input, by op and number."""
    owned: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Buffers private to lanes: each lane reads only the points that it has written."""
    registers: dict[tuple[SSAValue, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int], SSAValue]
    )
    """Values that one op passes to the next, by buffer and point, where one lane runs both."""
    passing: frozenset[SSAValue] = frozenset()
    """The buffers that are passed so."""

    def begin_group(self) -> None:
        """Begin a group in the block that is open: it has no memory yet."""
        self.group = self.writer.block
        self.tiles.clear()
        self.owned.clear()

    def allocate(
        self, shape: Sequence[int], element: Attribute, space: str, hint: str | None
    ) -> SSAValue:
        """Allocate memory of a group."""
        assert self.group is not None
        op = memref.AllocaOp.get(element, 64, shape)
        op.attributes[SPACE] = StringAttr(space)
        op.location = self.writer.location
        op.memref.name_hint = hint
        if (first := self.group.first_op) is not None:
            self.group.insert_op_before(op, first)
        else:
            self.group.add_op(op)
        return op.memref

    def read(
        self,
        op: Structured,
        access: Access,
        number: int,
        scope: Scope,
        points: tuple[Point, Point],
        loaded: dict[object, SSAValue],
    ) -> SSAValue:
        """Return the operand of an op at a point.

        number : the input's number, -1 for the old value of an output
        points : the point, and the same point with every index clamped to its loop
        loaded : values loaded before, keyed by buffer and indices
        """
        hint = op.body.args[number].name_hint if op.body is not None and number >= 0 else None
        if not isinstance(access.buffer.type, MemRefType):
            return access.buffer
        raw, safe = points
        if (found := self.registers.get((access.buffer, raw.slot))) is not None:
            return found
        if access.buffer in self.owned:
            return self.writer.load(
                self.owned[access.buffer], self._own(scope, raw), raw.width, hint
            )
        tile = self.staged.get((op, number)) or self.tiles.get(access.buffer)
        point = raw if tile else safe
        wide = lanes_at(access, raw.axis, raw.width) if raw.width else 0
        if wide < 0:
            lanes = [
                self.read(op, access, number, scope, (raw.lane(n), safe.lane(n)), loaded)
                for n in range(raw.width)
            ]
            return self.writer.assemble(lanes)
        memory, at = self._place(access, tile, point)
        key = memory, tuple(i.key for i in at), wide
        if (value := loaded.get(key)) is None:
            value = loaded[key] = self.writer.load(memory, at, wide, hint)
        return value

    def keep(self, access: Access, scope: Scope, point: Point, value: SSAValue) -> bool:
        """Keep a result in registers of the lane if later ops read it there; return whether so."""
        if access.buffer in self.passing:
            self.registers[access.buffer, point.slot] = value
        elif access.buffer in self.owned:
            value = self.writer.broadcast(value, point.width)
            self.writer.store(value, self.owned[access.buffer], self._own(scope, point))
        else:
            return False
        return True

    def write(self, access: Access, point: Point, value: SSAValue) -> None:
        """Store a result of an op to memory."""
        value = self.writer.broadcast(value, point.width)
        if point.width and lanes_at(access, point.axis, point.width) <= 0:
            for n in range(point.width):
                self.write(access, point.lane(n), self.writer.lane(value, n))
            return
        memory, at = self._place(access, self.tiles.get(access.buffer), point)
        self.writer.store(value, memory, at)

    def _own(self, scope: Scope, point: Point) -> list[Index]:
        slot = [Index.of(point.slot), *([Index()] if point.width else [])]
        return [scope.lane or Index(), *slot]

    def _place(
        self, access: Access, tile: Tile | None, point: Point
    ) -> tuple[SSAValue, list[Index]]:
        at = [self.writer.affine(e, point.indices) for e in access.exprs]
        if tile is None:
            return access.buffer, at
        return tile.memory, [i - b for i, b in zip(at, tile.begins, strict=True)]
