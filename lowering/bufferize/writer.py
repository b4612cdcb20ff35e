"""The writer of a host function on buffers: its blocks, scalars, sizes, buffers and views."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.sizes import Size, SizeWriter
from stepwell.dialects.types import UNKNOWN
from stepwell.lowering.bufferize.assignment import Storage, is_view
from stepwell.lowering.bufferize.coalescing import Coalescing
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.copies import Kind
from stepwell.lowering.bufferize.definitions import blocks_around, definition
from stepwell.lowering.bufferize.views import (
    Slice,
    Steps,
    contiguous,
    disjoint,
    inverse,
    join,
    part,
)
from stepwell.transforms.passes import fail, remark

Rule: TypeAlias = "Callable[[HostWriter, Any], None]"
"""Writes the ops on buffers for one op on tensors."""


@dataclass(eq=False)
class _Frame:
    """A block being written to replace ``old``, with its ops and views."""

    old: Block
    new: Block
    first: list[Operation] = field(default_factory=list[Operation])
    """The ops at the start of the block: buffers, and sizes in the function's entry block."""
    ops: list[Operation] = field(default_factory=list[Operation])
    views: dict[tuple[Storage, Steps], SSAValue] = field(
        default_factory=dict[tuple[Storage, Steps], SSAValue]
    )

    def close(self) -> None:
        """Add the written ops to the block."""
        self.new.add_ops([*self.first, *self.ops])


class Row(NamedTuple):
    """A tensor to be copied from a source to a target place; ``why`` is for the remark."""

    value: SSAValue
    source: tuple[Storage, Steps]
    target: tuple[Storage, Steps]
    why: str


