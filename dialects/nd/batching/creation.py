"""Batching of creation ops: random bits for batched keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.batching.walk import Batch
from stepwell.dialects.nd.bitwise import OrOp, ShiftLeftOp, ShiftRightOp, XorOp
from stepwell.dialects.nd.creation import (
    PARITY,
    ROTATIONS,
    ConstantOp,
    FullOp,
    IotaOp,
    RandomBitsOp,
)
from stepwell.dialects.nd.shape import SliceOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import batching
from stepwell.dialects.types import dtype, element_type

batching.none(ConstantOp, FullOp, IotaOp, reason="it is one for the whole batch")

UI32, UI64 = element_type("ui32"), element_type("ui64")


@batching(RandomBitsOp)
def _random_bits(b: Batch, op: RandomBitsOp) -> Sequence[SSAValue]:
    """Write the cipher in `nd` ops; each example gets the same bits as without the batch."""
    dynamic = iter(op.sizes)
    sizes: list[int | SSAValue] = [next(dynamic) if n == DYNAMIC else n for n in shape_of(op.y)]
    total = reduce(b.product, sizes, 1)
    rest = [] if isinstance(total, int) else [total]
    row = TensorType(UI64, [total if isinstance(total, int) else DYNAMIC])
    place = b.of(IotaOp(row, 0, rest))
    places = b.lead(place)
    start = b.along(b.read(op.start), places, [0] if b.has(op.start) else [])
    counter = b.add(places, start)
    shift = b.full(counter, 32)
    low, high = (b.cast(c, UI32) for c in (counter, b.of(ShiftRightOp(counter, shift))))
    low, high = _threefry(b, _words(b, op, low), low, high)
    bits = low
    if dtype(element(op.y)).bytes == 8:
        high = b.of(ShiftLeftOp(b.cast(high, UI64), shift))
        bits = b.of(OrOp(b.cast(low, UI64), high))
    return (b.shaped(bits, [*b.extents, *sizes]),)


def _words(b: Batch, op: RandomBitsOp, like: SSAValue) -> list[SSAValue]:
    """Return the two words of the keys, broadcast to the shape of ``like``."""
    key = b.read(op.key)
    if not b.has(op.key):
        words = [b.shaped(b.of(SliceOp(key, [i], [i + 1])), []) for i in (0, 1)]
        return [b.along(w, like, []) for w in words]
    parts = [b.of(SliceOp(key, [0, i], [END, i + 1])) for i in (0, 1)]
    return [b.along(b.shaped(p, b.extents), like, [0]) for p in parts]


def _threefry(
    b: Batch, key: Sequence[SSAValue], low: SSAValue, high: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Write the rounds of `stepwell.dialects.nd.creation.threefry`."""

    def differ(a: SSAValue, c: SSAValue) -> SSAValue:
        return b.of(XorOp(a, c))

    keys = (*key, differ(differ(*key), b.full(low, PARITY)))
    low, high = b.add(low, keys[0]), b.add(high, keys[1])
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            low = b.add(low, high)
            left = b.of(ShiftLeftOp(high, b.full(high, turn)))
            right = b.of(ShiftRightOp(high, b.full(high, 32 - turn)))
            high = differ(b.of(OrOp(left, right)), low)
        low = b.add(low, keys[(group + 1) % 3])
        high = b.add(b.add(high, keys[(group + 2) % 3]), b.full(high, group + 1))
    return low, high
