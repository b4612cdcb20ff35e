"""Move unit axes added by a reshape to the end: the axes of `keepdims` then block no rewrite."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.shapes.shape import reshape_unknown
from stepwell.dialects.nd.arithmetic import OPS as ARITHMETIC
from stepwell.dialects.nd.bitwise import OPS as BITWISE
from stepwell.dialects.nd.compare import OPS as COMPARE
from stepwell.dialects.nd.composite import OPS as COMPOSITE
from stepwell.dialects.nd.convert import OPS as CONVERT
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.rewrites.sizes import comes_from
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.nd.transcendental import OPS as TRANSCENDENTAL

_FAMILIES = (ARITHMETIC, BITWISE, COMPARE, COMPOSITE, CONVERT, TRANSCENDENTAL)
ELEMENTWISE = tuple(op for ops in _FAMILIES for op in ops if issubclass(op, Elementwise))


def added_units(op: ReshapeOp) -> Sequence[int] | None:
    """Return the result axis of each axis of ``x`` if all others have size 1, else None."""
    places: list[int] = []
    x = shape_of(op.x)
    for axis, n in enumerate(shape_of(op.y)):
        if len(places) < len(x) and x[len(places)] == n:
            places.append(axis)
        elif n != 1:
            return None
    if len(places) < len(x) or (x.count(DYNAMIC) > 1 and not _keeps_sizes(op)):
        return None
    return places


def _keeps_sizes(op: ReshapeOp) -> bool:
    """Whether the size operands of ``op`` are those of its operand, in order."""
    unknown = [axis for axis, n in enumerate(shape_of(op.x)) if n == DYNAMIC]
    return len(op.sizes) == len(unknown) and all(
        comes_from(size, op.x, axis) for size, axis in zip(op.sizes, unknown, strict=True)
    )


@canonicalizes(BroadcastOp)
class BroadcastOfUnitAxes(RewritePattern):
    """broadcast(reshape(x), d)  ->  broadcast(x, d'), if the reshape only adds unit axes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, rewriter: PatternRewriter) -> None:
        """Match the broadcast."""
        inner = op.x.owner
        if isinstance(inner, ReshapeOp) and (places := added_units(inner)) is not None:
            outer = axes(op.dims)
            dims = [outer[place] for place in places]
            rewriter.replace(op, BroadcastOp(inner.x, dims, shape_of(op.y), op.sizes))


@canonicalizes(TransposeOp)
class TransposeOfUnitAxes(RewritePattern):
    """transpose(reshape(x), p)  ->  reshape(x), if only added unit axes move past others."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        """Match the transpose."""
        inner = op.x.owner
        if not isinstance(inner, ReshapeOp) or (places := added_units(inner)) is None:
            return
        kept = [axis for axis in axes(op.permutation) if axis in places]
        if kept == sorted(kept):
            rewriter.replace(op, ReshapeOp(inner.x, shape_of(op.y), inner.sizes))


@canonicalizes(*ELEMENTWISE)
class ElementwiseOfUnitAxes(RewritePattern):
    """f(reshape(x), reshape(y))  ->  reshape(f(x, y)), if both add the same unit axes only.

    Other operands may be full or broadcast, or arguments, which can be reshaped for free.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Elementwise, rewriter: PatternRewriter) -> None:
        """Match an op with unit axes that can be removed from all operands."""
        added = [_added(v) for v in op.operands]
        units = frozenset[int]().union(*added)
        for each in added:
            units = units & each if each else units
        first = next((k for k, each in enumerate(added) if each), None)
        if first is None or not units or not all(_can_drop_units(v, units) for v in op.operands):
            return
        shape = shape_of(op.operands[0])
        small = tuple(n for axis, n in enumerate(shape) if axis not in units)
        reshape = op.operands[first].owner
        assert isinstance(reshape, ReshapeOp)
        sizes = tuple(reshape.sizes)
        unknown = small.count(DYNAMIC)
        if unknown > 1 and len(sizes) != unknown:
            return
        operands = [_drop_units(v, units, small, sizes, rewriter) for v in op.operands]
        inner = of_shape(op, operands, small)
        rewriter.replace(op, [inner, ReshapeOp(inner.y, shape, sizes)])


def of_shape(op: Elementwise, operands: Sequence[SSAValue], shape: Shape) -> Elementwise:
    """Return a copy of ``op`` on operands of another shape."""
    new = type(op).create(
        operands=operands,
        result_types=[TensorType(element(op.y), shape)],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )
    new.y.name_hint = op.y.name_hint
    return new


def _added(value: SSAValue) -> frozenset[int]:
    """Return the unit axes of ``value`` that a reshape adds."""
    op = value.owner
    if not isinstance(op, ReshapeOp) or len(shape_of(op.x)) >= len(shape_of(op.y)):
        return frozenset()
    places = added_units(op)
    return frozenset() if places is None else frozenset(range(len(shape_of(op.y)))) - set(places)


def _can_drop_units(value: SSAValue, units: frozenset[int]) -> bool:
    op = value.owner
    if isinstance(op, BroadcastOp):
        return not units & set(axes(op.dims))
    return isinstance(op, Block | FullOp | ConstantOp) or units <= _added(value)


def _drop_units(
    value: SSAValue,
    units: frozenset[int],
    shape: Shape,
    sizes: Sequence[SSAValue],
    rewriter: PatternRewriter,
) -> SSAValue:
    """Return ``value`` without these axes; if ``shape`` has several `?`, they are ``sizes``."""
    op = value.owner
    if isinstance(op, ReshapeOp) and shape_of(op.x) == shape:
        return op.x
    if isinstance(op, FullOp):
        return rewriter.insert(FullOp(op.value, TensorType(element(value), shape), op.sizes)).y
    if isinstance(op, BroadcastOp):
        dims = [axis - sum(unit < axis for unit in units) for axis in axes(op.dims)]
        return rewriter.insert(BroadcastOp(op.x, dims, shape, op.sizes)).y
    source = op.x if isinstance(op, ReshapeOp) else value
    needed = sizes if reshape_unknown(shape_of(source), shape) else ()
    return rewriter.insert(ReshapeOp(source, shape, needed)).y
