"""Reductions as generics into filled destinations, in the accumulator's arithmetic.

f16 and bf16 accumulate in f32; a second generic then rounds the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.core.dtypes import DType
from stepwell.core.shapes.reduction import windows
from stepwell.dialects.nd.reduction import (
    AND,
    CUMULATIVES,
    MAX,
    MIN,
    OR,
    PROD,
    REDUCTIONS,
    SUM,
    WINDOWS,
    ArgmaxOp,
    ArgminOp,
    ArgReduceOp,
    Combiner,
    CumulativeOp,
    ReduceOp,
    WindowOp,
)
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, computed_in, signless_element
from stepwell.lowering.nd_to_linalg.generic import constant, filled, generic, mapped
from stepwell.lowering.nd_to_linalg.shape import (
    iterators,
    padded,
    result_type,
    reversed_along,
    turned_along,
)
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

Operands = Sequence[SSAValue]

_COMBINE: dict[Combiner, Callable[[Body, SSAValue, SSAValue], SSAValue]] = {
    SUM: Body.add,
    PROD: Body.mul,
    MAX: Body.max,
    MIN: Body.min,
    AND: Body.both,
    OR: Body.either,
}


def _identity(lowering: Lowering, combiner: Combiner, of: Attribute) -> SSAValue:
    """Return the identity as a scalar of the accumulator's type."""
    kind = computed_in(dtype(of))
    return constant(lowering, combiner.identity(kind), kind)


def _accumulator(
    lowering: Lowering, combiner: Combiner, of: Attribute, sizes: Sequence[Size]
) -> SSAValue:
    """Return a destination filled with the identity."""
    into = Sizes(lowering).empty(sizes, signless_element(computed_in(dtype(of))))
    return filled(lowering, _identity(lowering, combiner, of), into)


def _rounded(lowering: Lowering, y: SSAValue, of: Attribute) -> SSAValue:
    """Return an accumulated result in the element type of the op's result."""
    kind = computed_in(dtype(of))
    if kind == dtype(of):
        return y
    return mapped(lowering, [y], of, lambda b, x, _: b.narrow(x, of), kind)[0]


