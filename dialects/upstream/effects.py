"""Declare the memory effects that xDSL's ops lack, so that cse, dce and licm can see through them.

An op without a declared effect counts as touching everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure

_Buffers = Callable[[Any], Iterable[SSAValue]]


def _effects(reads: _Buffers, writes: _Buffers) -> type[MemoryEffect]:
    """Return a trait: which operands an op reads and writes where they are buffers."""

    class BufferEffects(MemoryEffect):
        @classmethod
        def get_effects(cls, op: Operation) -> set[EffectInstance]:
            return {
                EffectInstance(kind, value)
                for kind, values in (
                    (MemoryEffectKind.READ, reads(op)),
                    (MemoryEffectKind.WRITE, writes(op)),
                )
                for value in values
                if isinstance(value.type, MemRefType)
            }

    return BufferEffects


_STRUCTURED = _effects(lambda op: op.operands, lambda op: op.outputs)
_FILL = _effects(lambda op: (), lambda op: op.outputs)
_READ = _effects(lambda op: op.operands, lambda op: ())
_WRITE = _effects(lambda op: (), lambda op: op.operands)

linalg.GenericOp.traits.add_trait(_STRUCTURED())
linalg.FillOp.traits.add_trait(_FILL())
for _op in (vector.LoadOp, vector.MaskedLoadOp):
    _op.traits.add_trait(_READ())
for _op in (vector.StoreOp, vector.MaskedStoreOp):
    _op.traits.add_trait(_WRITE())
for _op in (
    arith.ExtSIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    linalg.IndexOp,
    linalg.YieldOp,
    scf.YieldOp,
    vector.BitcastOp,
    vector.CreateMaskOp,
    vector.ReductionOp,
):
    _op.traits.add_trait(Pure())
