"""What an op may do besides giving its results, asked once for each class where that is enough."""

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
"""Dialects of xDSL whose ops with regions do nothing that their regions do not do."""


@cache
def _says_all(kind: type[Operation]) -> bool:
    """Whether an op of a class has the effects that it declares, and no others.

    xDSL says of acc.atomic.update, and of all else in acc and omp, only that it has the effects of
    what it contains: it begins threads, copies memory, or updates what it is given.
    """
    if not kind.has_trait(RecursiveMemoryEffect) or not kind.__module__.startswith("xdsl."):
        return True
    return kind.name.partition(".")[0] in _CONTROL


@cache
def _removable(kind: type[Operation]) -> bool | None:
    """Whether an unused op of a class may go: always, never, or (None) it depends on the op."""
    if kind.has_trait(IsTerminator) or kind.has_trait(SymbolOpInterface):
        return False
    if not _says_all(kind):
        return False
    return True if is_quiet(kind) else None


def is_dead(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether nobody would miss the op: its results are not used and it does nothing else.

    known : ops with regions in which something is done, which are then asked once however deep
        they are; what erases an op that does something takes those around it out again
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
        return bool(op.results) and _says_all(type(op)) and _is_seen_by_none(op, op)
    return _reads_at_most(op, known)


def _reads_at_most(op: Operation, known: dict[Operation, bool] | None) -> bool:
    """Whether neither an op with regions nor any in it writes to what there is without it."""
    waiting = [op]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if known is not None and known.get(each) is False:
            _note(each, op, known)
            return False
        if _as_its_regions(kind) and _says_all(kind):
            for region in each.regions:
                for block in region.blocks:
                    waiting += block.ops
        elif not (is_quiet(kind) or (_says_all(kind) and _is_seen_by_none(each, op))):
            _note(each, op, known)
            return False
    return True


def _is_seen_by_none(op: Operation, root: Operation) -> bool:
    """Whether an op inside ``root`` only reads, or makes room for what ends with it."""
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


def _note(op: Operation, root: Operation, known: dict[Operation, bool] | None) -> None:
    """Note of an op and all around it, up to ``root``, that something is done."""
    at: Operation | None = op
    while known is not None and at is not None:
        known[at] = False
        at = None if at is root else at.parent_op()


@cache
def _as_its_regions(kind: type[Operation]) -> bool:
    """Whether an op of a class has the effects of what it contains and no others."""
    effects = [t for t in kind.traits.traits if isinstance(t, MemoryEffect)]
    return bool(effects) and all(isinstance(t, RecursiveMemoryEffect) for t in effects)


def _touches_nothing(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether neither the op nor any in it touches memory, asked of each of them once."""
    waiting = [op]
    while waiting:
        each = waiting.pop()
        if known is not None and (found := known.get(each)) is not None:
            if not found:
                _note(each, op, known)
                return False
            continue
        kind = type(each)
        nothing = _as_its_regions(kind) or is_quiet(kind) or effects_of(each) == set()
        if not (nothing and _says_all(kind)):
            _note(each, op, known)
            return False
        for region in each.regions:
            for block in region.blocks:
                waiting += block.ops
    return True


def is_pure(op: Operation, known: dict[Operation, bool] | None = None) -> bool:
    """Whether the op neither reads nor writes memory, so that it may be computed elsewhere.

    known : what was found out of ops with regions, which are then asked once however deep they are
    """
    removable = _removable(type(op))
    if removable is not None:
        return removable
    found = _touches_nothing(op, known)
    if known is not None and op.regions:
        known[op] = found
    return found
