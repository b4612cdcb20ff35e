"""Reverse mode: cotangents propagated backward through a list of ops by the gradient rules.

The backward ops are written after the forward ops and use their values: values that a rule uses are
kept. A value whose cotangent is not needed gets none, and zero cotangents are not materialized.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic, Place
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.bitwise import AndOp, NotOp, OrOp
from stepwell.dialects.nd.compare import SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.custom import StopGradientOp
from stepwell.dialects.nd.gradients.placed import side_by_side
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import decomposition, gradient, moves, partials
from stepwell.dialects.types import UNKNOWN, dtype, place_of


@dataclass(frozen=True)
class Cotangent:
    """The cotangent of a value, and the elements for which it counts.

    The unchosen branch of a select contributes nothing, even where its derivative is infinite or
    NaN; so products with derivatives are computed unmasked, and the mask is applied at the end.
    """

    value: SSAValue
    where: SSAValue | None = None
    """The mask of elements that count, the others being zero; None if all count."""


@dataclass(frozen=True)
class Reverse(Composer):
    """The backward pass of some ops, written at ``builder``.

    Rules ask `wants` whether an operand's cotangent is needed, and add to it by `accumulate`.
    """

    active: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that depend on the inputs of the derivative."""
    found: dict[SSAValue, list[Cotangent]] = field(default_factory=dict[SSAValue, list[Cotangent]])
    masks: dict[tuple[SSAValue, SSAValue], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, SSAValue], SSAValue]
    )
    """The conjunction of two masks; for a pair of equal masks, the negation."""

    def wants(self, value: SSAValue) -> bool:
        """Whether the cotangent of ``value`` is needed."""
        return value in self.active

    def accumulate(self, value: SSAValue, more: SSAValue, where: SSAValue | None = None) -> None:
        """Add ``more``, masked by ``where``, to the cotangent of ``value``."""
        if not self.wants(value):
            return
        if more.type != value.type:
            more = self.fitted(more, value)
        if more.type != value.type:
            said = f"a cotangent of {value.type} must have that type, got {more.type}"
            raise CompileError(Diagnostic("error", said, _place(value)))
        if value.name_hint is not None and isinstance(more, OpResult) and more.op in self.created:
            more.name_hint = f"d_{value.name_hint}"
        self.found.setdefault(value, []).append(Cotangent(more, where))

    def fitted(self, more: SSAValue, value: SSAValue) -> SSAValue:
        """Return ``more`` reshaped to the type of ``value``, whose known sizes may differ."""
        got, want = shape_of(more), shape_of(value)
        known = (a == b or DYNAMIC in (a, b) for a, b in zip(got, want, strict=False))
        if element(more) != element(value) or len(got) != len(want) or not all(known):
            return more
        sizes = self.sizes(value) if rules.reshape_unknown(got, want) else []
        return self.of(ReshapeOp(more, want, sizes))

    def follow(self, first: Operation | None, end: Operation | None) -> list[Operation]:
        """Mark the values that depend on active ones in the ops from ``first`` up to ``end``.

        Return these ops. Composite ops without a rule are replaced by their decompositions.
        """
        ops: list[Operation] = []
        op = first
        while op is not None and op is not end:
            if self.is_active(op):
                if not has_rule(op) and decomposition.get(type(op)) is not None:
                    op = expand(op)
                    continue
                self.active.update(r for r in op.results if is_float(r))
            ops.append(op)
            op = op.next_op
        return ops

    def is_active(self, op: Operation) -> bool:
        """Whether ``op`` reads an active value."""
        return type(op) is not StopGradientOp and any(v in self.active for v in reads(op))

    def run(self, ops: Sequence[Operation]) -> None:
        """Propagate cotangents backward through ``ops``, which `follow` returned."""
        for op in reversed(ops):
            cotangents = [self.take(r) for r in op.results]
            if any(c is not None for c in cotangents) and self.is_active(op):
                last = self.builder.insertion_point.insert_before
                block = self.builder.insertion_point.block
                before = block.last_op if last is None else last.prev_op
                self.through(op, cotangents)
                new = block.first_op if before is None else before.next_op
                while new is not None and new is not last:
                    if new.location == UNKNOWN:
                        new.location = op.location
                    new = new.next_op

    def through(self, op: Operation, cotangents: Sequence[Cotangent | None]) -> None:
        """Propagate the cotangents of the results of ``op`` to its operands."""
        kind = type(op)
        if isinstance(op, SelectOp):
            (only,) = cotangents
            assert only is not None
            for value, chosen in ((op.a, op.condition), (op.b, self.other(op.condition))):
                self.accumulate(value, only.value, self.both(only.where, chosen))
        elif (factors := partials.get(kind)) is not None:
            (only,) = cotangents
            assert only is not None
            for operand, factor in zip(op.operands, factors(self, op), strict=True):
                if factor is not None and self.wants(operand):
                    self.accumulate(operand, factor(only.value), only.where)
        elif (moved := moves.get(kind)) is not None:
            (only,) = cotangents
            assert only is not None
            where = None if only.where is None else moved(self, op, only.where)
            self.accumulate(op.operands[0], moved(self, op, only.value), where)
        elif (rule := gradient.get(kind)) is not None:
            rule(self, op, [None if c is None else self.plain(c) for c in cotangents])
        else:
            help = gradient.why_none(kind) or f"register a rule beside {kind.__name__}"
            said = f"{op.name} has no gradient"
            raise CompileError(Diagnostic("error", said, place_of(op), help=help))

    def through_plain(self, op: Operation, cotangents: Sequence[SSAValue | None]) -> None:
        """Propagate cotangents without masks to the operands of ``op``."""
        self.through(op, [None if g is None else Cotangent(g) for g in cotangents])

    def take(self, value: SSAValue) -> Cotangent | None:
        """Return the complete cotangent of ``value`` and forget it; None if it is zero."""
        parts = self.found.pop(value, None)
        if not parts:
            return None
        where = parts[0].where
        if any(p.where is not where for p in parts):
            where = self.anywhere([p.where for p in parts])
            parts = [Cotangent(self.plain(p)) for p in parts]
        if len(parts) == 1:
            return Cotangent(parts[0].value, where)
        first, *rest = side_by_side(self, [p.value for p in parts])
        total = self.wide(first)
        for part in rest:
            total = self.add(total, self.wide(part))
        total = self.cast(total, element(value))
        if value.name_hint is not None:
            total.name_hint = f"d_{value.name_hint}"
        return Cotangent(total, where)

    def anywhere(self, masks: Sequence[SSAValue | None]) -> SSAValue | None:
        """Return the disjunction of ``masks``, None if one of them covers everything."""
        total: SSAValue | None = None
        for mask in dict.fromkeys(masks):
            if mask is None:
                return None
            total = mask if total is None else self.of(OrOp(total, mask))
        return total

    def plain(self, cotangent: Cotangent) -> SSAValue:
        """Return a cotangent as one value, with its mask applied."""
        if cotangent.where is None:
            return cotangent.value
        zero = self.full(cotangent.value, 0)
        return self.of(SelectOp(cotangent.where, cotangent.value, zero))

    def both(self, a: SSAValue | None, b: SSAValue) -> SSAValue:
        """Return the conjunction of two masks."""
        if a is None or a is b:
            return b
        if (found := self.masks.get((a, b))) is None:
            found = self.masks[a, b] = self.of(AndOp(a, b))
        return found

    def other(self, mask: SSAValue) -> SSAValue:
        """Return the negation of ``mask``."""
        if (found := self.masks.get((mask, mask))) is None:
            found = self.masks[mask, mask] = self.of(NotOp(mask))
        return found

    def so_far(self, value: SSAValue) -> SSAValue:
        """Take the cotangent of ``value`` accumulated so far, zeros if there is none.

        A rule for a part of ``value`` adds into it and passes the result to `accumulate`: a loop
        that reads one element per step then writes one element per step, without arrays of zeros.
        """
        found = self.found_plain(value)
        return self.full(value, 0) if found is None else found

    def found_plain(self, value: SSAValue) -> SSAValue | None:
        """Take the cotangent of ``value`` as one value, None if it is zero."""
        found = self.take(value)
        return None if found is None else self.plain(found)

    def refuse(self, op: Operation, message: str, help: str = "") -> NoReturn:
        """Raise an error: ``op`` cannot be differentiated."""
        raise CompileError(Diagnostic("error", message, place_of(op), help=help))

    def result(self, value: SSAValue) -> SSAValue:
        """Return the final cotangent of ``value``: zeros if nothing depends on it."""
        found = self.take(value)
        if found is not None:
            return self.plain(found)
        zero = self.full(value, 0)
        if value.name_hint is not None:
            zero.name_hint = f"d_{value.name_hint}"
        return zero


def has_rule(op: Operation) -> bool:
    """Whether the class of ``op`` has a gradient rule, or a reason why there is none."""
    return any(table.covers(type(op)) for table in (partials, moves, gradient))


def is_float(value: SSAValue) -> bool:
    """Whether ``value`` is a tensor of floats: only these have cotangents."""
    return isinstance(value.type, TensorType) and dtype(element(value)).kind == "float"


def reads(op: Operation) -> Iterator[SSAValue]:
    """Return the operands of ``op`` and the captured values of its regions."""
    yield from op.operands
    if op.regions:
        for inside in op.walk():
            if inside is not op:
                yield from (v for v in inside.operands if not _is_inside(v, op))


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether ``value`` is defined in a region of ``op``."""
    block = value.owner if isinstance(value, BlockArgument) else value.owner.parent
    while block is not None:
        around = block.parent_op()
        if around is op:
            return True
        block = None if around is None else around.parent
    return False


def _place(value: SSAValue) -> Place | None:
    at = value.owner if not isinstance(value, BlockArgument) else value.owner.parent_op()
    return place_of(at) if isinstance(at, Operation) else None
