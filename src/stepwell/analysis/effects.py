"""Side effects of ops, cached by class where the class determines them."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation, SSAValue
from xdsl.traits import (
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from stepwell.dialects.upstream.effects import effects_of, is_quiet

_CONTROL = frozenset({"affine", "builtin", "func", "linalg", "scf", "test", "tosa"})
"""Dialects of xDSL whose ops with regions have no effects besides those of their regions."""


@cache
def _declares_all(kind: type[Operation]) -> bool:
    """Whether the declared effects of an op's class are complete.

    xDSL declares for acc.atomic.update, and all other ops of acc and omp, only the effects of their
    regions, although they start threads, copy memory, or update their operands.
    """
    if not kind.has_trait(RecursiveMemoryEffect) or not kind.__module__.startswith("xdsl."):
        return True
    return kind.name.partition(".")[0] in _CONTROL


@cache
def _removable(kind: type[Operation]) -> bool | None:
    """Whether an unused op of a class is removable: always, never, or (None) it depends."""
    if kind.has_trait(IsTerminator) or kind.has_trait(SymbolOpInterface):
        return False
    if not _declares_all(kind):
        return False
    return True if is_quiet(kind) else None


def is_dead(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether the op is dead: its results are unused and it has no visible effects.

    known : a cache of ops with regions that have effects, so that nested ops are visited once; code
        that erases an op with effects must remove the enclosing ops from it
    """
    removable = _removable(type(op))
    if removable is False:
        return False
    for result in op.results:
        if result.first_use is not None:
            return False
    if removable:
        return True
    if not op.regions:
        return bool(op.results) and _declares_all(type(op)) and _is_local(op, op)
    return _writes_only_own(op, known)


def _writes_only_own(op: Operation, known: dict[Operation, bool] | None) -> bool:
    """Whether an op, including its regions, writes only memory that it allocates itself."""
    waiting = [op]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if known is not None and known.get(each) is False:
            _record_effect(each, op, known)
            return False
        if _has_only_region_effects(kind) and _declares_all(kind):
            for region in each.regions:
                for block in region.blocks:
                    waiting += block.ops
        elif not (is_quiet(kind) or (_declares_all(kind) and _is_local(each, op))):
            _record_effect(each, op, known)
            return False
    return True


def _is_local(op: Operation, root: Operation) -> bool:
    """Whether an op inside ``root`` only reads, or allocates memory owned inside ``root``."""
    effects = effects_of(op)
    return effects is not None and all(
        each.kind is MemoryEffectKind.READ
        or (
            each.kind is MemoryEffectKind.ALLOC
            and isinstance(each.value, SSAValue)
            and root.is_ancestor(each.value.owner)
        )
        for each in effects
    )


def _record_effect(op: Operation, root: Operation, known: dict[Operation, bool] | None) -> None:
    """Record effects for an op and all enclosing ones up to ``root``."""
    at: Operation | None = op
    while known is not None and at is not None:
        known[at] = False
        at = None if at is root else at.parent_op()


@cache
def _has_only_region_effects(kind: type[Operation]) -> bool:
    """Whether an op of a class has exactly the effects of its regions."""
    effects = [t for t in kind.traits.traits if isinstance(t, MemoryEffect)]
    return bool(effects) and all(isinstance(t, RecursiveMemoryEffect) for t in effects)


def _touches_nothing(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether the op and its regions access no memory; nested ops are visited once."""
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if known is not None and (found := known.get(each)) is not None:
            if not found:
                _record_effect(each, op, known)
                return False
            continue
        kind = type(each)
        nothing = _has_only_region_effects(kind) or is_quiet(kind) or effects_of(each) == set()
        if not (nothing and _declares_all(kind)):
            _record_effect(each, op, known)
            return False
        for region in each.regions:
            for block in region.blocks:
                waiting += block.ops
    return True


def is_pure(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether the op neither reads nor writes memory, so that it may be moved.

    known : a cache of results for ops with regions, so that nested ops are visited once
    """
    removable = _removable(type(op))
    if removable is not None:
        return removable
    found = _touches_nothing(op, known)
    if known is not None and op.regions:
        known[op] = found
    return found
