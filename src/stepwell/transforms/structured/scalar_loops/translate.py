"""Translate the ops of a loop on tensors to scalar code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stepwell.analysis.structured import (
    indices,
    plain,
    yielded,
)
from stepwell.dialects.types import tensor_type
from stepwell.transforms.structured.scalar_loops.code import Code, Refused, Write, refuse
from stepwell.transforms.structured.scalar_loops.flow import (
    is_number,
    is_within,
    kept_axes,
    origin,
)
from stepwell.transforms.structured.scalar_loops.nests import Element, Nests, Writing


@dataclass(frozen=True)
class Part:
    """The elements that are written to a slice of an array, and the indices they are written at."""

    place: Callable[[Sequence[SSAValue]], Sequence[SSAValue]]
    element: Element
    fixed: Sequence[SSAValue | None]
    """For each axis of the array: the index, if the slice has only one."""
    rows: bool
    """Whether the slice is contiguous along its last axis."""


MOST_LONG = 1 << 48
"""The longest possible axis of an array in memory."""


VIEWS = (
    linalg.GenericOp,
    linalg.FillOp,
    *(tensor.ExtractSliceOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp),
    *(tensor.EmptyOp, tensor.SplatOp),
)
"""Ops without code of their own: their elements are computed where read, unless scalar."""

Rule: TypeAlias = Callable[["Translation", Any], None]


class Translation:
    """Writes the ops of tensor-level blocks; ``root`` is the loop that contains them all."""

    def __init__(self, code: Code, root: Operation, rules: Mapping[type[Operation], Rule]) -> None:
        self.code, self.root, self.rules = code, root, rules
        self.done: set[Operation] = set()
        self.views: dict[SSAValue, Callable[[Sequence[SSAValue]], SSAValue]] = {}
        """Maps an array that is never stored to the function that computes an element of it."""
        self.counters: list[SSAValue | None] = []
        """The index of each loop around the op that is being written; None without a counter."""
        self.loops: list[Sequence[SSAValue]] = []
        """Maps each structured op that is being written to its current loop indices."""
        self.active: set[Operation] = set()
        self.nests = Nests(code)
        self.reading: list[SSAValue] = []
        """The arrays that are not stored of which an element is being computed, outermost first."""
        self.stored: frozenset[SSAValue] = frozenset()
        """Arrays that are stored where they are made, because they are read again and again."""

    # values

    @property
    def depth(self) -> int:
        """The number of loops around the op that is being written."""
        return len(self.counters)

    def value(self, old: SSAValue) -> SSAValue:
        """Return the replacement of a value: a number for a one-element tensor."""
        if (known := self.code.values.get(old)) is not None:
            return known
        if is_within(old, self.root):
            refuse(self.root, "a value is used before it is there")
        found = self._from_outside(old)
        self.code.values[old] = found
        return found

    def _from_outside(self, old: SSAValue) -> SSAValue:
        """Return a captured host value: arrays are only read, a number is loaded once on entry."""
        if not isinstance(old.type, TensorType):
            match old.owner:
                case arith.ConstantOp():
                    return self.code.number(old.owner.clone())
                case (Operation() | Block()) as made_by if isinstance(
                    above := made_by.parent_op(), linalg.GenericOp
                ):  # a value in a body: use the result that it is yielded to
                    return self.value(above.results[list(yielded(above.body.block)).index(old)])
                case _:
                    return old
        if not is_number(old):
            return old
        filled = origin(old)
        if not isinstance(filled.type, TensorType):
            match filled.owner:
                case arith.ConstantOp():
                    return self.code.number(filled.owner.clone())
                case _:
                    pass
        if isinstance(old.owner, tensor.EmptyOp):
            return self.code.zero(tensor_type(old).element_type)
        code = self.code
        zeros = [code.index(0) for _ in tensor_type(old).get_shape()]
        read = tensor.ExtractOp(old, zeros, tensor_type(old).element_type)
        with code.inside(code.top):
            code.put(read, [old.name_hint])
        first = code.top.first_op
        assert first is not None
        if first is not read:
            read.detach()
            code.top.insert_op_before(read, first)
        return read.result

    def readable(
        self, old: SSAValue, op: Operation, at: Sequence[SSAValue] | None = None
    ) -> SSAValue:
        """Return the current state of an array whose element at ``at`` is read."""
        found = (
            self.nests.check_read(op, self.value(old), at) if at is not None else self.value(old)
        )
        arrays = self.code.arrays
        if arrays.is_stale(found) and not (at is not None and arrays.is_entered(found)):
            why = "an array is read as it was before an element was written"
            made = [v for v in self.reading if isinstance(v.owner, linalg.GenericOp)]
            raise Refused(op, why, store=made[0] if made else None)
        return found

    # ops

    def block(self, block: Block) -> Operation:
        """Write the ops of a block; return its terminator."""
        *ops, last = block.ops
        for op in ops:
            self.op(op)
        return last

    def op(self, op: Operation) -> None:
        """Write an op, unless it has been written."""
        if op in self.done:
            return
        self.done.add(op)
        self.active.add(op)
        self.write_readers_first(op)
        code = self.code
        outer, code.source = code.source, op
        if (rule := self.rules.get(type(op))) is not None:
            rule(self, op)
        elif op.dialect_name() in ("arith", "math") and not op.regions:
            self._scalar(op)
        else:
            refuse(op, f"{op.name} works on whole arrays")
        code.source = outer
        self.active.discard(op)

    def write_readers_first(self, op: Operation) -> None:
        """Write the later readers of the arrays that ``op`` overwrites before ``op``."""
        if not any(not is_number(r) for r in op.results):
            return
        block = op.parent_block()
        assert block is not None
        used = {v for each in op.walk() for v in each.operands if not is_number(v)}
        for value in used:
            for use in list(value.uses):
                reader = block.find_ancestor_op_in_block(use.operation)
                if reader is not None and reader not in self.done and op.is_before_in_block(reader):
                    self._write_early(reader)

    def _write_early(self, op: Operation) -> bool:
        """Write a scalar op ahead of its position, if its dependences allow."""
        if op in self.active:
            return False
        if op in self.done:
            return True
        simple = isinstance(op, linalg.GenericOp) or not op.regions
        counts = all(map(is_number, op.results)) or isinstance(op, VIEWS)
        if not simple or not op.results or not counts:
            return False
        block = op.parent_block()
        assert block is not None
        for value in [v for each in op.walk() for v in each.operands]:
            if not isinstance(made_by := value.owner, Operation):
                continue
            if made_by.parent_block() is block and not self._write_early(made_by):
                return False
        self.op(op)
        return True

    def _scalar(self, op: Operation) -> None:
        if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            refuse(op, f"{op.name} works on whole arrays")
        new = op.clone({v: self.value(v) for v in op.operands})
        self.bind(op.results[0], self.code.number(new, op.results[0].name_hint))

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """Make ``new`` the replacement of ``old``."""
        self.code.values[old] = new

    # elements

    def element(self, op: Operation, array: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        """Return the element of an array at ``at``, or its only one."""
        if is_number(array):
            return self.value(array)
        if (view := self.views.get(array)) is not None:
            self.reading.append(array)
            found = view(at)
            self.reading.pop()
            return found
        source = self.readable(array, op, at)
        read = tensor.ExtractOp(source, at, tensor_type(array).element_type)
        return self.code.put(read, [op.results[0].name_hint if op.results else None]).results[0]

    def write(self, op: Operation, array: SSAValue, at: Sequence[SSAValue], new: SSAValue) -> None:
        """Store an element; the result of ``op`` is the array's new state."""
        into, code = self.readable(array, op), self.code
        if into not in code.arrays.of:
            refuse(op, "an array is written to that the loop does not carry")
        created = code.put(tensor.InsertOp(new, into, at), [op.results[0].name_hint]).results[0]
        code.arrays.change(into, created)
        code.arrays.written[created] = Write(into, list(at))
        self.bind(op.results[0], created)

    def places(self, static: Any, dynamic: Sequence[SSAValue]) -> list[SSAValue]:
        """Return offsets as indices."""
        rest = iter(dynamic)
        return [
            self.value(next(rest)) if n == DYNAMIC_INDEX else self.code.index(n)
            for n in static.get_values()
        ]

    def write_all(
        self, op: Operation, into: SSAValue, sizes: Sequence[SSAValue], part: Part
    ) -> SSAValue:
        """Store all elements of a slice of an array; return the array's new state.

        sizes : the number of elements of the slice along each of its axes
        """
        code = self.code
        if into not in code.arrays.of:
            refuse(op, "an array is written to that the loop does not carry")
        number, writing = code.arrays.of[into], list[Writing]()

        def body(at: Sequence[SSAValue], given: Sequence[SSAValue]) -> list[SSAValue]:
            (now,) = given
            writing.append(Writing(number, into, now, part.place(at)))
            self.nests.writing.append(writing[0])
            value = part.element(at)
            self.nests.writing.pop()
            created = code.put(tensor.InsertOp(value, now, writing[0].place)).results[0]
            code.arrays.change(now, created)
            return [created]

        def is_apart() -> bool:
            """Require contiguous elements too: gcc would vectorize scattered stores."""
            return writing[0].apart and part.rows

        created = self.nests.write(op, sizes, [into], body, is_apart)[0]
        code.arrays.written[created] = Write(into, part.fixed)
        return created

    def sizes(self, value: SSAValue) -> list[SSAValue]:
        """Return the size of a tensor along each axis."""
        return [self.size(value, axis) for axis in range(len(tensor_type(value).get_shape()))]

    def size(self, value: SSAValue, axis: int) -> SSAValue:
        """Return the size of a tensor along an axis, whether it is stored or not."""
        if (n := tensor_type(value).get_shape()[axis]) != DYNAMIC_INDEX:
            return self.code.index(n)
        made_by = value.owner
        if value not in self.code.values:
            match made_by:
                case linalg.GenericOp() | linalg.FillOp():
                    assert isinstance(value, OpResult)
                    return self.size(made_by.outputs[value.index], axis)
                case tensor.EmptyOp():
                    shape = tensor_type(value).get_shape()
                    return self.value(made_by.dynamic_sizes[shape[:axis].count(DYNAMIC_INDEX)])
                case tensor.ExtractSliceOp():
                    sizes = made_by.static_sizes.get_values()
                    kept = kept_axes(sizes, tensor_type(value).get_shape())
                    if kept is not None:
                        return self.places(made_by.static_sizes, made_by.sizes)[kept[axis]]
                case _:
                    pass
            if is_within(value, self.root):
                assert isinstance(made_by, Operation)
                refuse(made_by, "the size of a value that is never stored is unknown")
        source, arrays = self.value(value), self.code.arrays
        if source in arrays.of:
            source = arrays.newest[arrays.of[source]]
        found = self.code.put(tensor.DimOp(source, self.code.index(axis))).results[0]
        self.code.bounds.note(found, (0, MOST_LONG))
        return found

    def loop_sizes(self, op: linalg.GenericOp) -> list[SSAValue]:
        """Return the trip count of each loop of a structured op."""
        found: dict[int, SSAValue] = {}
        for value, index in zip(op.operands, indices(op), strict=True):
            for axis, expression in enumerate(index):
                if (loop := plain(expression)) is None or loop in found:
                    continue
                if tensor_type(value).get_shape()[axis] != DYNAMIC_INDEX:
                    found[loop] = self.size(value, axis)
        for value, index in zip(op.operands, indices(op), strict=True):
            for axis, expression in enumerate(index):
                if (loop := plain(expression)) is not None and loop not in found:
                    found[loop] = self.size(value, axis)
        return [found[loop] for loop in range(len(op.iterator_types))]

    def iteration(
        self,
        op: linalg.GenericOp,
        loops: Sequence[SSAValue],
        given: Sequence[SSAValue] | None = None,
    ) -> list[SSAValue]:
        """Write an iteration of a structured op; return the yielded values.

        given : the accumulators, if not the elements of the destinations
        """
        body = op.body.block
        code = self.code
        outer, code.source = code.source, op
        operands = op.operands if given is None else op.inputs
        for argument, value in zip(body.args[len(op.inputs) :], given or (), strict=False):
            self.bind(argument, value)
        for argument, value, map in zip(body.args, operands, indices(op), strict=False):
            if argument.first_use is not None:
                at = [] if is_number(value) else [code.affine(e, loops) for e in map]
                self.bind(argument, self.element(op, value, at))
        self.loops.append(loops)
        self.done.difference_update(body.walk())
        last = self.block(body)
        self.loops.pop()
        code.source = outer
        return [self.value(v) for v in last.operands]
