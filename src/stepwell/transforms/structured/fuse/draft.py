"""A linalg.generic under rewriting: operands change cheaply; the op is built once at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    ShapedType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import (
    Index,
    array_of_maps,
    at,
    element,
    extents,
    indices,
    is_contraction,
    is_parallel,
    linear,
    plain,
    shape,
)
from stepwell.dialects.types import fuse_locations
from stepwell.transforms.structured.fuse.splats import Constant, Splat, scalar_of, splat_of

OpT = TypeVar("OpT", bound=Operation)
Readers: TypeAlias = "dict[SSAValue, list[tuple[Draft, Index]]]"
"""The drafts that read a value, and their indices."""


@dataclass
class Destination:
    """One result of a draft: its destination, and the value by which the body reads it."""

    init: SSAValue
    index: Index
    argument: SSAValue
    result: OpResult
    yielded: SSAValue


@dataclass(eq=False)
class Draft:
    """A generic and the ops that have been merged into it so far.

    Inside ``block`` operands are read through placeholders, one for each (tensor, index) pair;
    they become the block's arguments in `finish`.
    """

    op: linalg.GenericOp
    readers: Readers
    block: Block = field(init=False)
    parallel: list[bool] = field(init=False)
    extents: list[int] = field(init=False)
    reads: dict[tuple[SSAValue, Index], SSAValue] = field(init=False)
    outputs: list[Destination] = field(init=False)
    sizes: list[tuple[SSAValue, Index]] = field(init=False)
    """Operands whose values are not read, and which may be needed only for loop extents."""
    locations: list[LocationAttr] = field(init=False)
    loop_numbers: dict[int, linalg.IndexOp] = field(init=False)
    constants: dict[Constant, arith.ConstantOp] = field(init=False)

    def __post_init__(self) -> None:
        op = self.op
        self.block = op.body.block
        self.parallel, self.extents = is_parallel(op), extents(op)
        self.locations = [op.location]
        self.reads, self.sizes, self.loop_numbers, self.constants = {}, [], {}, {}
        where = indices(op)
        arguments = list(self.block.args)
        n = len(op.inputs)
        for value, index, argument in zip(op.inputs, where, arguments, strict=False):
            if argument.first_use is None:
                self.sizes.append((value, index))
            else:
                argument.replace_all_uses_with(self.read(value, index, argument.name_hint))
        last = self.block.last_op
        assert last is not None
        self.outputs = [
            Destination(*each)
            for each in zip(
                op.outputs, where[n:], arguments[n:], op.results, last.operands, strict=True
            )
        ]

    @property
    def loops(self) -> int:
        """Return the number of loops."""
        return len(self.parallel)

    def contracts(self) -> bool:
        """Whether the draft is a contraction."""
        return not all(self.parallel) and is_contraction(
            self.parallel, [index for _, index in self.reads]
        )

    def read(self, value: SSAValue, index: Index, name: str | None = None) -> SSAValue:
        """Return the placeholder of ``value`` read at ``index``, or the scalar of a splat."""
        if not isinstance(value.type, ShapedType):
            return value
        match splat_of(value):
            case Splat(constant=IntegerAttr() | FloatAttr() as scalar):
                self.sizes.append((value, index))
                return self.constant(scalar)
            case Splat(scalar=SSAValue() as scalar):
                self.sizes.append((value, index))
                return scalar
            case _:
                pass
        if (known := self.reads.get((value, index))) is None:
            known = self.reads[value, index] = Block(arg_types=[element(value)]).args[0]
            known.name_hint = name or value.name_hint
            self.readers.setdefault(value, []).append((self, index))
        return known

    def constant(self, value: Constant) -> SSAValue:
        """Return a constant of the body."""
        if value not in self.constants:
            self.constants[value] = located(arith.ConstantOp(value), self.locations[-1])
        return self.constants[value].result

    def loop_number(self, loop: int) -> SSAValue:
        """Return the index of ``loop``."""
        if loop not in self.loop_numbers:
            self.loop_numbers[loop] = located(linalg.IndexOp(loop), self.locations[-1])
        return self.loop_numbers[loop].result

    def spell(self, expr: AffineExpr, into: list[Operation]) -> SSAValue:
        """Return ``expr`` of the loops as a value; append the ops that compute it to ``into``."""
        form = linear(expr)
        assert form is not None, "only linear indices are merged into bodies that ask for them"
        terms, constant = form
        total: SSAValue | None = None
        for loop in sorted(terms):
            term = self.loop_number(loop)
            if terms[loop] != 1:
                factor = self.constant(IntegerAttr(terms[loop], IndexType()))
                into.append(located(arith.MuliOp(term, factor), self.locations[-1]))
                term = into[-1].results[0]
            if total is not None:
                into.append(located(arith.AddiOp(total, term), self.locations[-1]))
                term = into[-1].results[0]
            total = term
        if total is None:
            return self.constant(IntegerAttr(constant, IndexType()))
        if constant:
            offset = self.constant(IntegerAttr(constant, IndexType()))
            into.append(located(arith.AddiOp(total, offset), self.locations[-1]))
            total = into[-1].results[0]
        return total

    def absorb(self, producer: linalg.GenericOp, loops: Sequence[AffineExpr], copy: bool) -> None:
        """Compute ``producer`` in this body, its loop k being ``loops[k]`` of this draft.

        Every read of its results at those indices is replaced by the computed value. With ``copy``
        the producer keeps its body, otherwise the body moves here.
        """
        self.locations.append(producer.location)
        body = producer.body.clone() if copy else producer.body
        block, where = body.block, indices(producer)
        for value, index, argument in zip(producer.operands, where, block.args, strict=True):
            index = at(index, loops)
            if argument.first_use is None:
                self.sizes.append((value, index))
            else:
                argument.replace_all_uses_with(self.read(value, index, argument.name_hint))
        last = block.last_op
        assert last is not None
        results = list(last.operands)
        last.detach()
        last.erase()
        moved: list[Operation] = []
        for op in list(block.ops):
            if (same := self._shared(op, loops, moved)) is not None:
                results = [same if r is op.results[0] else r for r in results]
                op.results[0].replace_all_uses_with(same)
                continue
            op.detach()
            moved.append(op)
        self._use(producer, loops, results)
        first = self.block.first_op
        assert first is not None
        self.block.insert_ops_before(moved, first)

    def take(self, other: Draft) -> None:
        """Merge ``other``, which has the same loops; neither depends on the other."""
        self.locations.extend(other.locations)
        for (value, index), stand_in in other.reads.items():
            stand_in.replace_all_uses_with(self.read(value, index, stand_in.name_hint))
        for loop, number in other.loop_numbers.items():
            number.result.replace_all_uses_with(self.loop_number(loop))
        for value, constant in other.constants.items():
            kept = self.constants.setdefault(value, constant)
            if kept is not constant:
                constant.result.replace_all_uses_with(kept.result)
        mine, theirs = self.block.last_op, other.block.last_op
        assert mine is not None and theirs is not None
        mine.operands = [*theirs.operands, *mine.operands]
        theirs.detach()
        theirs.erase()
        ops = list(other.block.ops)
        for op in ops:
            op.detach()
        first = self.block.first_op
        assert first is not None
        self.block.insert_ops_before(ops, first)
        self.sizes.extend(other.sizes)
        self.outputs[:0] = other.outputs
        other.reads = {}

    def _shared(
        self, op: Operation, loops: Sequence[AffineExpr], into: list[Operation]
    ) -> SSAValue | None:
        """Return the value of ``op`` where the body shares it: a constant or a loop index."""
        if isinstance(op, arith.ConstantOp) and (value := scalar_of(op)):
            return self.constant(value)
        if isinstance(op, linalg.IndexOp):
            return self.spell(loops[op.dim.value.data], into)
        return None

    def _use(
        self, producer: linalg.GenericOp, loops: Sequence[AffineExpr], results: list[SSAValue]
    ) -> None:
        written = indices(producer)[len(producer.inputs) :]
        self.sizes.extend(
            (init, at(index, loops)) for init, index in zip(producer.outputs, written, strict=True)
        )
        for result, index, value in zip(producer.results, written, results, strict=True):
            stand_in = self.reads.pop((result, at(index, loops)), None)
            if stand_in is None:
                continue
            value.name_hint = result.name_hint or value.name_hint
            stand_in.replace_all_uses_with(value)

    def finish(self) -> linalg.GenericOp:
        """Insert the op before the original one, and replace its results."""
        self._collect_shared()
        _erase_dead(self.block)
        for destination, value in zip(self.outputs, self._yields(), strict=True):
            destination.yielded = value
        reads = self._reads_in_order()
        self.sizes.extend(key for key in self.reads if key not in reads)
        sizes = self._needed_sizes(reads)
        arguments = [element(value) for value, _ in (*reads, *sizes)]
        block = Block(arg_types=[*arguments, *(d.argument.type for d in self.outputs)])
        olds = [*reads.values(), *(None for _ in sizes), *(d.argument for d in self.outputs)]
        for old, new in zip(olds, block.args, strict=True):
            if old is not None:
                new.name_hint = old.name_hint
                old.replace_all_uses_with(new)
        ops = list(self.block.ops)
        for op in ops:
            op.detach()
        used = [
            op
            for op in (*self.loop_numbers.values(), *self.constants.values())
            if op.results[0].first_use is not None
        ]
        block.add_ops([*used, *ops])
        return self._write([*reads, *sizes], block)

    def _reads_in_order(self) -> dict[tuple[SSAValue, Index], SSAValue]:
        """Return the reads that the body uses, in the order of their first use."""
        keys = {stand_in: key for key, stand_in in self.reads.items()}
        values = (value for op in self.block.walk() for value in op.operands)
        found = {value: keys[value] for value in values if value in keys}
        return {key: value for value, key in found.items()}

    def _write(self, inputs: list[tuple[SSAValue, Index]], block: Block) -> linalg.GenericOp:
        where = [*(index for _, index in inputs), *(d.index for d in self.outputs)]
        op = linalg.GenericOp(
            [value for value, _ in inputs],
            [d.init for d in self.outputs],
            Region(block),
            array_of_maps(self.loops, where),
            self.op.iterator_types,
            [d.result.type for d in self.outputs],
        )
        op.attributes.update(self.op.attributes)
        op.location = fuse_locations(reversed(self.locations))
        parent = self.op.parent
        assert parent is not None
        parent.insert_op_before(op, self.op)
        for destination, new in zip(self.outputs, op.results, strict=True):
            new.name_hint = destination.result.name_hint
            destination.result.replace_all_uses_with(new)
        return op

    def _collect_shared(self) -> None:
        """Move constants and loop indices of the original body to the shared ones."""
        for op in list(self.block.ops):
            if isinstance(op, arith.ConstantOp) and (value := scalar_of(op)):
                same = self.constant(value)
            elif isinstance(op, linalg.IndexOp):
                same = self.loop_number(op.dim.value.data)
            else:
                continue
            if same.name_hint is None:
                same.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(same)
            op.detach()
            op.erase()

    def _yields(self) -> Sequence[SSAValue]:
        last = self.block.last_op
        assert last is not None
        return last.operands

    def _needed_sizes(
        self, reads: dict[tuple[SSAValue, Index], SSAValue]
    ) -> list[tuple[SSAValue, Index]]:
        """Return the operands to add so that every loop indexes an axis of some operand."""
        known = {
            loop
            for index in (*(i for _, i in reads), *(d.index for d in self.outputs))
            for expr in index
            if (loop := plain(expr)) is not None
        }
        found: list[tuple[SSAValue, Index]] = []
        missing = [loop for loop in range(self.loops) if loop not in known]
        for value, index in self.sizes:
            gives = {plain(expr) for expr in index} & set(missing)
            if gives and isinstance(value.owner, tensor.EmptyOp) and _is_plain(index):
                found.append((value, index))
                missing = [loop for loop in missing if loop not in gives]
        if missing:
            found.append(self._shape_operand(missing))
        return found

    def _shape_operand(self, loops: list[int]) -> tuple[SSAValue, Index]:
        """Return a new tensor.empty, never read, whose axes have the extents of ``loops``."""
        static: list[int] = []
        dynamic: list[SSAValue] = []
        for loop in loops:
            value, axis = self._size_source(loop)
            static.append(shape(value)[axis])
            if static[-1] == DYNAMIC_INDEX:
                dynamic.append(self._dim(value, axis))
        kind = element(self.outputs[0].init)
        empty = located(tensor.EmptyOp(dynamic, TensorType(kind, static)), self.op.location)
        self._insert(empty)
        return empty.tensor, tuple(AffineDimExpr(loop) for loop in loops)

    def _size_source(self, loop: int) -> tuple[SSAValue, int]:
        candidates = [
            (_origin(value), axis)
            for value, index in self.sizes
            for axis, expr in enumerate(index)
            if plain(expr) == loop
        ]
        static = (c for c in candidates if shape(c[0])[c[1]] != DYNAMIC_INDEX)
        return next(static, candidates[0])

    def _dim(self, value: SSAValue, axis: int) -> SSAValue:
        """Return the run-time size of an axis, without a new use of an empty tensor."""
        if isinstance(value.owner, tensor.EmptyOp):
            before = shape(value)[:axis].count(DYNAMIC_INDEX)
            return value.owner.dynamic_sizes[before]
        number = located(arith.ConstantOp(IntegerAttr(axis, IndexType())), self.op.location)
        dim = located(tensor.DimOp(value, number.result), self.op.location)
        self._insert(number)
        self._insert(dim)
        return dim.result

    def _insert(self, op: Operation) -> None:
        assert self.op.parent is not None
        self.op.parent.insert_op_before(op, self.op)


def located(op: OpT, location: LocationAttr) -> OpT:
    """Return ``op`` after setting its location."""
    op.location = location
    return op


def _origin(value: SSAValue) -> SSAValue:
    """Return a value of the same shape as ``value`` whose definition is never merged away."""
    while isinstance(value, OpResult) and isinstance(value.op, linalg.GenericOp | linalg.FillOp):
        value = value.op.outputs[value.index]
    return value


def _is_plain(index: Index) -> bool:
    return all(plain(expr) is not None for expr in index)


def _erase_dead(block: Block) -> None:
    """Erase the ops of the body that no result depends on."""
    for op in reversed(list(block.ops)):
        if op is not block.last_op and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()
