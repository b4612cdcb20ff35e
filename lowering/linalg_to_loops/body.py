"""The scalar body of a structured op, written once for each element or vector.

A value that is equal in all lanes stays a scalar until it is combined with a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.shifts import Shift, shift_of
from stepwell.analysis.structured import constant_of
from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN
from stepwell.lowering.linalg_to_loops.builder import INDEX, lanes_of, vector_type
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, is_dense
from stepwell.transforms.passes import fail

MAX_CONSTANT_LANE = 64
"""Offset, in lanes, up to which lane numbers are a constant vector: every type can hold these."""


class Point(NamedTuple):
    """One iteration, or ``width`` neighbouring ones along ``axis``: the index of each iterator."""

    indices: tuple[Index | None, ...]
    axis: int = -1
    width: int = 0
    """0 for a single iteration."""
    slot: int = 0
    """Which of the points of the shared loops this one belongs to."""
    carried: int = 0
    """The position of its accumulators among the loop-carried values."""
    first: SSAValue | None = None
    """How many lanes are enabled, from the first; None for all."""
    end: tuple[int, Index] | None = None
    """A loop, and the first of its iterations that have no effect, of which this may be one."""

    def bind(self, k: int, index: Index, width: int = 0) -> Point:
        """Return this point with the index of iterator ``k`` bound."""
        indices = (*self.indices[:k], index, *self.indices[k + 1 :])
        if width:
            return self._replace(indices=indices, axis=k, width=width)
        return self._replace(indices=indices)

    def lane(self, lane: int) -> Point:
        """Return one lane of a vector of iterations."""
        at = self.indices[self.axis]
        assert at is not None
        indices = (*self.indices[: self.axis], at + lane, *self.indices[self.axis + 1 :])
        return self._replace(indices=indices, axis=-1, width=0, first=None)


def arguments(
    op: Structured, state: Sequence[SSAValue], read: Callable[[Access, int], SSAValue]
) -> list[SSAValue | None]:
    """Return the arguments of a body; None for one that is not used, which is not read.

    state : the values of the outputs that are carried
    read : reads an input by its number; -1 is the old value of an output
    """
    found = [read(access, k) if op.uses(k) else None for k, access in enumerate(op.inputs)]
    carried = op.carried
    for k, access in enumerate(op.outputs):
        if k in carried:
            found.append(state[carried.index(k)])
        elif op.argument(k) is None:
            found.append(None)
        else:
            found.append(op.initial[k] if k in op.initial else read(access, -1))
    return found


@dataclass
class BodyWriter:
    """Writes the body of ``op`` at several points; common subexpressions are written once."""

    writer: Writer
    op: Structured

    def __post_init__(self) -> None:
        self._done: dict[object, SSAValue] = {}

    def write(self, point: Point, arguments: Sequence[SSAValue | None]) -> list[SSAValue]:
        """Return the values that the body yields for these arguments (None for an unused one)."""
        body = self.op.body
        if body is None:
            value = self.op.value or arguments[0]
            assert value is not None
            return [value]
        values: dict[SSAValue, SSAValue] = {
            arg: value for arg, value in zip(body.args, arguments, strict=True) if value is not None
        }
        last = body.last_op
        assert last is not None
        outer = self.writer.location
        for op in body.ops:
            if op is last:
                break
            self.writer.location = outer if op.location == UNKNOWN else op.location
            self._write_op(op, point, values)
        self.writer.location = outer
        return [values.get(v, v) for v in last.operands]

    def _write_op(self, op: Operation, point: Point, values: dict[SSAValue, SSAValue]) -> None:
        if isinstance(op, arith.ConstantOp):
            values[op.result] = self.writer.constant(op.value, op.result.type)
            return
        operands = [values.get(v, v) for v in op.operands]
        key = self._key(op, point, operands)
        if (done := self._done.get(key)) is not None:
            values[op.results[0]] = done
            return
        if isinstance(op, linalg.IndexOp):
            if op.result.uses and is_only_cast(op):
                return
            new = self._index(op, point, INDEX)
        elif isinstance(op, arith.IndexCastOp) and isinstance(op.input.owner, linalg.IndexOp):
            new = self._index(op.input.owner, point, op.result.type)
        elif (width := _widths(operands)) and isinstance(op, memref.LoadOp):
            new = self._row(op, point, operands, values)
        elif width:
            new = self._lanes(op, operands, width)
        else:
            new = self._scalar(op, operands)
        values[op.results[0]] = self._done[key] = new

    def _key(self, op: Operation, point: Point, operands: Sequence[SSAValue]) -> object:
        """Return the key under which the result of ``op`` is shared between points."""
        place = op.input.owner if isinstance(op, arith.IndexCastOp) else op
        if not isinstance(place, linalg.IndexOp):
            return id(op), *operands
        at, width = self._place(place, point)
        return id(op), at.key, width

    def _place(self, op: linalg.IndexOp, point: Point) -> tuple[Index, int]:
        """Return the index that a linalg.index stands for, and its number of lanes."""
        dim = op.dim.value.data
        at = point.indices[dim]
        assert at is not None
        return at, point.width if point.axis == dim else 0

    def _scalar(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        if len(op.results) != 1 or op.regions:
            fail(op, f"{op.name} cannot stand in the body of a structured op")
        return self.writer.again(op, operands, op.results[0].type, op.results[0].name_hint)

    def _lanes(self, op: Operation, operands: list[SSAValue], width: int) -> SSAValue:
        """Write an arith or math op, or a dot product of bytes, on vectors."""
        if len(op.results) != 1 or op.regions:
            fail(op, f"{op.name} cannot stand in the body of a structured op")
        known = op.dialect_name() in ("arith", "math") or isinstance(op, kernel.DotOp)
        if not known and not _takes_vectors(op, width):
            return self._one_by_one(op, operands, width)
        keep = 1 if isinstance(op, arith.SelectOp) else 0
        wide = [*operands[:keep], *(self.writer.broadcast(v, width) for v in operands[keep:])]
        type = vector_type(op.results[0].type, width)
        return self.writer.again(op, wide, type, op.results[0].name_hint)

    def _one_by_one(self, op: Operation, operands: Sequence[SSAValue], width: int) -> SSAValue:
        """Write an op that has no vector form once for each lane."""
        lanes = [
            self._scalar(
                op,
                [self.writer.lane(v, k) if isinstance(v.type, VectorType) else v for v in operands],
            )
            for k in range(width)
        ]
        return self.writer.assemble(lanes)

    def _index(self, op: linalg.IndexOp, point: Point, kind: Attribute) -> SSAValue:
        """Write the number of an iteration, in the type of its use: lanes may be narrow."""
        at, width = self._place(op, point)
        near = bool(width and at.terms) and 0 <= at.offset < MAX_CONSTANT_LANE
        first = at.offset if near else 0  # neighbouring vectors share one start
        start = self.writer.value(at + -first)
        if kind != INDEX:
            start = self.writer.result(arith.IndexCastOp(start, kind), start.name_hint)
        if not width:
            return start
        type = vector_type(kind, point.width)
        numbers = DenseIntOrFPElementsAttr.from_list(type, [first + k for k in range(width)])
        steps = self.writer.constant(numbers, type, "lanes")
        return self.writer.binary(arith.AddiOp, self.writer.broadcast(start, width), steps)

    def _row(
        self,
        op: memref.LoadOp,
        point: Point,
        operands: Sequence[SSAValue],
        values: dict[SSAValue, SSAValue],
    ) -> SSAValue:
        """Load a vector along a row, where only the last index varies from lane to lane."""
        buffer, *indices = operands
        shift = shift_of(op.indices[-1])
        if shift is None or not is_dense(buffer) or _widths(indices[:-1]):
            return self._gather(op, operands, _widths(operands))
        if _widths([values.get(v, v) for v in shift.others]):
            return self._gather(op, operands, _widths(operands))
        rows = [Index.of(i) for i in indices[:-1]]
        at = self._first(shift.plain, point, values)
        hint = op.results[0].name_hint
        tests = self._inside(shift, at, point.width, values)

        (found,) = self.writer.either(
            tests,
            lambda: [self.writer.load(buffer, [*rows, at], point.width, hint)],
            lambda: [self._gather(op, operands, _widths(operands))],
        )
        return found

    def _first(self, value: SSAValue, point: Point, values: dict[SSAValue, SSAValue]) -> Index:
        """Return the index of the first lane of an index that increases by 1 with the lanes."""
        match value.owner:
            case linalg.IndexOp():
                return self._place(value.owner, point)[0]
            case arith.IndexCastOp(input=inner):
                return self._first(inner, point, values)
            case arith.AddiOp(lhs=a, rhs=b) | arith.SubiOp(lhs=a, rhs=b):
                sign = 1 if isinstance(value.owner, arith.AddiOp) else -1
                return self._first(a, point, values) + self._first(b, point, values) * sign
            case _:
                return self._as_index(values.get(value, value))

    def _as_index(self, value: SSAValue) -> Index:
        if value.type == INDEX:
            return Index.of(value)
        if (number := constant_of(value)) is not None:
            return Index.of(number)
        cast = arith.IndexCastOp(value, INDEX)
        key = ("index of", value)
        return Index.of(self.writer.shared(key, lambda: self.writer.result(cast, value.name_hint)))

    def _inside(
        self, shift: Shift, at: Index, width: int, values: dict[SSAValue, SSAValue]
    ) -> SSAValue | None:
        """Return whether all lanes from ``at`` on are within the limits; None if always."""
        tests = [("sge", 0, limit) for limit in shift.lows]
        tests += [("sle", 1 - width, limit) for limit in shift.highs]
        return self.writer.every(  # nothing is added to an index: it might wrap around
            self.writer.compare(side, at, self._as_index(values.get(limit, limit)) + less)
            for side, less, limit in tests
        )

    def _gather(self, op: memref.LoadOp, operands: Sequence[SSAValue], width: int) -> SSAValue:
        """Load each lane from its own index."""
        buffer, *indices = operands
        lanes: list[SSAValue] = []
        for k in range(width):
            at = [
                Index.of(self.writer.lane(i, k) if isinstance(i.type, VectorType) else i)
                for i in indices
            ]
            lanes.append(self.writer.load(buffer, at))
        return self.writer.assemble(lanes)


def _takes_vectors(op: Operation, width: int) -> bool:
    """Whether an op of another package verifies with vector types, and so works lane by lane."""
    block = Block(arg_types=[vector_type(v.type, width) for v in op.operands])
    trial = type(op).create(
        operands=block.args,
        result_types=[vector_type(op.results[0].type, width)],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    try:
        trial.verify()
    except VerifyException:
        return False
    finally:
        trial.drop_all_references()
    return True


def is_only_cast(op: linalg.IndexOp) -> bool:
    """Whether an iteration's number is used only as an integer of another type."""
    return all(isinstance(use.operation, arith.IndexCastOp) for use in op.result.uses)


def _widths(values: Sequence[SSAValue]) -> int:
    """Return the number of lanes of the vectors among ``values``, 0 where there is none."""
    return max(map(lanes_of, values), default=0)
