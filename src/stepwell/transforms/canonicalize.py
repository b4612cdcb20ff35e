"""Bring a module of any floor to its simplest form: dead ops, constants, exact identities.

Before:  %one = nd.full 1.0 : tensor<4xf32>
         %y = nd.mul %x, %one : tensor<4xf32>
After:   %y is %x

Afterwards no op is left that is unused and without effect, that computes on constants only (of
at most `folding.LIMIT` elements), or that a `simplify` rule or a pattern of its class
still rewrites. Results are the same bit for bit; see dialects/nd/identities for what is not done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.traits import HasCanonicalizationPatternsTrait

from stepwell.analysis.effects import is_dead
from stepwell.dialects import nd, readings
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.types import UNKNOWN, fuse_locations
from stepwell.transforms.folding import foldable, folded
from stepwell.transforms.passes import Pass, fail

assert nd, "imported for its rules and patterns"


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Fold constants, apply exact identities and the ops' own patterns, drop what is dead."""

    name = "canonicalize"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplify the whole module."""
        canonicalize(op)


def canonicalize(root: Operation) -> None:
    """Simplify everything inside ``root``."""
    _Worklist(root).run()


class _Kind(NamedTuple):
    """What can be done with ops of one class."""

    foldable: bool
    simplify: Any
    patterns: tuple[RewritePattern, ...]


@cache
def _kind_of(kind: type[Operation]) -> _Kind:
    return _Kind(foldable(kind), readings.simplify.get(kind), _patterns_of(kind))


def _patterns_of(kind: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the patterns of a class; those xDSL gives arith and memref are not used.

    The first are replaced by our own rules, the second do not know our buffers' layouts.
    """
    if kind.name.startswith(("arith.", "memref.")):
        return ()
    return tuple(
        pattern
        for trait in kind.traits.traits
        if isinstance(trait, HasCanonicalizationPatternsTrait)
        for pattern in trait.get_patterns(kind)
    )


REWRITES_PER_OP = 64
"""So often, on average, an op may be rewritten before the rules count as going in circles."""


class _Worklist:
    """Ops to look at (again), last in first out; at first all, in program order."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.stack = [op for op in root.walk() if op is not root]
        self.stack.reverse()
        self.waiting = set(self.stack)
        self.gone: set[Operation] = set()
        self.busy: dict[Operation, bool] = {}
        """Ops with regions in which something is done."""
        self.location: LocationAttr = UNKNOWN
        self.left = REWRITES_PER_OP * (len(self.stack) + 16)
        self.listener = PatternRewriterListener(
            operation_insertion_handler=[self.inserted],
            operation_removal_handler=[self.removed],
            operation_modification_handler=[self.push],
            operation_replacement_handler=[self.replaced],
        )

    def run(self) -> None:
        """Visit until nothing is left to visit."""
        while self.stack:
            op = self.stack.pop()
            self.waiting.discard(op)
            if op not in self.gone:
                self.visit(op)

    def push(self, op: Operation) -> None:
        """Look at ``op`` (again)."""
        if op not in self.waiting and op is not self.root:
            self.waiting.add(op)
            self.stack.append(op)

    def visit(self, op: Operation) -> None:
        """Rewrite one op, if anything can be done with it."""
        if is_dead(op, self.busy):
            self.forgotten(op)
            op.detach()
            op.erase()
            return
        kind = _kind_of(type(op))
        if not (kind.foldable or kind.simplify or kind.patterns):
            return
        if INDEPENDENT in op.attributes:  # of one iteration too, it is one kernel
            return
        self.location = op.location
        if (results := self.computed(op, kind)) is not None:
            self.count(op)
            self.replace(op, results)
            return
        for pattern in kind.patterns:
            rewriter = PatternRewriter(op)
            rewriter.extend_from_listener(self.listener)
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                self.count(op)
                if op not in self.gone and op.parent is not None:
                    self.push(op)
                return

    def computed(self, op: Operation, kind: _Kind) -> Sequence[SSAValue] | None:
        """Return what the results of ``op`` are, folded or simplified."""
        if not (kind.foldable or kind.simplify):
            return None
        builder = Builder(InsertPoint.before(op))
        builder.operation_insertion_handler.append(self.inserted)
        if kind.foldable and (results := folded(builder, op)) is not None:
            return results
        if kind.simplify and (value := kind.simplify(builder, op)) is not None:
            return (value,)
        return None

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Put ``values`` in the place of the results of ``op``."""
        self.replaced(op, values)
        for result, value in zip(op.results, values, strict=True):
            if value.name_hint is None:
                value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
        self.forgotten(op)
        op.detach()
        op.erase()

    def inserted(self, op: Operation) -> None:
        """Locate a new op where it comes from, and look at it and all it contains."""
        for each in op.walk():
            if each.location == UNKNOWN:
                each.location = self.location
            self.push(each)

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Look at the users of ``op`` again, and unite locations."""
        for result in op.results:
            for use in result.uses:
                self.push(use.operation)
        for value in values:
            if isinstance(value, OpResult) and value.op.location != op.location:
                value.op.location = fuse_locations((value.op.location, op.location))

    def removed(self, op: Operation) -> None:
        """Forget ``op``, which a pattern drops: what is around it may do nothing any more."""
        above = op.parent_op()
        while above is not None and self.busy.pop(above, None) is not None:
            self.push(above)
            above = above.parent_op()
        self.forgotten(op)

    def forgotten(self, op: Operation) -> None:
        """Forget ``op`` and all it contains; what it used may be dead now."""
        for each in op.walk():
            self.gone.add(each)
            for operand in each.operands:
                if not isinstance(operand.owner, Block):
                    self.push(operand.owner)

    def count(self, op: Operation) -> None:
        """Stop where rules rewrite each other's results for ever."""
        self.left -= 1
        if self.left < 0:
            fail(op, f"canonicalize goes in circles, last at {op.name}")
