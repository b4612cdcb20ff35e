"""Evaluate reductions of linalg.generic many points at a time, with sequential results.

If each result is combined with the previous one by an op that NumPy accumulates in order, the rest
of the body is evaluated for a run of reduction points at once, as it is for parallel axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.dialects.readings import Array, reference
from stepwell.dialects.upstream.scalar import element_of, numpy_type

POINTS = 1 << 20
"""Maximum elements evaluated in one run, parallel axes included."""
MIN_COMBINED = 64
"""Minimum elements at which combining whole arrays is as fast as accumulating."""

_COMBINE: dict[type[Operation], Any] = {
    arith.AddfOp: np.add,
    arith.MulfOp: np.multiply,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    arith.AddiOp: np.add,
    arith.MuliOp: np.multiply,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
}


@dataclass(frozen=True)
class Accumulation:
    """The ops that combine a body's terms with its results."""

    block: Block
    combining: tuple[Operation, ...]
    values: tuple[SSAValue, ...]

    def over(self, result: int, state: Array, terms: Array) -> Array:
        """Combine the terms along the first axis with a result, one after the other."""
        combine = _COMBINE[type(self.combining[result])]
        if state.size < MIN_COMBINED:
            both = np.concatenate([state[None], terms.astype(state.dtype, copy=False)])
            return combine.accumulate(both, dtype=state.dtype)[-1]
        state = state.copy()
        for term in terms:
            combine(state, term, out=state)
        return state


def accumulation_of(op: linalg.GenericOp, arrays: Sequence[Array]) -> Accumulation | None:
    """Return how ``op`` reduces; None if it does not, or not in a simple form."""
    block, first = op.body.block, len(op.inputs)
    kinds = enumerate(op.iterator_types)
    spanned = {d for d, kind in kinds if kind == IteratorTypeAttr.parallel()}
    handed = block.last_op.operands if block.last_op else ()
    combining: list[Operation] = []
    values: list[SSAValue] = []
    for k, value in enumerate(handed):
        combine, old = value.owner, block.args[first + k]
        kind = numpy_type(element_of(value.type))
        if not isinstance(combine, Operation) or type(combine) not in _COMBINE:
            return None
        if value.uses.get_length() != 1 or old.uses.get_length() != 1 or kind == np.bool_:
            return None
        if old not in combine.operands or isinstance(element_of(value.type), BFloat16Type):
            return None
        map = op.indexing_maps.data[first + k].data
        at = [e.position if isinstance(e, AffineDimExpr) else -1 for e in map.results]
        if len(at) != len(spanned) or {*at} != spanned:
            return None
        combining.append(combine)
        values.append(next(v for v in combine.operands if v is not old))
    created = {r for c in combining for r in c.results}
    if not all(reference.get(type(o)) or isinstance(o, linalg.IndexOp) for o in _others(block)):
        return None
    if any(v in created or _is_result(v, block, first) for v in values):
        return None
    outs = arrays[first:]
    if any(np.may_share_memory(out, a) for out in outs for a in arrays if a is not out):
        return None
    return Accumulation(block, tuple(combining), tuple(values))


def runs(sizes: Sequence[int], others: Sequence[int], elements: int) -> Iterator[list[Array]]:
    """Yield the points of the axes ``others`` in runs, as one array for each axis."""
    shape = [sizes[d] for d in others]
    number, length = math.prod(shape), max(1, POINTS // max(elements, 1))
    for start in range(0, number, length):
        yield list(np.unravel_index(np.arange(start, min(start + length, number)), shape))


def _others(block: Block) -> list[Operation]:
    return [op for op in block.ops if op is not block.last_op]


def _is_result(value: SSAValue, block: Block, first: int) -> bool:
    return isinstance(value, BlockArgument) and value.block is block and value.index >= first
