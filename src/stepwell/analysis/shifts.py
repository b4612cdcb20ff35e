"""Indices that are a loop index with an offset, possibly clamped: ``x[clamp(j + n)]``."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue


@dataclass
class Shift:
    """An index that moves with a loop, clamped to bounds."""

    loop: linalg.IndexOp
    plain: SSAValue
    """The index before it is clamped."""
    lows: list[SSAValue] = field(default_factory=list[SSAValue])
    highs: list[SSAValue] = field(default_factory=list[SSAValue])
    others: list[SSAValue] = field(default_factory=list[SSAValue])
    """All addends and bounds; the index is a shift if all of them are loop-invariant."""


def shift_of(value: SSAValue) -> Shift | None:
    """Return how an index moves with a loop; None if it does not, or in another way."""
    if not is_wide(value):
        return None
    match value.owner:
        case linalg.IndexOp():
            return Shift(value.owner, value)
        case arith.IndexCastOp(input=inner):
            found = shift_of(inner)
            if found is not None and found.plain is inner:
                found.plain = value
            return found
        case arith.MaxSIOp(lhs=a, rhs=b) | arith.MinSIOp(lhs=a, rhs=b):
            found, bound = (shift_of(a), b) if shift_of(a) is not None else (shift_of(b), a)
            if found is not None:
                limits = found.lows if isinstance(value.owner, arith.MaxSIOp) else found.highs
                limits.append(bound)
        case arith.AddiOp(lhs=a, rhs=b):
            found, bound = (shift_of(a), b) if shift_of(a) is not None else (shift_of(b), a)
            found = _moved(found, value)
        case arith.SubiOp(lhs=a, rhs=bound):
            found = _moved(shift_of(a), value)
        case _:
            return None
    if found is not None:
        found.others.append(bound)
    return found


def is_wide(value: SSAValue) -> bool:
    """Whether a number has 64 bits, in which loop indices do not wrap around."""
    kind = value.type
    return isinstance(kind, IndexType) or (isinstance(kind, IntegerType) and kind.width.data == 64)


def _moved(found: Shift | None, value: SSAValue) -> Shift | None:
    """Return a shift with a further offset; None if it is already clamped."""
    if found is None or found.lows or found.highs:
        return None
    found.plain = value
    return found
