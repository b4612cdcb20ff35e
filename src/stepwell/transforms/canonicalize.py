"""Simplify a module of any floor: dead ops, constants, exact identities.

Before:  %one = nd.full 1.0 : tensor<4xf32>
         %y = nd.mul %x, %one : tensor<4xf32>
After:   %y is %x

Afterwards no op is left that is dead, that computes on constants only (of at most `folding.LIMIT`
elements), or that a `simplify` rule or a pattern of its class still rewrites. Results are
bit-identical; dialects/nd/identities says which identities are left out.
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
    """Fold constants, apply exact identities and the ops' own patterns, erase dead ops."""

    name = "canonicalize"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplify the whole module."""
        canonicalize(op)


def canonicalize(root: Operation) -> None:
    """Simplify everything inside ``root``."""
    _Worklist(root).run()


class _Kind(NamedTuple):
    """The rewrites of ops of one class."""

    foldable: bool
    simplify: Any
    patterns: tuple[RewritePattern, ...]


@cache
def _kind_of(kind: type[Operation]) -> _Kind:
    return _Kind(foldable(kind), readings.simplify.get(kind), _patterns_of(kind))


def _patterns_of(kind: type[Operation]) -> tuple[RewritePattern, ...]:
    """Return the canonicalization patterns of a class, except xDSL's of arith and memref.

    Our own rules replace the first; the second do not support our buffers' layouts.
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
"""The average number of rewrites per op from which rules are assumed not to terminate."""


class _Worklist:
    """Ops to visit (again), last in first out; initially all, in program order."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.stack = [op for op in root.walk() if op is not root]
        self.stack.reverse()
        self.waiting = set(self.stack)
        self.gone: set[Operation] = set()
        self.busy: dict[Operation, bool] = {}
        """Caches which ops with regions contain side effects."""
        self.location: LocationAttr = UNKNOWN
        self.left = REWRITES_PER_OP * (len(self.stack) + 16)
        self.listener = PatternRewriterListener(
            operation_insertion_handler=[self.inserted],
            operation_removal_handler=[self.removed],
            operation_modification_handler=[self.push],
            operation_replacement_handler=[self.replaced],
        )

    def run(self) -> None:
        """Visit ops until the worklist is empty."""
        while self.stack:
            op = self.stack.pop()
            self.waiting.discard(op)
            if op not in self.gone:
                self.visit(op)

    def push(self, op: Operation) -> None:
        """Add ``op`` to the worklist."""
        if op not in self.waiting and op is not self.root:
            self.waiting.add(op)
            self.stack.append(op)

    def visit(self, op: Operation) -> None:
        """Rewrite one op, if a rewrite applies."""
        if is_dead(op, self.busy):
            self.forgotten(op)
            op.detach()
            op.erase()
            return
        kind = _kind_of(type(op))
        if not (kind.foldable or kind.simplify or kind.patterns):
            return
        if INDEPENDENT in op.attributes:  # keep even a loop of one iteration: it becomes one kernel
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
        """Return the values that replace the results of ``op``, by folding or simplification."""
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
        """Replace the results of ``op`` by ``values``."""
        self.replaced(op, values)
        for result, value in zip(op.results, values, strict=True):
            if value.name_hint is None:
                value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
        self.forgotten(op)
        op.detach()
        op.erase()

    def inserted(self, op: Operation) -> None:
        """Give a new op the location of its origin, and visit it and its nested ops."""
        for each in op.walk():
            if each.location == UNKNOWN:
                each.location = self.location
            self.push(each)

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Visit the users of ``op`` again, and fuse locations."""
        for result in op.results:
            for use in result.uses:
                self.push(use.operation)
        for value in values:
            if isinstance(value, OpResult) and value.op.location != op.location:
                value.op.location = fuse_locations((value.op.location, op.location))

    def removed(self, op: Operation) -> None:
        """Forget ``op``, which a pattern erases: its parent may have no side effects any more."""
        above = op.parent_op()
        while above is not None and self.busy.pop(above, None) is not None:
            self.push(above)
            above = above.parent_op()
        self.forgotten(op)

    def forgotten(self, op: Operation) -> None:
        """Forget ``op`` and its nested ops; visit its operands' ops, which may be dead now."""
        for each in op.walk():
            self.gone.add(each)
            for operand in each.operands:
                if not isinstance(operand.owner, Block):
                    self.push(operand.owner)

    def count(self, op: Operation) -> None:
        """Fail where rules rewrite each other's results endlessly."""
        self.left -= 1
        if self.left < 0:
            fail(op, f"canonicalize goes in circles, last at {op.name}")
