"""The backward pass of a region: built inside the region, then moved out of it.

While it is built, its ops follow the forward ops and use their values directly, so gradient rules
need not treat regions, and the rules of nested loops work. After the move, the forward values that
the backward ops use are passed in as arguments (`keeping`) or recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.gradients.keeping import choose, is_cheap, is_repeatable
from stepwell.dialects.nd.gradients.reverse import Cotangent, Reverse, reads
from stepwell.dialects.nd.gradients.sizes import Outside
from stepwell.dialects.nd.sizes import DimOp


def captured(outer: Reverse, op: Operation) -> list[SSAValue]:
    """Return the captured values of the regions of ``op`` that need cotangents."""
    inside = list(reads(op))[len(op.operands) :]
    return [v for v in dict.fromkeys(inside) if outer.wants(v)]


def last_of(block: Block) -> Operation:
    """Return the terminator of a region's block."""
    assert block.last_op is not None
    return block.last_op


@dataclass
class Body:
    """A region's block while its backward pass is built."""

    block: Block
    inner: Reverse = field(init=False)
    ops: list[Operation] = field(default_factory=list[Operation])
    border: Operation = field(init=False)
    """Separates the forward ops from the backward ops."""

    def __post_init__(self) -> None:
        """Insert the border after the forward ops."""
        self.border = YieldOp([])
        last = last_of(self.block)
        self.block.insert_op_before(self.border, last)
        self.inner = Reverse(Builder(InsertPoint.before(last)))

    @property
    def yields(self) -> Sequence[SSAValue]:
        """The operands of the block's terminator: the values that the forward pass yields."""
        return last_of(self.block).operands

    def follow(self, active: Iterable[SSAValue]) -> None:
        """Mark the values that depend on ``active``."""
        self.inner.active.update(active)
        self.ops = self.inner.follow(self.block.first_op, self.border)

    def follow_loop(self, active: Iterable[SSAValue], carried: int) -> None:
        """Mark the values that depend on ``active`` in any step, through carried arguments too."""
        more = set(active)
        while more:
            self.follow(more)
            pairs = zip(self.block.args[:carried], self.yields, strict=False)
            more = {a for a, y in pairs if self.inner.wants(y) and not self.inner.wants(a)}

    def useful(self, ends: set[int], carried: int) -> set[int]:
        """Return the yielded values that are live when those of ``ends`` are."""
        found = set(ends)
        while True:
            wanted = {self.yields[k] for k in found}
            for op in reversed(self.ops):
                if any(r in wanted for r in op.results):
                    wanted.update(reads(op))
            more = {
                k
                for k, argument in enumerate(self.block.args[:carried])
                if argument in wanted and self.inner.wants(argument)
            }
            if more <= found:
                return found
            found |= more

    def run(
        self,
        seeds: Iterable[tuple[SSAValue, SSAValue]],
        bases: Iterable[tuple[SSAValue, SSAValue]] = (),
    ) -> None:
        """Propagate cotangents from the yielded values backward.

        seeds : each yielded value with its cotangent
        bases : each captured value with the initial value of its cotangent
        """
        for value, base in bases:
            self.inner.found[value] = [Cotangent(base)]
        for value, cotangent in seeds:
            self.inner.accumulate(value, cotangent)
        self.inner.run(self.ops)

    def found(self, value: SSAValue) -> SSAValue | None:
        """Return the cotangent of ``value``, None if it is zero."""
        got = self.inner.take(value)
        return None if got is None else self.inner.plain(got)

    def take_out(
        self,
        into: Block,
        ends: Sequence[SSAValue],
        outside: Outside,
        at_hand: Callable[[SSAValue], bool],
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """Move the backward ops to the end of ``into``; return ``ends`` and the values used there.

        The backward ops may use forward values that are kept or ``at_hand``; ``into`` gets one
        more argument for each.
        """
        created = self._backward_ops(ends)
        self._replace_sizes(created, outside)
        needed = [v for op in created for v in reads(op) if self._is_forward(v, outside)]
        needed += [v for v in ends if self._is_forward(v, outside)]
        given = _ForwardValues(into, outside, self._kept_predicate(needed, outside, at_hand))
        for value in dict.fromkeys(needed):
            given.again(value)
        builder = Builder(InsertPoint.at_end(into))
        for op in created:
            op.detach()
            builder.insert(op)
            for each in op.walk():
                for number, operand in enumerate(each.operands):
                    if operand in given.mapped:
                        each.operands[number] = given.mapped[operand]
        self.border.detach()
        self.border.erase()
        return [given.mapped.get(v, v) for v in ends], given.used

    def _kept_predicate(
        self, needed: list[SSAValue], outside: Outside, at_hand: Callable[[SSAValue], bool]
    ) -> Callable[[SSAValue], bool]:
        """Return a predicate: whether a value is passed to the backward pass as an argument."""

        def free(value: SSAValue) -> bool:
            return at_hand(value) or not outside.is_inside(value)

        for again in (is_cheap, is_repeatable):
            kept = choose(needed, free, outside.knows, again)
            if kept is not None:
                return lambda value: value in kept or at_hand(value)
        said = "the backward pass needs a value whose sizes are not known outside of its region"
        self.inner.refuse(self.block.parent_op() or self.border, said)

    def _is_forward(self, value: SSAValue, outside: Outside) -> bool:
        """Whether ``value`` is computed by the forward pass inside the region."""
        return outside.is_inside(value) and value not in self._results

    def _backward_ops(self, ends: Sequence[SSAValue]) -> list[Operation]:
        """Return the backward ops and erase those without users."""
        created: list[Operation] = []
        last = last_of(self.block)
        op = last.prev_op
        ending = set(ends)
        while op is not None and op is not self.border:
            before = op.prev_op
            unused = all(r.first_use is None and r not in ending for r in op.results)
            if unused and is_side_effect_free(op):
                op.detach()
                op.erase()
            else:
                created.append(op)
            op = before
        created.reverse()
        self._results = {r for op in created for r in op.results}
        return created

    def _replace_sizes(self, created: list[Operation], outside: Outside) -> None:
        """Replace sizes of forward values by values from outside of the region where possible."""
        for op in list(created):
            if isinstance(op, DimOp) and self._is_forward(op.x, outside):
                size = outside.size(op.x, op.axis.value.data)
                if size is not None:
                    created.remove(op)
                    op.n.replace_all_uses_with(size)
                    op.detach()
                    op.erase()


@dataclass
class _ForwardValues:
    """The forward values that the backward ops use, mapped to their copies in ``into``."""

    into: Block
    outside: Outside
    is_handed: Callable[[SSAValue], bool]
    mapped: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    used: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values passed to the backward pass as arguments."""

    def again(self, value: SSAValue) -> None:
        """Make a value available in ``into``: as an argument, or recomputed."""
        if value in self.mapped or not self.outside.is_inside(value):
            return
        if self.is_handed(value):
            self.used.append(value)
            self.mapped[value] = self.into.insert_arg(value.type, len(self.into.args))
            self.mapped[value].name_hint = value.name_hint
            return
        op = value.owner
        assert isinstance(op, Operation)
        for operand in reads(op):
            self.again(operand)
        copy = op.clone(self.mapped)
        self.into.add_op(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            self.mapped[old] = new
