"""Rewrite nd.vmap to ordinary ops: those of its region, each for the whole batch at once.

Ops are visited in order. An op without batched operands is kept and runs once for the whole batch;
any other is replaced by the ops of its batching rule, in which the batch axis comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.arith import MuliOp
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.bitwise import AndOp, NotOp
from stepwell.dialects.nd.collectives import CollectiveOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import WhileOp
from stepwell.dialects.nd.defined import DefinedOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.gradients.reverse import reads
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.nd.transformations import TRANSFORMATIONS, UNBATCHED, VmapOp
from stepwell.dialects.readings import batching, decomposition
from stepwell.dialects.types import UNKNOWN, place_of
from stepwell.dialects.upstream.effects import EndsCall

Rule = Callable[["Batch", Any], "Sequence[SSAValue] | None"]


@dataclass(frozen=True)
class Batch(Composer):
    """A batch of ``length`` examples and the batched values computed so far.

    Rules ask `has` whether a value is batched, and get it with a leading axis from `lead`.
    """

    length: int = DYNAMIC
    """The number of examples; DYNAMIC if known only at run time."""
    lanes: SSAValue | None = None
    """The number of examples as an index value, if known only at run time."""
    found: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For each batched value: the values of all examples along a leading axis."""
    conditions: tuple[tuple[SSAValue, bool], ...] = ()
    """The active examples: those for which every one of these conditions has the given value."""
    name: str = ""
    """The name of the batch for the collectives inside; "" for none."""
    dead: list[Operation | BlockArgument] = field(default_factory=list[Any])
    """The replaced ops and block arguments, in order."""

    def has(self, value: SSAValue) -> bool:
        """Whether ``value`` is batched."""
        return value in self.found

    def read(self, value: SSAValue) -> SSAValue:
        """Return ``value`` for the whole batch: with a leading axis if it is batched."""
        return self.found.get(value, value)

    def lead(self, value: SSAValue) -> SSAValue:
        """Return ``value`` with a leading batch axis, broadcast if it is not batched."""
        if (known := self.found.get(value)) is not None:
            return known
        shape = shape_of(value)
        result, dims = (self.length, *shape), range(1, len(shape) + 1)
        sizes = [self.lanes] if self.lanes is not None else []
        return self.of(BroadcastOp(value, dims, result, sizes))

    def type(self, value: SSAValue) -> TensorType[Any]:
        """Return the type of ``value`` with a leading batch axis."""
        return TensorType(element(value), (self.length, *shape_of(value)))

    def again(self, op: Operation, operands: Sequence[SSAValue], **changed: Any) -> list[SSAValue]:
        """Return the results of ``op`` on batched operands, with some properties changed."""
        created = type(op).create(
            operands=operands,
            result_types=[self.type(y) for y in op.results],
            properties={**op.properties, **changed},
            attributes=dict(op.attributes),
        )
        self.builder.insert(created)
        self.created.add(created)
        return list(created.results)

    def moved(self, x: SSAValue, source: int, to: int) -> SSAValue:
        """Return ``x`` with axis ``source`` moved to ``to``."""
        if source == to:
            return x
        order = [a for a in range(len(shape_of(x))) if a != source]
        order.insert(to, source)
        return self.of(TransposeOp(x, order))

    def extent(self, x: SSAValue, axis: int) -> int | SSAValue:
        """Return the size of an axis: a number, or an index value if known only at run time."""
        n = shape_of(x)[axis]
        return self.size(x, axis) if n == DYNAMIC else n

    @property
    def extents(self) -> list[int | SSAValue]:
        """The size of the batch axis, as a list of one."""
        return [self.lanes if self.lanes is not None else self.length]

    def product(self, a: int | SSAValue, b: int | SSAValue) -> int | SSAValue:
        """Return the product of two sizes."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        a, b = (self.index(n) if isinstance(n, int) else n for n in (a, b))
        return self.builder.insert(MuliOp(a, b)).result

    def shaped(self, x: SSAValue, sizes: Sequence[int | SSAValue]) -> SSAValue:
        """Return ``x`` reshaped to ``sizes``."""
        shape = tuple(n if isinstance(n, int) else DYNAMIC for n in sizes)
        if shape == shape_of(x) and shape.count(DYNAMIC) < 2:
            return x
        dynamic = [n for n in sizes if not isinstance(n, int)]
        needed = rules.reshape_unknown(shape_of(x), shape)
        return self.of(ReshapeOp(x, shape, dynamic if needed else []))

    def active(self) -> SSAValue | None:
        """Return the mask of active examples, an i1 for each; None if all are active."""
        total: SSAValue | None = None
        for condition, value in self.conditions:
            each = condition if value else self.of(NotOp(condition))
            total = each if total is None else self.of(AndOp(total, each))
        return total

    def under(self, condition: SSAValue, value: bool) -> Batch:
        """Return the batch of the examples for which ``condition`` is ``value``."""
        return replace(self, conditions=(*self.conditions, (condition, value)))

    def within(self, block: Block) -> Batch:
        """Return the same batch with a builder at the end of ``block``."""
        builder = Builder(InsertPoint.at_end(block))
        return replace(self, builder=builder, created=set(self.created), sizes_made={})

    def concerns(self, op: Operation) -> bool:
        """Whether ``op`` must be rewritten for the batch."""
        if any(value in self.found for value in reads(op)):
            return True
        if self.name and any(self.is_of_all(each) for each in op.walk()):
            return True
        return bool(self.conditions) and any(
            isinstance(each, WhileOp) or each.has_trait(EndsCall) for each in op.walk()
        )

    def is_of_all(self, op: Operation) -> bool:
        """Whether ``op`` is a collective over this batch."""
        return isinstance(op, CollectiveOp) and op.over.data == self.name

    def through(self, first: Operation | None, end: Operation | None) -> None:
        """Replace the ops from ``first`` up to ``end`` by batched ones."""
        at = self.builder.insertion_point
        op = first
        while op is not None and op is not end:
            following = op.next_op
            if self.concerns(op):
                self.builder.insertion_point = InsertPoint.before(op)
                rule = rule_of(op)
                before = op.prev_op
                results = None if rule is None else rule(self, op)
                if results is None:
                    op = _expanded(op)
                    continue
                self.replace(op, results, before)
            op = following
        self.builder.insertion_point = at

    def replace(self, op: Operation, results: Sequence[SSAValue], before: Operation | None) -> None:
        """Replace the results of ``op`` by ``results``; the ops after ``before`` compute them."""
        block = op.parent
        assert block is not None
        new = block.first_op if before is None else before.next_op
        while new is not None and new is not op:
            for each in new.walk():
                if each.location == UNKNOWN:
                    each.location = op.location
            new = new.next_op
        for old, now in zip(op.results, results, strict=True):
            if old.name_hint is not None and not isinstance(now, BlockArgument):
                now.name_hint = old.name_hint
            if now.type == old.type:
                old.replace_all_uses_with(now)
                continue
            if now.type != self.type(old):
                said = f"the batch of {op.name} must be {self.type(old)}, got {now.type}"
                raise CompileError(Diagnostic("error", said, place_of(op)))
            self.found[old] = now
        self.dead.append(op)

    def inlined(
        self, block: Block, values: Sequence[SSAValue], given: Sequence[bool]
    ) -> Sequence[SSAValue]:
        """Inline the ops of ``block`` with ``values`` as arguments; return the values it yields.

        given : which of the values are batched
        """
        for argument, value, is_batch in zip(block.args, values, given, strict=True):
            if is_batch:
                self.found[argument] = value
            else:
                argument.replace_all_uses_with(value)
        last = block.last_op
        assert last is not None
        moved = [op for op in block.ops if op is not last]
        for op in moved:
            op.detach()
            self.builder.insert(op)
        if moved:
            self.through(moved[0], moved[-1].next_op)
        last.detach()
        self.dead.append(last)
        return list(last.operands)

    def finish(self) -> None:
        """Erase the replaced ops and block arguments."""
        for each in reversed(self.dead):
            if isinstance(each, BlockArgument):
                each.block.erase_arg(each)
            else:
                if each.parent is not None:
                    each.detach()
                each.erase()


def rule_of(op: Operation) -> Rule | None:
    """Return the batching rule of ``op``; None if its decomposition is batched instead."""
    if (rule := batching.get(type(op))) is not None:
        return rule
    if isinstance(op, Elementwise | DefinedOp):
        return elementwise
    return None


def elementwise(b: Batch, op: Operation) -> Sequence[SSAValue]:
    """Apply ``op`` to the batched operands; unbatched operands are broadcast here, at the use."""
    return b.again(op, [b.lead(v) for v in op.operands])


def _expanded(op: Operation) -> Operation | None:
    """Replace ``op`` by its decomposition; return the first op of that."""
    if decomposition.get(type(op)) is None:
        kind = type(op)
        help = batching.why_none(kind) or f"register a rule beside {kind.__name__}"
        said = f"{op.name} cannot be batched"
        raise CompileError(Diagnostic("error", said, place_of(op), help=help))
    return expand(op)


def expanded(builder: Builder, op: VmapOp) -> Sequence[SSAValue]:
    """Inline the region for the whole batch."""
    name = "" if op.axis_name is None else op.axis_name.data
    batch = Batch(builder, length=op.length, lanes=op.count, name=name)
    block = op.body.block
    inside, given = axes(op.in_axes), list[SSAValue]()
    for argument, value, axis in zip(block.args, op.inputs, inside, strict=True):
        if value.name_hint is None:
            value.name_hint = argument.name_hint
        given.append(value if axis == UNBATCHED else batch.moved(value, axis, 0))
    yields = batch.inlined(block, given, [axis != UNBATCHED for axis in inside])
    results = [
        _result(batch, op, number, value, axis)
        for number, (value, axis) in enumerate(zip(yields, axes(op.out_axes), strict=True))
    ]
    batch.finish()
    return results


def _result(batch: Batch, op: VmapOp, number: int, value: SSAValue, axis: int) -> SSAValue:
    if axis != UNBATCHED:
        return batch.moved(batch.lead(value), 0, axis)
    if not batch.has(value):
        return value
    said = f"result {number} differs from example to example: out_axes cannot be -1 (None) for it"
    raise CompileError(Diagnostic("error", said, place_of(op)))


def numbers(values: Sequence[int]) -> Iterator[int]:
    """Shift axes by one, past the leading batch axis."""
    return (n + 1 for n in values)


batching.none(*TRANSFORMATIONS, reason="what it stands for is batched")
