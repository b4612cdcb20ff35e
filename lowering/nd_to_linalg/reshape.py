"""nd.reshape as the fewest collapses and expansions of axes.

The axes of operand and result are divided into groups with the same elements; each group of the
operand is collapsed to one axis, then expanded to the group of the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.shape import result_type, view
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

Group = tuple[list[int], list[int]]


@dataclass
class Extent:
    """A product of sizes: the static factor, and the dynamic factors."""

    known: int = 1
    unknown: Counter[Hashable] = field(default_factory=Counter[Hashable])

    def times(self, other: Extent) -> Extent:
        """Return the product."""
        return Extent(self.known * other.known, self.unknown + other.unknown)

    def divides(self, other: Extent) -> bool:
        """Whether ``other`` is provably a multiple of this."""
        return other.known % self.known == 0 and self.unknown <= other.unknown


@lower(ReshapeOp)
def _reshape(lowering: Lowering, op: ReshapeOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    x, *dynamic = operands
    type = result_type(op)
    sizes = _result_sizes(lowering, op, x, dynamic)
    if 0 in (*shape_of(op.x), *shape_of(op.y)):
        return (Sizes(lowering).empty_as(sizes, type),)
    groups = _groups(_operand_extents(op), _result_extents(op))
    if not groups:  # one element: every `?` is 1
        x = _collapsed(lowering, _cast(lowering, x, [1] * len(shape_of(op.x))), [])
        return (view(lowering, x, sizes, []) if sizes else x,)
    x = _collapsed(lowering, x, [g[0] for g in groups])
    x = _cast(lowering, x, [_merged([type.get_shape()[a] for a in g[1]]) for g in groups])
    return (_expanded(lowering, x, [g[1] for g in groups], type, sizes),)


def _cast(lowering: Lowering, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Cast ``x`` to a type with more or fewer static sizes."""
    type = TensorType(tensor_type(x).element_type, shape)
    if type == x.type:
        return x
    return lowering.insert(tensor.CastOp.build(operands=[x], result_types=[type])).dest


def _result_sizes(
    lowering: Lowering, op: ReshapeOp, x: SSAValue, dynamic: Sequence[SSAValue]
) -> list[Size]:
    shape = shape_of(op.y)
    if DYNAMIC in shape and not dynamic:
        same = Sizes(lowering).of(x, shape_of(op.x).index(DYNAMIC))
        return [same if n == DYNAMIC else n for n in shape]
    rest = iter(dynamic)
    return [next(rest) if n == DYNAMIC else n for n in shape]


def _operand_extents(op: ReshapeOp) -> list[Extent]:
    return [_axis_extent(op.x, axis) for axis in range(len(shape_of(op.x)))]


def _result_extents(op: ReshapeOp) -> list[Extent]:
    shape = shape_of(op.y)
    if DYNAMIC in shape and not op.sizes:
        unknown = _axis_extent(op.x, shape_of(op.x).index(DYNAMIC))
        return [unknown if n == DYNAMIC else Extent(n) for n in shape]
    dynamic = iter(op.sizes)
    return [_value_extent(next(dynamic)) if n == DYNAMIC else Extent(n) for n in shape]


def _axis_extent(x: SSAValue, axis: int) -> Extent:
    n = shape_of(x)[axis]
    return Extent(1, Counter([(x, axis)])) if n == DYNAMIC else Extent(n)


def _value_extent(size: SSAValue) -> Extent:
    """Recover a product from the ops that compute ``size``."""
    match size.owner:
        case DimOp() as op:
            return _axis_extent(op.x, op.axis.value.data)
        case arith.ConstantOp(value=IntegerAttr(value=value)) if value.data > 0:
            return Extent(value.data)
        case arith.MuliOp() as op:
            return _value_extent(op.lhs).times(_value_extent(op.rhs))
        case _:
            return Extent(1, Counter([size]))


def _groups(x: Sequence[Extent], y: Sequence[Extent]) -> list[Group]:
    """Divide the axes of both sides into the smallest groups with provably the same elements."""
    if not x or not y:
        return []
    groups: list[Group] = []
    left, right = Extent(), Extent()
    i = j = 0
    group: Group = ([], [])
    while i < len(x) or j < len(y):
        behind = left.divides(right) and group[0] != [] and group[1] != []
        take_x = j == len(y) or (i < len(x) and (not group[0] or (bool(group[1]) and behind)))
        if take_x:
            left, group, i = left.times(x[i]), ([*group[0], i], group[1]), i + 1
        else:
            right, group, j = right.times(y[j]), (group[0], [*group[1], j]), j + 1
        if group[0] and group[1] and left == right:
            groups.append(group)
            left, right, group = Extent(), Extent(), ([], [])
    if group == ([], []):
        return groups
    if not groups or (group[0] and group[1]):
        return [*groups, group]
    last = groups[-1]
    return [*groups[:-1], (last[0] + group[0], last[1] + group[1])]


def _merged(sizes: Sequence[int]) -> int:
    product = 1
    for n in sizes:
        product = DYNAMIC if DYNAMIC in (n, product) else product * n
    return product


def _reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in g) for g in groups)


def _collapsed(lowering: Lowering, x: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
    shape, element = tensor_type(x).get_shape(), tensor_type(x).element_type
    if all(len(g) == 1 for g in groups) and len(groups) == len(shape):
        return x
    merged: Shape = tuple(_merged([shape[a] for a in g]) for g in groups)
    op = tensor.CollapseShapeOp.build(
        operands=[x],
        properties={"reassociation": _reassociation(groups)},
        result_types=[TensorType(element, merged)],
    )
    return lowering.insert(op).result


def _expanded(
    lowering: Lowering,
    x: SSAValue,
    groups: Sequence[Sequence[int]],
    type: TensorType,
    sizes: Sequence[Size],
) -> SSAValue:
    shape = type.get_shape()
    if all(len(g) == 1 for g in groups) and len(groups) == len(shape):
        return x
    unknown = [n for n in sizes if not isinstance(n, int)]
    op = tensor.ExpandShapeOp(x, unknown, _reassociation(groups), shape, type)
    return lowering.insert(op).result
