"""Canonicalize slices, reversals, pads and concatenations that cancel, merge or have no effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.core.shapes.shape import END, slice_bounds
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.shape import ConcatOp, PadOp, ReverseOp, SliceOp
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.types import array, dtype, tensor_type

Range = tuple[int, int, int]
WHOLE: Range = (0, END, 1)


def _is_whole(n: int, bounds: Range) -> bool:
    if n == DYNAMIC:
        return bounds == WHOLE
    return (*slice_bounds(n, *bounds[:2]), bounds[2]) == (0, n, 1)


@canonicalizes(SliceOp)
class IdentitySlice(RewritePattern):
    """x[:, :]  ->  x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        """Match a slice that takes every axis whole."""
        if all(map(_is_whole, shape_of(op.x), op.ranges)):
            rewriter.replace(op, [], [op.x])


@canonicalizes(SliceOp)
class SliceOfSlice(RewritePattern):
    """x[a:b:s][c:d:t]  ->  x[a + c*s : e : s*t]."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        """Match the outer slice if the sizes allow one equivalent slice."""
        inner = op.x.owner
        if not isinstance(inner, SliceOp):
            return
        ranges: list[Range] = []
        for n, m, first, second in zip(
            shape_of(inner.x), shape_of(op.x), inner.ranges, op.ranges, strict=True
        ):
            both = _composed(n, m, first, second)
            if both is None:
                return
            ranges.append(both)
        starts, limits, strides = zip(*ranges, strict=True) if ranges else ((), (), ())
        merged = SliceOp(inner.x, starts, limits, strides)
        if merged.y.type == op.y.type:
            rewriter.replace(op, merged)


def _composed(n: int, m: int, first: Range, second: Range) -> Range | None:
    if _is_whole(m, second):
        return first
    if _is_whole(n, first):
        return second
    (a, b, s), (c, d, t) = first, second
    if n == DYNAMIC:
        simple = a >= 0 and c >= 0 and b == d == END
        return (a + c * s, END, s * t) if simple else None
    begin, _ = slice_bounds(n, a, b)
    c, d = slice_bounds(m, c, d)
    last = begin + (max(d - c, 1) - 1) // t * t * s + c * s
    return (begin + c * s, last + 1 if d > c else begin + c * s, s * t)


@canonicalizes(ReverseOp)
class ReverseOfUnits(RewritePattern):
    """reverse(x, axes)  ->  reverse(x, axes of size 2 or more); x, if there are none."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReverseOp, rewriter: PatternRewriter) -> None:
        """Match axes of at most one element."""
        shape, along = shape_of(op.x), axes(op.axes)
        kept = [axis for axis in along if shape[axis] not in (0, 1)]
        if not kept:
            rewriter.replace(op, [], [op.x])
        elif len(kept) < len(along):
            rewriter.replace(op, ReverseOp(op.x, kept))


@canonicalizes(ReverseOp)
class ReverseOfReverse(RewritePattern):
    """reverse(reverse(x, a), b)  ->  reverse(x, the axes in one of a and b)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReverseOp, rewriter: PatternRewriter) -> None:
        """Match the outer reversal."""
        inner = op.x.owner
        if isinstance(inner, ReverseOp):
            first, second = axes(inner.axes), axes(op.axes)
            either = [
                axis for axis in sorted({*first, *second}) if (axis in first) ^ (axis in second)
            ]
            rewriter.replace(op, ReverseOp(inner.x, either))


@canonicalizes(PadOp)
class IdentityPad(RewritePattern):
    """pad(x)  ->  x, if nothing is added."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        """Match amounts that are all 0."""
        if not any(n for amounts in op.amounts for n in amounts):
            rewriter.replace(op, [], [op.x])


@canonicalizes(PadOp)
class PadOfPad(RewritePattern):
    """pad(pad(x, v, a), v, b)  ->  pad(x, v, a + b), without interior padding."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        """Match the outer pad."""
        inner = op.x.owner
        if not isinstance(inner, PadOp) or inner.value is not op.value:
            return
        (low, high, between), (more_low, more_high, more) = inner.amounts, op.amounts
        if any((*between, *more)):
            return
        lows = [a + b for a, b in zip(low, more_low, strict=True)]
        highs = [a + b for a, b in zip(high, more_high, strict=True)]
        rewriter.replace(op, PadOp(inner.x, op.value, lows, highs))


@canonicalizes(ConcatOp)
class ConcatOfEmpties(RewritePattern):
    """concat(a, empty, b)  ->  concat(a, b), and concat(a)  ->  a."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter) -> None:
        """Match operands without elements along the axis, or a single one."""
        axis = op.axis.value.data
        kept = [x for x in op.xs if shape_of(x)[axis] != 0] or [op.xs[0]]
        if len(kept) == 1 and kept[0].type == op.y.type:
            rewriter.replace(op, [], [kept[0]])
        elif len(kept) < len(op.xs):
            _replace_concat(op, kept, rewriter)


@canonicalizes(ConcatOp)
class ConcatOfConcat(RewritePattern):
    """concat(concat(a, b), c)  ->  concat(a, b, c), along one axis."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter) -> None:
        """Match the outer concat, if it is the only reader of the inner one."""
        flat: list[SSAValue] = []
        for x in op.xs:
            inner = x.owner
            merges = isinstance(inner, ConcatOp) and inner.axis == op.axis and x.has_one_use()
            flat.extend(inner.xs if merges and isinstance(inner, ConcatOp) else [x])
        if len(flat) > len(op.xs):
            _replace_concat(op, flat, rewriter)


def _replace_concat(op: ConcatOp, xs: Sequence[SSAValue], rewriter: PatternRewriter) -> None:
    axis = op.axis.value.data
    if rules.concat([shape_of(x) for x in xs], axis) == shape_of(op.y):
        rewriter.replace(op, ConcatOp(xs, axis))


@canonicalizes(DynamicSliceOp)
class DynamicSliceAtConstant(RewritePattern):
    """dynamic_slice(x, constants)  ->  slice(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DynamicSliceOp, rewriter: PatternRewriter) -> None:
        """Match known starts along axes of known size."""
        shape = shape_of(op.x)
        ranges = [WHOLE] * len(shape)
        for start, axis, size in zip(op.starts, axes(op.axes), axes(op.lengths), strict=True):
            at = known_scalar(start)
            if at is None or DYNAMIC in (shape[axis], size):
                return
            begin = min(max(int(at), 0), shape[axis] - size)
            ranges[axis] = (begin, begin + size, 1)
        starts, limits, strides = zip(*ranges, strict=True)
        rewriter.replace(op, SliceOp(op.x, starts, limits, strides))


@canonicalizes(DynamicUpdateSliceOp)
class DynamicUpdateOfAll(RewritePattern):
    """dynamic_update_slice(x, update of x's size)  ->  update: starts are clamped to 0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DynamicUpdateSliceOp, rewriter: PatternRewriter) -> None:
        """Match equal types with known sizes."""
        if op.update.type == op.y.type and DYNAMIC not in shape_of(op.y):
            rewriter.replace(op, [], [op.update])


def known_scalar(value: SSAValue) -> Any:
    """Return the constant value of an index or 0-d tensor, None if it is not known."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return number.data
        case FullOp() as op:
            kind = dtype(tensor_type(op.y).element_type)
            return kind.round(np.asarray(op.value.value.data))[()]
        case ConstantOp(value=DenseIntOrFPElementsAttr() as data):
            return array(data).reshape(-1)[0]
        case _:
            return None
