"""Append ops to a block: values that are shared, constants at the top of the kernel, vectors.

A value that can be shared (an index, a broadcast) is kept in the scope of its block and reused in
that block and the loops inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    UnknownLoc,
    VectorType,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from stepwell.dialects.types import UNKNOWN

OpT = TypeVar("OpT", bound=Operation)
INDEX = IndexType()
_NO_FLAGS = arith.IntegerOverflowAttr("none")


@cache
def vector_type(element: Attribute, width: int) -> VectorType[Any]:
    """Return the type of ``width`` lanes; building one costs ten times as much as an op."""
    return VectorType(element, [width])


def lanes_of(value: SSAValue) -> int:
    """Return the lanes of a vector, 0 for a scalar."""
    return value.type.get_shape()[0] if isinstance(value.type, VectorType) else 0


@lru_cache(maxsize=1024)
def _in_lanes(value: IntegerAttr | FloatAttr, width: int) -> Attribute:
    """Return a number in every lane."""
    number: Any = value.value.data
    return DenseIntOrFPElementsAttr.from_list(vector_type(value.type, width), [number] * width)


@cache
def _index_attribute(number: int) -> IntegerAttr:
    return IntegerAttr(number, INDEX)


@dataclass
class Builder:
    """Appends ops to a block; everything written is at ``location``."""

    block: Block
    entry: Block
    location: LocationAttr = UNKNOWN
    before: Operation | None = None
    """The op of ``block`` before which ops are written; None for its end."""
    _scopes: list[dict[object, SSAValue]] = field(
        default_factory=lambda: list[dict[object, SSAValue]]([{}])
    )
    _constants: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])
    _last_constant: Operation | None = None

    def insert(self, op: OpT) -> OpT:
        """Append ``op`` and set its location."""
        if isinstance(op.location, UnknownLoc):
            op.location = self.location
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op

    def result(self, op: Operation, hint: str | None = None) -> OpResult:
        """Append ``op``; return its only result."""
        self.insert(op)
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    def again(
        self, op: Operation, operands: Sequence[SSAValue], type: Attribute, hint: str | None
    ) -> OpResult:
        """Append an op like ``op`` on other operands, whose result is of ``type``."""
        new = op.create(
            operands=operands,
            result_types=[type],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        return self.result(new, hint)

    def find(self, key: object) -> SSAValue | None:
        """Return the value already written under ``key``, None if there is none."""
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def shared(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        """Return the value already written under ``key``, or write it."""
        if (found := self.find(key)) is not None:
            return found
        value = self._scopes[-1][key] = make()
        return value

    def constant(self, value: Attribute, type: Attribute, hint: str | None = None) -> SSAValue:
        """Return a constant; equal ones are one."""
        if (found := self._constants.get(value)) is not None:
            return found
        op = arith.ConstantOp.create(result_types=[type], properties={"value": value})
        op.location = self.location
        if self._last_constant is not None:
            self.entry.insert_op_after(op, self._last_constant)
        elif (first := self.entry.first_op) is not None:
            self.entry.insert_op_before(op, first)
        else:
            self.entry.add_op(op)
        self._last_constant = op
        op.results[0].name_hint = hint
        self._constants[value] = op.results[0]
        return op.results[0]

    def index(self, number: int) -> SSAValue:
        """Return an index constant."""
        hint = f"c{number}" if number >= 0 else f"m{-number}"
        return self.constant(_index_attribute(number), INDEX, hint)

    def splat(self, value: IntegerAttr | FloatAttr, width: int) -> SSAValue:
        """Return a scalar constant, or a vector of ``width`` lanes of it."""
        if width == 0:
            return self.constant(value, value.type)
        return self.constant(_in_lanes(value, width), vector_type(value.type, width))

    def binary(
        self, op: type[Operation], lhs: SSAValue, rhs: SSAValue, hint: str | None = None
    ) -> SSAValue:
        """Write one op of two operands of one type."""
        overflow = op in (arith.AddiOp, arith.MuliOp, arith.SubiOp)
        properties: dict[str, Attribute] = {"overflowFlags": _NO_FLAGS} if overflow else {}
        new = op.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)
        return self.result(new, hint)

    def every(self, tests: Iterable[SSAValue]) -> SSAValue | None:
        """Return whether all tests hold, which are written one after another; None without any."""
        found: SSAValue | None = None
        for test in tests:
            found = test if found is None else self.binary(arith.AndIOp, found, test)
        return found

    def across(self, kind: str, lanes: SSAValue, hint: str | None = None) -> SSAValue:
        """Combine the lanes of a vector; ``kind`` is a name in vector.reduction."""
        assert isinstance(lanes.type, VectorType)
        new = vector.ReductionOp.create(
            operands=[lanes],
            result_types=[lanes.type.element_type],
            properties={
                "kind": CombiningKindAttr(CombiningKindFlag(kind)),
                "fastmath": arith.FastMathFlagsAttr("none"),
            },
        )
        return self.result(new, hint)

    def inside(self, block: Block, write: Callable[[], Sequence[SSAValue]]) -> Sequence[SSAValue]:
        """Run ``write`` with ``block`` open, in a scope of its own."""
        outer, self.block, self.before = (self.block, self.before), block, None
        self._scopes.append({})
        values = write()
        self.block, self.before = outer
        self._scopes.pop()
        return values

    def fill(
        self,
        block: Block,
        write: Callable[[], Sequence[SSAValue]],
        end: Callable[..., Operation],
    ) -> Sequence[SSAValue]:
        """Run ``write`` with ``block`` open; ``end`` makes the terminator from its values."""
        values = self.inside(block, write)
        last = end(*values)
        last.location = self.location
        block.add_op(last)
        return values

    def shuffle(
        self, a: SSAValue, b: SSAValue, lanes: Sequence[int], hint: str | None = None
    ) -> SSAValue:
        """Return the lanes of two concatenated vectors that ``lanes`` selects."""
        mask = DenseArrayBase.from_list(i64, lanes)
        op = vector.ShuffleOp.create(
            operands=[a, b], result_types=[a.type], properties={"mask": mask}
        )
        return self.result(op, hint)

    def broadcast(self, value: SSAValue, width: int) -> SSAValue:
        """Return ``value`` in every one of ``width`` lanes."""
        if isinstance(value.type, VectorType) or not width:
            return value
        if isinstance(owner := value.owner, arith.ConstantOp) and isinstance(
            owner.value, IntegerAttr | FloatAttr
        ):
            return self.splat(owner.value, width)
        type = vector_type(value.type, width)
        return self.shared(
            ("broadcast", value, width),
            lambda: self.result(
                vector.BroadcastOp.create(operands=[value], result_types=[type]), value.name_hint
            ),
        )

    def lane(self, value: SSAValue, lane: int) -> SSAValue:
        """Return one lane of a vector."""
        assert isinstance(value.type, VectorType)
        return self.result(vector.ExtractOp(value, [lane], value.type.element_type))

    def assemble(self, lanes: Sequence[SSAValue]) -> SSAValue:
        """Return a vector of the given lanes."""
        type = vector_type(lanes[0].type, len(lanes))
        whole: SSAValue = self.result(vector.BroadcastOp(lanes[0], type))
        for k, lane in enumerate(lanes[1:], 1):
            whole = self.result(vector.InsertOp(lane, whole, [k]))
        return whole
