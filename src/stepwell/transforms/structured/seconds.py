"""Ask the cost model for the seconds of an op whose operands have some layouts.

The op is a kernel of its own, with the loops and the schedule that it would have, on one thread:
rounding depends on layouts, and must not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.loop_order import loop_order, shared_order
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    at,
    element,
    extents,
    identity,
    indices,
    is_parallel,
    linear,
    shape,
    zero_of,
)
from stepwell.core.machine import Machine
from stepwell.core.remembering import Remembered
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.collapse_loops import CollapseLoops
from stepwell.transforms.kernels.order_sums import OrderSums
from stepwell.transforms.kernels.schedule import predicted_seconds
from stepwell.transforms.kernels.split_groups import SplitGroups
from stepwell.transforms.structured.winograd.matching import share_saved

Layout: TypeAlias = tuple[int, ...]
"""A permutation: the original axis of a tensor at each position in memory."""

LIKELY = 28
"""The size that is taken for an unknown one: images of networks have 7 to 112 rows, and this is the
geometric mean. Several axes may be unknown, so that 256, as for products, would be far too many."""

_known = Remembered[float](1 << 12)
"""Predictions by machine and by the content of the op: as many as a large program has ops."""


@dataclass(frozen=True)
class Seconds:
    """Predicts ops on one machine."""

    machine: Machine

    def of(self, op: linalg.GenericOp, layouts: Sequence[Layout | None], order: Layout) -> float:
        """Return the seconds of an op with its loops in an order.

        layouts : for each operand, None for the layout that its type has
        """
        place = {d: AffineDimExpr(k) for k, d in enumerate(order)}
        moved = [place[d] for d in range(len(order))]
        read = [
            (*_read(op, value, at(index, moved)), layout)
            for value, index, layout in zip(op.operands, indices(op), layouts, strict=True)
        ]
        where = [_permuted(index, layout) for _, index, layout in read]
        sizes = [LIKELY if n == DYNAMIC_INDEX else n for n in extents(op)]
        loops = [sizes[d] for d in order]
        if 0 in loops:
            return 0.0
        types = [
            _laid_out(value, layout, [_reach(expr, loops) for expr in index])
            for value, index, layout in read
        ]
        arrays = [(value, layout) for value, _, layout in read]
        numbers = tuple(map(arrays.index, arrays))
        begun = tuple(map(_begins_as_number, op.outputs))
        kinds = tuple(op.iterator_types.data[d] for d in order)
        body = tuple(type(inner) for inner in op.body.walk())
        key = self.machine, tuple(where), tuple(types), numbers, begun, kinds, body
        places = [order.index(d) for d in range(len(order))]
        alone = _OneOp(op, where, types, numbers, begun, places)
        return _known.get(key, lambda: alone.seconds(self.machine))

    def of_copy(self, value: SSAValue, have: Layout, layout: Layout) -> float:
        """Return the seconds to copy a value from one layout to another."""
        if 0 in shape(value):
            return 0.0
        rank, kind = len(layout), element(value)
        read = tuple(AffineDimExpr(layout.index(axis)) for axis in have)
        key = self.machine, read, _laid_out(value, layout)

        def seconds() -> float:
            block = Block(arg_types=[kind, kind])
            block.add_op(linalg.YieldOp(block.args[0]))
            types = [_laid_out(value, have), _laid_out(value, layout)]
            ends = Block(arg_types=types).args
            maps = array_of_maps(rank, [read, identity(rank)])
            kinds = [PARALLEL] * rank
            copy = linalg.GenericOp([ends[0]], [ends[1]], Region(block), maps, kinds, [types[1]])
            alone = _OneOp(copy, indices(copy), types, (0, 1), (False,), range(rank))
            return alone.seconds(self.machine)

        return _known.get(key, seconds)


def _read(op: linalg.GenericOp, value: SSAValue, index: Index) -> tuple[SSAValue, Index]:
    """Return the array that an operand is a part of, where others are too, and its index there."""
    part = value.owner
    if not isinstance(part, tensor.ExtractSliceOp) or len(shape(part.source)) != len(index):
        return value, index
    others = [v.owner for v in op.inputs if isinstance(v.owner, tensor.ExtractSliceOp)]
    first, steps = part.static_offsets.get_values(), part.static_strides.get_values()
    if sum(o.source is part.source for o in others) < 2 or DYNAMIC_INDEX in (*first, *steps):
        return value, index
    return part.source, tuple(e * k + n for e, n, k in zip(index, first, steps, strict=True))


def _begins_as_number(value: SSAValue) -> bool:
    return isinstance(value.owner, linalg.FillOp) and isinstance(
        element(value), AnyFloat | IntegerType
    )


def _permuted(index: Index, layout: Layout | None) -> Index:
    return tuple(index[axis] for axis in layout) if layout else index


def _laid_out(
    value: SSAValue, layout: Layout | None, unknown: Sequence[int] | None = None
) -> Attribute:
    """Return the type of a value in a layout, where ``unknown`` are sizes of unknown axes."""
    if not isinstance(value.type, TensorType):
        return value.type
    likely = unknown or [LIKELY] * len(shape(value))
    sizes = [m if n == DYNAMIC_INDEX else n for n, m in zip(shape(value), likely, strict=True)]
    return TensorType(element(value), [sizes[a] for a in layout] if layout else sizes)


def _reach(expr: AffineExpr, loops: Sequence[int]) -> int:
    """Return the size of an axis that is read at ``expr``, for these extents of the loops."""
    if (form := linear(expr)) is None:
        return LIKELY
    steps, first = form
    return first + 1 + sum(abs(by) * (loops[d] - 1) for d, by in steps.items())


@dataclass(frozen=True)
class _OneOp:
    """A module that launches one op as a kernel."""

    op: linalg.GenericOp
    where: Sequence[Index]
    """The index of each operand, ..."""
    types: Sequence[Attribute]
    """... its type, ..."""
    numbers: Sequence[int]
    """... the first operand that is the same array, ..."""
    begun: Sequence[bool]
    """... and whether each result begins as a number."""
    places: Sequence[int]
    """The new position of each loop of the op."""

    def seconds(self, machine: Machine) -> float:
        """Return the predicted seconds of a launch."""
        function, module = self._module()
        saved = self._saved_by_winograd(function)
        for step in (SplitGroups(), CollapseLoops(), OrderSums()):
            step.apply(Context(), module)
        found = predicted_seconds(function, machine)
        module.drop_all_references()  # the body may use values of the program
        return found * (1 - saved)

    def _saved_by_winograd(self, function: kernel.FuncOp) -> float:
        """Return the part of the time that Winograd's algorithm will save."""
        block = function.body.block
        sums = [op for op in block.ops if isinstance(op, linalg.GenericOp)]
        return share_saved(sums[0], Sizes(block.args))

    def _module(self) -> tuple[kernel.FuncOp, ModuleOp]:
        function, launched = self._kernel(), Block(arg_types=self.types)
        inputs = len(self.op.inputs)
        launch = kernel.LaunchOp("kernel", launched.args[:inputs], launched.args[inputs:])
        launched.add_ops([launch, func.ReturnOp(*launch.results)])
        kind = FunctionType.from_lists(self.types, list(launch.result_types))
        return function, ModuleOp([function, func.FuncOp("main", kind, Region(launched))])

    def _kernel(self) -> kernel.FuncOp:
        block = Block(arg_types=self.types)
        count = len(self.op.inputs)
        inputs = [block.args[n] for n in self.numbers[:count]]
        outputs: list[SSAValue] = [*block.args[count:]]
        for k, begun in enumerate(self.begun):
            if begun:
                zero = arith.ConstantOp(zero_of(element(outputs[k])))
                fill = linalg.FillOp([zero.result], [outputs[k]], [outputs[k].type])
                block.add_ops([zero, fill])
                outputs[k] = fill.results[0]
        op, shared = self._generic(inputs, outputs)
        block.add_ops([op, kernel.ReturnOp(op.results)])
        kind = FunctionType.from_lists(self.types, list(op.result_types))
        function = kernel.FuncOp("kernel", kind, Region(block))
        function.attributes["kernel.shared"] = choices.spelled(shared)
        return function

    def _generic(
        self, inputs: Sequence[SSAValue], outputs: list[SSAValue]
    ) -> tuple[linalg.GenericOp, int]:
        """Return the op with its loops as in a kernel, and how many are parallel."""
        kinds: list[Any] = [PARALLEL] * len(self.places)
        for place, kind in zip(self.places, self.op.iterator_types.data, strict=True):
            kinds[place] = kind
        loops = len(kinds)
        types = [v.type for v in outputs]
        body = self.op.body.clone()
        op = linalg.GenericOp(inputs, outputs, body, array_of_maps(loops, self.where), kinds, types)
        own = [d for d, runs in enumerate(is_parallel(op)) if runs]
        shared = [own[j] for j in shared_order(op, own, not any(self.begun))]
        order = loop_order(op, shared)
        moved = [AffineDimExpr(order.index(d)) for d in range(loops)]
        op.properties["indexing_maps"] = array_of_maps(loops, [at(i, moved) for i in self.where])
        op.properties["iterator_types"] = ArrayAttr(kinds[d] for d in order)
        for inner in op.body.block.ops:
            if isinstance(inner, linalg.IndexOp):
                place = order.index(self.places[inner.dim.value.data])
                inner.properties["dim"] = IntegerAttr(place, i64)
        return op, len(shared)
