"""The writer of a host function on buffers: its blocks, scalars, sizes, buffers and views."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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
from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.coalescing import Coalescing
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.definitions import blocks_around, definition
from stepwell.lowering.bufferize.views import Steps, contiguous
from stepwell.transforms.passes import fail

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
        return self.cast(value, MemRefType(type.element_type, type.get_shape(), layout))

    def cast(self, value: SSAValue, type: MemRefType[Attribute]) -> SSAValue:
        """Return a buffer cast to another type."""
        return value if type == value.type else self.put(memref.CastOp.get(value, type)).results[0]
