"""Declare memory effects of xDSL's ops that declare none, for cse, dce and the like.

An op without declared effects counts as accessing all memory. Only our passes use these
declarations; xDSL's classes are unchanged for other users.
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
    """Return a function from an op to its reads and writes of buffer operands."""

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
    """The effect of an op that may end the call: modelled as a write to unspecified memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Return one write."""
        return {EffectInstance(MemoryEffectKind.WRITE)}


def is_quiet(kind: type[Operation]) -> bool:
    """Whether no op of a class accesses memory, including its regions."""
    if kind in _QUIET:
        return True
    return kind.has_trait(NoMemoryEffect) and not kind.has_trait(RecursiveMemoryEffect)


def effects_of(op: Operation) -> Set[EffectInstance] | None:
    """Return the memory effects of an op; None if they are unknown."""
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
    """Whether an op and its regions neither read nor write memory."""
    effects = effects_of(op)
    return effects is not None and not effects
