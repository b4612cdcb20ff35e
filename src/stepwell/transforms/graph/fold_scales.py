"""Fold the scaling of a product into its weights, as of a batch norm after a convolution.

Before:  %y = nd.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> ...
         %m = nd.broadcast %mean {dims = [1]} : tensor<4xf32> -> tensor<1x4x6x6xf32>
         %c = nd.sub %y, %m : tensor<1x4x6x6xf32>
         %f = nd.broadcast %scale {dims = [1]} : tensor<4xf32> -> tensor<1x4x6x6xf32>
         %z = nd.mul %c, %f : tensor<1x4x6x6xf32>
After:   %f = nd.broadcast %scale {dims = [0]} : tensor<4xf32> -> tensor<4x3x3x3xf32>
         %v = nd.mul %w, %f : tensor<4x3x3x3xf32>
         %y = nd.convolution %x, %v : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> ...
         %n = nd.neg %mean : tensor<4xf32>
         %b = nd.mul %n, %scale : tensor<4xf32>
         %c = nd.broadcast %b {dims = [1]} : tensor<4xf32> -> tensor<1x4x6x6xf32>
         %z = nd.add %y, %c : tensor<1x4x6x6xf32>

Afterwards no product of 32- or 64-bit floats with constant weights is followed by ops that scale
and shift its features by constants only: the weights are scaled and the shifts are one addition.
This is computed once, when the program is loaded. If it had to be computed in each call, it is done
only for weights that are much smaller than a large result. Products with other users are unchanged,
and so is the code inside loops and branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.analysis.effects import is_dead, is_pure
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.contraction import free_axes
from stepwell.dialects.nd.arithmetic import AddOp, DivOp, MulOp, NegOp, SubOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.contraction import ContractionOp, ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import UNKNOWN, fuse_locations
from stepwell.transforms.passes import Numerics, Pass

StepOp: TypeAlias = AddOp | SubOp | MulOp | DivOp
Axes: TypeAlias = tuple[int, ...]


MIN_RESULT_ELEMENTS = 1 << 14
"""The number of elements of a result from which scaling its weights in each call pays."""
SMALLER = 4
"""The ratio of result to weight elements from which weights are scaled in each call."""


@dataclass(frozen=True)
class FoldScales(Pass):
    """Scale weights instead of the product.

    hoist_constants : 0 where nothing can be computed before the program is called

    Before:
        %y = nd.dot_general %x, %w contract [1] x [0] : (tensor<8x2xf32>, tensor<2x4xf32>) -> ...
        %f = nd.broadcast %scale {dims = [1]} : tensor<4xf32> -> tensor<8x4xf32>
        %z = nd.mul %y, %f : tensor<8x4xf32>
    After:
        %f = nd.broadcast %scale {dims = [1]} : tensor<4xf32> -> tensor<2x4xf32>
        %v = nd.mul %w, %f : tensor<2x4xf32>
        %z = nd.dot_general %x, %v contract [1] x [0] : (tensor<8x2xf32>, tensor<2x4xf32>) -> ...
    Afterwards: the scales of a product are folded into its weights, and its shifts into one sum,
        where all of them are constant or the weights are small.
    """

    name = "fold-scales"
    one_block = True
    numerics: ClassVar[Numerics] = "reassociating"
    expects_work = False

    hoist_constants: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold at the top level of each function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    _in_block(block, self.hoist_constants != 0)


@dataclass(frozen=True)
class Step:
    """An op that combines each element of a product with an element of ``part``."""

    op: StepOp
    part: SSAValue
    axes: Axes
    """The axes of the product that match the axes of ``part`` longer than 1.

    Empty where ``part`` is a splat.
    """

    @property
    def scales(self) -> bool:
        """Whether it multiplies or divides."""
        return isinstance(self.op, MulOp | DivOp)


def _in_block(block: Block, hoist_constants: bool) -> None:
    products = [op for op in block.ops if isinstance(op, ConvolutionOp | DotGeneralOp)]
    if not products:
        return
    constants = _constants(block) if hoist_constants else set[SSAValue]()
    for op in products:
        if not _is_exact_enough(op):
            continue
        for operand, where in _weights(op):
            if op.operands[operand] in constants:
                steps = list(_steps(op, where, constants))
            elif operand == 1 and _is_small(op.w, op.y):
                steps = list(_steps(op, where, None))
            else:
                continue
            if any(step.scales for step in steps):
                _fold(op, operand, where, steps)
                break


def _is_small(weights: SSAValue, result: SSAValue) -> bool:
    """Whether scaling ``weights`` in each call costs less than scaling ``result``."""
    sizes = shape_of(weights)
    least = prod(n for n in shape_of(result) if n != DYNAMIC)
    return DYNAMIC not in sizes and least >= max(MIN_RESULT_ELEMENTS, SMALLER * prod(sizes))


def _constants(block: Block) -> set[SSAValue]:
    """Return the values of ``block`` that are equal in every call."""
    found: set[SSAValue] = set()
    for op in block.ops:
        if not op.regions and all(v in found for v in op.operands) and is_pure(op):
            found.update(op.results)
    return found


def _is_exact_enough(op: ContractionOp) -> bool:
    """Whether scaling weights rounds no worse than the sums do: false for 16-bit floats."""
    kinds = {element(v) for v in (op.x, op.w, op.y)}
    return len(kinds) == 1 and isinstance(kinds.pop(), Float32Type | Float64Type)


def _weights(op: ConvolutionOp | DotGeneralOp) -> Iterator[tuple[int, Mapping[int, int]]]:
    """Yield each operand that may be scaled, with a map from result axes to its axes."""
    if isinstance(op, ConvolutionOp):
        _, _, layout = op.how
        yield 1, {layout.y[1]: layout.w[0]}
        return
    first = len(op.batch[0])
    free = [
        free_axes(len(shape_of(v)), batch, contracted)
        for v, batch, contracted in zip((op.x, op.w), op.batch, op.contract, strict=True)
    ]
    for operand, before in ((1, first + len(free[0])), (0, first)):
        yield (
            operand,
            {
                **dict(enumerate(op.batch[operand])),
                **dict(enumerate(free[operand], before)),
            },
        )


def _steps(
    op: ContractionOp, where: Mapping[int, int], constants: set[SSAValue] | None
) -> Iterator[Step]:
    """Yield the chain of single users of ``op`` that can be folded into the weights.

    constants : the values allowed as parts; None allows any, but then no scalar factors
    """
    value = op.y
    while isinstance(user := value.get_user_of_unique_use(), StepOp) and user.parent is op.parent:
        left, right = user.operands
        if right is value and not isinstance(user, AddOp | MulOp):
            return
        step = _step(user, left if right is value else right)
        if step is None or not set(step.axes) <= set(where):
            return
        if constants is None:
            if step.scales and not step.axes:
                return
        elif step.part not in constants and not isinstance(step.part.owner, FullOp):
            return
        yield step
        (value,) = user.results


def _step(op: StepOp, other: SSAValue) -> Step | None:
    made_by = other.owner
    if isinstance(made_by, FullOp):
        return Step(op, other, ())
    if not isinstance(made_by, BroadcastOp):
        return None
    if isinstance(made_by.x.owner, FullOp):
        return Step(op, made_by.x, ())
    sizes = shape_of(made_by.x)
    if DYNAMIC in sizes:
        return None
    varies = (to for to, n in zip(axes(made_by.dims), sizes, strict=True) if n != 1)
    return Step(op, made_by.x, tuple(varies))


def _fold(
    op: ConvolutionOp | DotGeneralOp, operand: int, where: Mapping[int, int], steps: Sequence[Step]
) -> None:
    """Apply ``steps`` to the weights, and to the shift accumulated so far."""
    last = steps[-1].op
    before = last.prev_op
    c = Composer(Builder(InsertPoint.before(last)))
    weights, shift = op.operands[operand], None
    every = tuple(sorted({axis for step in steps for axis in step.axes}))
    for step in steps:
        part = _part(c, step)
        kind = type(step.op)
        if step.scales:
            weights = c.of(kind(weights, _along_weights(c, part, weights, step.axes, where)))
        if step.scales and shift is None:
            continue
        part = _widened(c, part, step.axes, every, shape_of(op.y))
        if shift is not None:
            shift = c.of(kind(shift, part))
        else:
            shift = c.of(NegOp(part)) if kind is SubOp else part
    product = op.clone()
    product.operands[operand] = weights
    result: SSAValue = c.builder.insert(product).y
    result.name_hint = op.y.name_hint
    if shift is not None:
        result = c.add(result, c.along(shift, result, every))
    _locate(before, last, [op, *(step.op for step in steps)])
    _replace(op, steps, result)


def _part(c: Composer, step: Step) -> SSAValue:
    """Return the part of ``step`` without axes of size 1."""
    if isinstance(made_by := step.part.owner, FullOp):
        return c.of(FullOp(made_by.value, TensorType(element(step.part), [])))
    sizes = [n for n in shape_of(step.part) if n != 1]
    if len(sizes) == len(shape_of(step.part)):
        return step.part
    return c.of(ReshapeOp(step.part, sizes))


def _along_weights(
    c: Composer, part: SSAValue, weights: SSAValue, along: Axes, where: Mapping[int, int]
) -> SSAValue:
    """Return ``part`` broadcast to the shape of ``weights``."""
    to = [where[axis] for axis in along]
    order = sorted(range(len(to)), key=to.__getitem__)
    if order != list(range(len(to))):
        part = c.of(TransposeOp(part, order))
    return c.along(part, weights, sorted(to))


def _widened(
    c: Composer, part: SSAValue, along: Axes, every: Axes, shape: Sequence[int]
) -> SSAValue:
    """Return ``part`` broadcast to all axes of the shift."""
    if along == every:
        return part
    dims = [every.index(axis) for axis in along]
    return c.of(BroadcastOp(part, dims, [shape[axis] for axis in every]))


def _locate(before: Operation | None, last: Operation, instead: Sequence[Operation]) -> None:
    """Give the inserted ops the fused location of ``instead``."""
    location = fuse_locations([op.location for op in instead])
    new = last.prev_op
    while new is not None and new is not before:
        if new.location == UNKNOWN or isinstance(new, ContractionOp):
            new.location = location
        new = new.prev_op


def _replace(op: Operation, steps: Sequence[Step], result: SSAValue) -> None:
    """Replace the last step's result by ``result``, and erase dead ops."""
    (old,) = steps[-1].op.results
    if old.name_hint is not None:
        result.name_hint = old.name_hint
    old.replace_all_uses_with(result)
    for step in reversed(steps):
        others = [v.owner for v in step.op.operands]
        step.op.detach()
        step.op.erase()
        for other in others:
            if isinstance(other, FullOp | BroadcastOp) and is_dead(other):
                other.detach()
                other.erase()
    op.detach()
    op.erase()