class HostWriter:
    """Writes the body of one host function, with the buffers that ``analysis`` assigned."""

    def __init__(
        self,
        function: func.FuncOp,
        analysis: Coalescing,
        constants: Constants,
        rules: Mapping[type[Operation], Rule],
    ) -> None:
        self.function, self.analysis, self.constants = function, analysis, constants
        self.places, self.sizes, self._rules = analysis.assigned, analysis.sizes, rules
        self.values: dict[SSAValue, SSAValue] = {}
        """The new value of each old scalar."""
        self.roots: dict[Storage, SSAValue] = {}
        """The value of each buffer; for an exchanged one, its value in the current block."""
        self.source: Operation = function
        """The op on tensors being written; new ops take its location."""
        self.block = Block()
        self._frames = [_Frame(function.body.block, self.block)]
        self._at_entry = SizeWriter(self.sizes, self._dim, self._put_at_entry)

    def write(self) -> Block:
        """Write and return the function's block; ``roots`` must have its arguments already."""
        self.body(self.function.body.block)
        self._frames.pop().close()
        return self.block

    # -- ops and scalars

    def body(self, block: Block) -> None:
        """Write all ops of ``block``."""
        for op in block.ops:
            self.source = op
            if (rule := self._rules.get(type(op))) is not None:
                rule(self, op)
            elif is_view(op):
                self.copies(op, "slice")
            else:
                self.scalar(op)

    def scalar(self, op: Operation) -> None:
        """Clone an op on scalars."""
        new = self.put(op.clone(self.values))
        self.values.update(zip(op.results, new.results, strict=True))

    def put(self, op: Operation) -> Operation:
        """Append ``op`` to the current block."""
        self._frames[-1].ops.append(self._located(op))
        return op

    def _located(self, op: Operation) -> Operation:
        if op.location == UNKNOWN:
            op.location = self.source.location
        return op

    def scalars(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the new values of those of ``values`` that are not tensors."""
        return [self.values[v] for v in values if not isinstance(v.type, TensorType)]

    @contextmanager
    def nested(self, old: Block, carried: Sequence[SSAValue] = ()) -> Generator[Block]:
        """Open the block that replaces ``old``; its arguments are the scalars, then ``carried``."""
        scalars = [a for a in old.args if not isinstance(a.type, TensorType)]
        new = Block(arg_types=[v.type for v in (*scalars, *carried)])
        for was, now in zip(scalars, new.args, strict=False):
            now.name_hint = was.name_hint
            self.values[was] = now
        self._frames.append(_Frame(old, new))
        yield new
        self._frames.pop().close()

    # -- sizes

    def index(self, size: Size) -> SSAValue:
        """Return ``size`` as a value, computed at the function's entry if it is known there."""
        local = SizeWriter(
            self.sizes, self._dim, self.put, self._at_entry, lambda v: self.values[v]
        )
        return local(size)

    def _dim(self, number: int) -> SSAValue:
        argument, axis = self.sizes.dims[number]
        op = memref.DimOp(self.block.args[argument], self._at_entry(Size.of(axis)))
        self._put_at_entry(op)
        return op.result

    def _put_at_entry(self, op: Operation) -> None:
        self._frames[0].first.append(self._located(op))

    def check_known(self, size: Size) -> None:
        """Fail if ``size`` is not a function of the arguments' sizes."""
        for value in self.sizes.unknowns(size):
            owner = value.owner
            at = owner if isinstance(owner, Operation) else owner.parent_op() or self.function
            fail(at, "a size depends on what the program computes", "make it depend on shapes only")

    # -- buffers

    def place(self, value: SSAValue) -> SSAValue:
        """Return the buffer, or view of a buffer, that holds ``value``."""
        return self.memory(*self.places.of(value))

    def memory(self, storage: Storage, steps: Steps = ()) -> SSAValue:
        """Return a buffer or a view of it as a value; the first use in a block makes it."""
        for frame in self._frames:
            if (value := frame.views.get((storage, steps))) is not None:
                return value
        if not steps:
            return self._root(storage)
        source = self.memory(storage, steps[:-1])
        assert isinstance(source.type, MemRefType)
        type = steps[-1].result(source.type)
        assert type is not None
        value = self.put(steps[-1].write(source, type, self.index)).results[0]
        value.name_hint = storage.name
        self._frames[-1].views[storage, steps] = value
        return value

    def _root(self, storage: Storage) -> SSAValue:
        if (value := self.roots.get(storage)) is None:
            op = self._constant(storage) if storage.kind == "constant" else self._alloc(storage)
            op.location = self.source.location
            value = self.roots[storage] = op.results[0]
            value.name_hint = storage.name
        return value

    def _constant(self, storage: Storage) -> Operation:
        owner = storage.members[0].variable.value.owner
        assert isinstance(owner, arith.ConstantOp)
        op = self.constants.read(owner)
        self._put_at_entry(op)
        return op

    def _alloc(self, storage: Storage) -> Operation:
        for size in storage.sizes:
            self.check_known(size)
        rows = zip(storage.sizes, storage.type.get_shape(), strict=True)
        dynamic = [self._at_entry(n) for n, known in rows if known == DYNAMIC_INDEX]
        op = memref.AllocOp(dynamic, [], storage.type)
        home = self._home(storage)
        next(f for f in self._frames if f.old is home).first.append(op)
        return op

    def _home(self, storage: Storage) -> Block:
        """Return the innermost block around the definitions of all tensors of ``storage``."""
        blocks = [definition(v).parent_block() for v in (m.variable.value for m in storage.members)]
        blocks += [storage.beside.parent_block()] if storage.beside is not None else []
        common: list[Block] = []
        for number, block in enumerate(blocks):
            around = blocks_around(block)
            common = around if not number else [b for b in common if b in around]
        return common[0] if common else self.function.body.block

    def cast_for_kernel(self, value: SSAValue, type: TensorType[Attribute]) -> SSAValue:
        """Return a buffer cast to a type that kernels take: contiguous, or any offset."""
        has = value.type
        assert isinstance(has, MemRefType)
        layout = NoneAttr()
        if not contiguous(has):
            layout = StridedLayoutAttr(has.get_strides() or [], None)
        return self._cast(value, MemRefType(type.element_type, type.get_shape(), layout))

    def _cast(self, value: SSAValue, type: MemRefType[Attribute]) -> SSAValue:
        return value if type == value.type else self.put(memref.CastOp.get(value, type)).results[0]

    # -- copies

    def copies(self, at: Operation, *kinds: Kind) -> None:
        """Write the remaining copies at an op, of the given kinds, as a parallel copy."""
        rows: list[Row] = []
        for copy in self.analysis.left(at):
            if copy.kind in kinds:
                _, target = self.analysis.interference.ends(copy)
                storage, steps = self.places.of(copy.value)
                if all(isinstance(step, Slice) for step in copy.seen):
                    steps = join(steps, copy.seen)
                else:  # no view exists, as the layout is not contiguous: copy before the reshape
                    back = inverse(copy.seen)
                    assert back is not None, "a reshape has an inverse"
                    target = target[0], join(target[1], back)
                rows.append(Row(copy.value, (storage, steps), target, copy.why))
        self.parallel_copy(rows, "two carried tensors are exchanged")

    def parallel_copy(self, rows: Sequence[Row], why: str) -> None:
        """Write a parallel copy in sequence; a temporary breaks each cycle.

        It ends after at most two rounds a row: a round writes a row, or, where every row overwrites
        a source, gives a temporary to a source that is overwritten. No row overwrites a temporary.

        why : the reason for a cycle, for the remark
        """
        left = list(rows)
        while left:
            over = {r: next((o for o in left if self._overwrites_source(r, o)), None) for r in left}
            if (row := next((r for r, other in over.items() if other is None), None)) is None:
                self._break_cycle(left, over, why)
                continue
            left.remove(row)
            if row.why or row.source[0].members:
                self.copy_from(
                    self.memory(*row.source), row.value, self.memory(*row.target), row.why
                )
            else:
                self.put_copy(self.memory(*row.source), self.memory(*row.target))

    def _break_cycle(self, left: list[Row], over: Mapping[Row, Row | None], why: str) -> None:
        """Copy a source of a cycle of rows, each of which overwrites the next, to a temporary."""
        row, passed = left[0], set[Row]()
        while row not in passed:  # at most once around all rows
            passed.add(row)
            other = over[row]
            assert other is not None
            row = other
        aside = self.places.storage(row.value)
        aside.beside = self.source
        self.copy_from(self.memory(*row.source), row.value, self.memory(aside), why)
        left[left.index(row)] = row._replace(source=(aside, ()), why="")

    def _overwrites_source(self, row: Row, other: Row) -> bool:
        """Whether a copy overwrites the source of another."""
        if row is other:
            return False
        return any(
            not disjoint(self.sizes, part(over), part(read))
            for source in self._ends(*other.source)
            for over, read in self.analysis.interference.shared(row.target, source)
        )

    def _ends(self, source: Storage, steps: Steps) -> list[tuple[Storage, Steps]]:
        """Return a place with those outside of a loop that it may be in a copy after the loop."""
        loop, found = self.analysis.loops.get(self.source), [(source, steps)]
        if loop is not None and source in loop.carried:
            ends = loop.ends[loop.carried.index(source)]
            found += [self.places.root(end, steps) for end in ends]
        return found

    def copy_from(self, buffer: SSAValue, value: SSAValue, into: SSAValue, why: str) -> None:
        """Copy ``value`` from ``buffer`` to ``into``, with a remark."""
        name = f"%{value.name_hint}" if value.name_hint else "a tensor"
        remark(self.source, f"{name} is copied because {why or 'its place is taken'}")
        self.put_copy(buffer, into)

    def put_copy(self, buffer: SSAValue, into: SSAValue) -> None:
        """Append a copy; xDSL wants equal shapes, so the source is cast to that of ``into``."""
        has, goal = buffer.type, into.type
        assert isinstance(has, MemRefType) and isinstance(goal, MemRefType)
        buffer = self._cast(buffer, MemRefType(has.element_type, goal.get_shape(), has.layout))
        self.put(memref.CopyOp(buffer, into))
