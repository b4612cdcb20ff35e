"""What an op may do besides giving its results, asked once for each class where that is enough."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import (
    IsTerminator,
    MemoryEffect,
    NoMemoryEffect,
    RecursiveMemoryEffect,
    SymbolOpInterface,
    get_effects,
)
from xdsl.transforms.dead_code_elimination import result_only_effects

from stepwell.dialects import upstream

assert upstream, "imported for the effects it declares"


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
    nested = kind.has_trait(RecursiveMemoryEffect)
    return True if kind.has_trait(NoMemoryEffect) and not nested else None


def is_dead(op: Operation) -> bool:
    """Whether nobody would miss the op: its results are not used and it does nothing else."""
    removable = _removable(type(op))
    if removable is False:
        return False
    for result in op.results:
        if result.first_use is not None:
            return False
    return removable or _gives_results_only(op) or _does_nothing(op)


def _gives_results_only(op: Operation) -> bool:
    """Whether all that an op does is to give its results, and to read memory."""
    if not op.results or not result_only_effects(op):
        return False
    return not op.regions or all(_says_all(type(each)) for each in op.walk())


def _does_nothing(op: Operation) -> bool:
    """Whether an op without results touches no memory, like a loop emptied of its stores."""
    return not op.results and bool(op.regions) and _touches_nothing(op)


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
                return False
            continue
        kind = type(each)
        if not _says_all(kind):
            return False
        if not (_as_its_regions(kind) or _pure(kind) or get_effects(each) == set()):
            return False
        for region in each.regions:
            for block in region.blocks:
                waiting += block.ops
    return True


@cache
def _pure(kind: type[Operation]) -> bool:
    """Whether no op of a class touches memory."""
    return kind.has_trait(NoMemoryEffect) and not kind.has_trait(RecursiveMemoryEffect)


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
