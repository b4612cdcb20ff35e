"""Say which memory ops of xDSL touch that declare nothing, for cse, dce and the like.

An op without a declared effect counts as touching everything. What is said here, our passes hear;
xDSL's classes stay as they are for whoever else uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    NoMemoryEffect,
    RecursiveMemoryEffect,
)

_Buffers = Callable[[Any], Iterable[SSAValue]]
_Effects = Callable[[Operation], Set[EffectInstance]]


def _effects(reads: _Buffers, writes: _Buffers) -> _Effects:
    """Return which operands an op reads and writes, where they are buffers."""

    def effects(op: Operation) -> Set[EffectInstance]:
        return {
            EffectInstance(kind, value)
            for kind, values in (
                (MemoryEffectKind.READ, reads(op)),
                (MemoryEffectKind.WRITE, writes(op)),
            )
            for value in values
            if isinstance(value.type, MemRefType)
        }

    return effects


_READ = _effects(lambda op: op.operands, lambda op: ())
_WRITE = _effects(lambda op: (), lambda op: op.operands)
_TOUCHING: dict[type[Operation], _Effects] = {
    linalg.GenericOp: _effects(lambda op: op.operands, lambda op: op.outputs),
    linalg.FillOp: _effects(lambda op: (), lambda op: op.outputs),
    vector.LoadOp: _READ,
    vector.MaskedLoadOp: _READ,
    vector.StoreOp: _WRITE,
    vector.MaskedStoreOp: _WRITE,
}
_QUIET = frozenset[type[Operation]](
    {
        arith.ExtSIOp,
        arith.RemSIOp,
        arith.RemUIOp,
        linalg.IndexOp,
        linalg.YieldOp,
        scf.YieldOp,
        vector.BitcastOp,
        vector.CreateMaskOp,
        vector.ReductionOp,
    }
)


class EndsCall(MemoryEffect):
    """What an op does that may end the call: as if it wrote, to nowhere in particular."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Return one write."""
        return {EffectInstance(MemoryEffectKind.WRITE)}


def is_quiet(kind: type[Operation]) -> bool:
    """Whether no op of a class touches memory, whatever it contains."""
    if kind in _QUIET:
        return True
    return kind.has_trait(NoMemoryEffect) and not kind.has_trait(RecursiveMemoryEffect)


def effects_of(op: Operation) -> Set[EffectInstance] | None:
    """Return what an op does to memory; None where nobody says."""
    kind = type(op)
    if kind in _QUIET:
        return frozenset()
    if (touching := _TOUCHING.get(kind)) is not None:
        return touching(op)
    said = op.get_traits_of_type(MemoryEffect)
    if not said:
        return None
    found: set[EffectInstance] = set()
    for trait in said:
        recursive = isinstance(trait, RecursiveMemoryEffect)
        effects = _inside(op) if recursive else trait.get_effects(op)
        if effects is None:
            return None
        found |= effects
    return found


def _inside(op: Operation) -> Set[EffectInstance] | None:
    found: set[EffectInstance] = set()
    for region in op.regions:
        for block in region.blocks:
            for each in block.ops:
                if (effects := effects_of(each)) is None:
                    return None
                found |= effects
    return found


def touches_nothing(op: Operation) -> bool:
    """Whether an op and all in it neither read nor write memory."""
    effects = effects_of(op)
    return effects is not None and not effects