@lower(*REDUCTIONS)
def _reduce(lowering: Lowering, op: ReduceOp, operands: Operands) -> Operands:
    (x,) = operands
    along, of = axes(op.axes), element(op.x)
    if not along:
        return (x,)
    sizes, rank, combine = Sizes(lowering), len(shape_of(op.x)), _COMBINE[op.COMBINER]
    kept = [axis for axis in range(rank) if axis not in along]
    into = _accumulator(lowering, op.COMBINER, of, [sizes.of(x, axis) for axis in kept])
    maps = [AffineMap.identity(rank), _onto(rank, kept)]

    def body(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
        return combine(b, y, b.widen(x))

    kind = computed_in(dtype(of))
    (y,) = generic(lowering, [x], [into], maps, iterators(rank, along), body, kind)
    return (_rounded(lowering, y, of),)


def _onto(rank: int, axes: Sequence[int]) -> AffineMap:
    return AffineMap(rank, 0, tuple(AffineExpr.dimension(axis) for axis in axes))


@lower(ArgmaxOp, ArgminOp)
def _arg_reduce(lowering: Lowering, op: ArgReduceOp, operands: Operands) -> Operands:
    """Carry the best element and its index; take another if it is better, or the first NaN.

    Along a contiguous axis, find the best element first, then its first index: two reductions in
    any order, which can be vectorized.
    """
    (x,) = operands
    if op.axis.value.data == len(shape_of(op.x)) - 1:
        return (_arg_reduce_contiguous(lowering, op, x),)
    axis, of, place = op.axis.value.data, element(op.x), element(op.y)
    sizes, rank = Sizes(lowering), len(shape_of(op.x))
    kept = [a for a in range(rank) if a != axis]
    extents = [sizes.of(x, a) for a in kept]
    combiner, better = (MAX, "gt") if isinstance(op, ArgmaxOp) else (MIN, "lt")
    best = _accumulator(lowering, combiner, of, extents)
    zero = constant(lowering, 0, dtype(place))
    places = filled(lowering, zero, sizes.empty(extents, place))

    def body(b: Body, x: SSAValue, y: SSAValue, at: SSAValue) -> Sequence[SSAValue]:
        x = b.widen(x)
        take = b.compare(better, x, y)
        if b.floats:
            known = b.emit(arith.CmpfOp(y, y, "ord"))
            take = b.either(take, b.both(b.is_nan(x), known))
        here = b.emit(arith.IndexCastOp(b.index(axis), place))
        return b.select(take, x, y), b.select(take, here, at)

    maps = [AffineMap.identity(rank), _onto(rank, kept), _onto(rank, kept)]
    kind = computed_in(dtype(of))
    return generic(lowering, [x], [best, places], maps, iterators(rank, [axis]), body, kind)[1:]


def _arg_reduce_contiguous(lowering: Lowering, op: ArgReduceOp, x: SSAValue) -> SSAValue:
    """Find the best along the last axis, then the first index of an equal element or NaN.

    The index accumulator starts at the last index, which is an upper bound.
    """
    of, place, rank = element(op.x), element(op.y), len(shape_of(op.x))
    sizes, axis, kind = Sizes(lowering), rank - 1, computed_in(dtype(of))
    combiner = MAX if isinstance(op, ArgmaxOp) else MIN
    extents = [sizes.of(x, a) for a in range(axis)]
    best = _accumulator(lowering, combiner, of, extents)
    maps = [AffineMap.identity(rank), _onto(rank, range(axis))]
    loops = iterators(rank, [axis])

    def better(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
        return _COMBINE[combiner](b, y, b.widen(x))

    (best,) = generic(lowering, [x], [best], maps, loops, better, kind)

    last = sizes.sub(sizes.max(sizes.of(x, axis), 1), 1)
    counted = _index_type(place, kind, last)
    if isinstance(last, int):
        start = constant(lowering, last, dtype(counted))
    else:
        start = lowering.insert(arith.IndexCastOp(last, signless_element(dtype(counted)))).result
    places = filled(lowering, start, sizes.empty(extents, counted))

    def first(b: Body, x: SSAValue, best: SSAValue, at: SSAValue) -> SSAValue:
        x = b.widen(x)
        found = b.compare("eq", x, best)
        if b.floats:
            found = b.either(found, b.is_nan(x))
        here = b.emit(arith.IndexCastOp(b.index(axis), at.type))
        none = b.constant((1 << (8 * dtype(counted).bytes - 1)) - 1, at.type)
        return b.of(dtype(counted)).min(at, b.select(found, here, none))

    maps = [AffineMap.identity(rank), _onto(rank, range(axis)), _onto(rank, range(axis))]
    (y,) = generic(lowering, [x, best], [places], maps, loops, first, kind)
    if counted == place:
        return y

    wide: Any = place

    def widened(b: Body, at: SSAValue, _: SSAValue) -> SSAValue:
        return b.emit(arith.ExtSIOp(at, wide))

    return mapped(lowering, [y], place, widened, dtype(counted))[0]


def _index_type(place: Any, kind: DType, last: Size) -> Any:
    """Return the type in which indices are compared: as wide as the elements, if that suffices.

    Then as many indices as elements fit in a vector. An unknown `last` fits in 32 bits, as the
    check of the sizes of a call says.
    """
    bits = max(8 * kind.bytes, 16)
    if bits >= 8 * dtype(place).bytes:
        return place
    if not isinstance(last, int):
        return IntegerType(32) if bits <= 32 else place
    return next((IntegerType(n) for n in (16, 32) if n >= bits and last < (1 << n - 1) - 1), place)


@lower(*CUMULATIVES)
def _cumulative(lowering: Lowering, op: CumulativeOp, operands: Operands) -> Operands:
    """Carry the accumulator as a second output while writing the running results.

    From the end on, the maps of both input and output are reversed.
    """
    (x,) = operands
    axis, of = op.axis.value.data, element(op.x)
    sizes, rank, combine = Sizes(lowering), len(shape_of(op.x)), _COMBINE[op.COMBINER]
    extents = sizes.all_of(x)
    turned = turned_along(rank, axis, extents[axis]) if op.reverse else AffineMap.identity(rank)
    copied = turned is None
    x = reversed_along(lowering, x, [axis]) if copied else x
    kept = [a for a in range(rank) if a != axis]
    running = sizes.empty(extents, result_type(op).element_type)
    total = _accumulator(lowering, op.COMBINER, of, [extents[a] for a in kept])

    def body(b: Body, x: SSAValue, y: SSAValue, before: SSAValue) -> Sequence[SSAValue]:
        after = combine(b, before, b.widen(x))
        return b.narrow(before if op.exclusive else after, y.type), after

    walk = AffineMap.identity(rank) if turned is None else turned
    maps = [walk, walk, _onto(rank, kept)]
    inputs, kind = [x], computed_in(dtype(of))
    if walk != AffineMap.identity(rank):  # no map gives the extent of the reversed loop
        inputs.append(sizes.empty([extents[axis]], tensor_type(x).element_type))
        maps.insert(1, _onto(rank, [axis]))

    def step(b: Body, *scalars: SSAValue) -> Sequence[SSAValue]:
        return body(b, scalars[0], *scalars[-2:])

    y, _ = generic(lowering, inputs, [running, total], maps, iterators(rank, [axis]), step, kind)
    return (reversed_along(lowering, y, [axis]) if copied else y,)


@lower(*WINDOWS)
def _window(lowering: Lowering, op: WindowOp, operands: Operands) -> Operands:
    """Loop over the result, then over the window, whose sizes are those of an unused tensor."""
    (x,) = operands
    of, type = element(op.x), result_type(op)
    window, strides, low, high, dilation = op.geometry
    sizes, rank = Sizes(lowering), len(window)
    extents = [
        _windows(sizes, sizes.of(x, axis), *each)
        for axis, each in enumerate(zip(*op.geometry, strict=True))
    ]
    if 0 in type.get_shape():
        return (sizes.empty_as(extents, type),)
    if any((*low, *high)):
        narrow = dtype(of)
        border = constant(lowering, op.COMBINER.identity(narrow), narrow)
        x = padded(lowering, x, border, low, high)
    into = _accumulator(lowering, op.COMBINER, of, extents)
    wide = [axis for axis in range(rank) if window[axis] > 1]
    loops = rank + len(wide)
    reads: list[AffineExpr] = [
        AffineExpr.dimension(axis) * strides[axis]
        if strides[axis] > 1
        else AffineExpr.dimension(axis)
        for axis in range(rank)
    ]
    for k, axis in enumerate(wide):
        step = AffineExpr.dimension(rank + k)
        reads[axis] = reads[axis] + (step * dilation[axis] if dilation[axis] > 1 else step)
    shape = sizes.empty([window[axis] for axis in wide], tensor_type(x).element_type)
    maps = [
        AffineMap(loops, 0, tuple(reads)),
        _onto(loops, range(rank, loops)),
        _onto(loops, range(rank)),
    ]
    combine = _COMBINE[op.COMBINER]

    def body(b: Body, x: SSAValue, _: SSAValue, y: SSAValue) -> SSAValue:
        return combine(b, y, b.widen(x))

    kind = computed_in(dtype(of))
    (y,) = generic(
        lowering, [x, shape], [into], maps, iterators(loops, range(rank, loops)), body, kind
    )
    return (_rounded(lowering, y, of),)


def _windows(
    sizes: Sizes, n: Size, window: int, stride: int, low: int, high: int, dilation: int
) -> Size:
    """Return the number of windows along an axis."""
    if isinstance(n, int):
        return windows(n, window, stride, low, high, dilation)
    reach = (window - 1) * dilation + 1
    if (reach, stride, low, high) == (1, 1, 0, 0):
        return n
    return sizes.div(sizes.max(sizes.add(n, low + high - reach + stride), 0), stride)
