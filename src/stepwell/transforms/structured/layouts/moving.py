"""Apply a plan of layouts: permute types, maps and loops in place, and insert transposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import (
    PARALLEL,
    array_of_maps,
    at,
    constant_of,
    element,
    identity,
    indices,
    plain,
    shape,
)
from stepwell.dialects.types import array, dense, fuse_locations
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.layouts.propagation import Plan, is_spread, is_turned, natural
from stepwell.transforms.structured.seconds import Layout


@dataclass
class Moving:
    """Rewrites the ops of one block."""

    plan: Plan
    created: dict[tuple[SSAValue, Layout], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Layout], SSAValue]
    )

    def move(self) -> None:
        """Rewrite every op that the plan changes."""
        for op in list(self.plan.block.ops):
            self._operands(op, op)
            for inner in op.walk() if op.regions else ():
                if inner is not op:
                    self._operands(inner, op)
            match op:
                case linalg.GenericOp():
                    self._generic(op)
                case tensor.InsertSliceOp() | tensor.ExtractSliceOp():
                    if (layout := self.plan.layouts.get(op.result)) is not None:
                        _permute_slice(op, layout)
                case tensor.DimOp() if (layout := self.plan.layouts.get(op.source)) is not None:
                    self._dim(op, layout)
                case _:
                    pass
            for result in op.results:
                if (layout := self.plan.layouts.get(result)) is not None:
                    _retype(result, layout)

    def _operands(self, op: Operation, before: Operation) -> None:
        for k in range(len(op.operands)):
            if (layout := self.plan.reads.get((op, k))) is not None:
                op.operands[k] = self._in_layout(op.operands[k], layout, before)

    def _generic(self, op: linalg.GenericOp) -> None:
        """Permute each operand's map like the operand, then the loops."""
        order = self.plan.orders.get(op)
        reads, values = self.plan.reads, list(op.operands)
        # the operands have been replaced; those without an entry keep the layout they have
        layouts = [reads.get((op, k)) or self.plan.layouts.get(v) for k, v in enumerate(values)]
        if order is None and not any(layouts):
            return
        loops = len(op.iterator_types)
        where = [
            tuple(index[a] for a in layout) if layout else index
            for index, layout in zip(indices(op), layouts, strict=True)
        ]
        if order is not None:
            place = {d: AffineDimExpr(k) for k, d in enumerate(order)}
            moved = [place[d] for d in range(loops)]
            where = [at(index, moved) for index in where]
            kinds = op.iterator_types.data
            op.properties["iterator_types"] = ArrayAttr(kinds[d] for d in order)
            for inner in op.body.block.ops:
                if isinstance(inner, linalg.IndexOp):
                    position = order.index(inner.dim.value.data)
                    inner.properties["dim"] = IntegerAttr(position, i64)
        op.properties["indexing_maps"] = array_of_maps(loops, where)

    def _dim(self, op: tensor.DimOp, layout: Layout) -> None:
        axis = constant_of(op.index)
        assert axis is not None and op.parent is not None
        place = IntegerAttr(layout.index(axis), IndexType())
        constant = located(arith.ConstantOp(place), op.location)
        op.parent.insert_op_before(constant, op)
        op.operands[1] = constant.result

    # values in another layout

    def _in_layout(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue:
        """Return ``value`` in ``layout``, created at its first use."""
        have = self.plan.layouts.get(value) or natural(value)
        if have == layout:
            return value
        if (known := self.created.get((value, layout))) is None:
            known = self.created[value, layout] = self._make(value, have, layout, before)
            known.name_hint = value.name_hint
        return known

    def _make(self, value: SSAValue, have: Layout, layout: Layout, before: Operation) -> SSAValue:
        owner = value.owner
        if isinstance(owner, Operation) and (same := self._recreated(owner, layout)) is not None:
            assert owner.parent is not None
            owner.parent.insert_op_after(located(same, owner.location), owner)
            return same.results[0]
        return self._transposed(value, have, layout, before)

    def _recreated(self, owner: Operation, layout: Layout) -> Operation | None:
        """Return a copy of a fill, empty or splat op in ``layout``, None for other ops."""
        match owner:
            case tensor.EmptyOp():
                type = _permuted(owner.tensor, layout)
                return tensor.EmptyOp(_dynamic(owner.dynamic_sizes, owner.tensor, layout), type)
            case linalg.FillOp() if isinstance(owner.outputs[0].owner, tensor.EmptyOp):
                into = self._in_layout(owner.outputs[0], layout, owner)
                return linalg.FillOp([owner.inputs[0]], [into], [into.type])
            case linalg.GenericOp() if is_spread(owner):
                return self._rebroadcast(owner, layout)
            case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as data):
                turned = array(data).transpose(layout)
                return arith.ConstantOp(dense(turned, data.get_element_type()))
            case _:
                return None

    def _rebroadcast(self, owner: linalg.GenericOp, layout: Layout) -> Operation:
        """Return a copy of the broadcast ``owner`` that writes its result in ``layout``."""
        *read, written = indices(owner)
        into = self._in_layout(owner.outputs[0], layout, owner)
        loops = [0] * len(layout)
        for k, axis in enumerate(layout):
            loop = plain(written[axis])
            assert loop is not None
            loops[loop] = k
        moved = [AffineDimExpr(k) for k in loops]
        copy = owner.clone({owner.outputs[0]: into})
        for old, new in zip(owner.body.block.ops, copy.body.block.ops, strict=True):
            new.location = old.location
        where = [*(at(index, moved) for index in read), identity(len(layout))]
        copy.properties["indexing_maps"] = array_of_maps(len(layout), where)
        copy.results[0]._type = into.type  # pyright: ignore
        return copy

    def _transposed(
        self, value: SSAValue, have: Layout, layout: Layout, before: Operation
    ) -> SSAValue:
        """Transpose ``value`` in a kernel of its own."""
        place = {axis: k for k, axis in enumerate(layout)}
        type = _permuted(value, layout, have)
        location = before.location
        if isinstance(value.owner, Operation):
            location = fuse_locations((value.owner.location, location))
        new: list[Operation] = []
        sizes: list[SSAValue] = []
        for axis in layout:
            if shape(value)[have.index(axis)] == DYNAMIC_INDEX:
                number = arith.ConstantOp(IntegerAttr(have.index(axis), IndexType()))
                new += [number, tensor.DimOp(value, number.result)]
                sizes.append(new[-1].results[0])
        empty = tensor.EmptyOp(sizes, type)
        rank = len(layout)
        read = tuple(AffineDimExpr(place[axis]) for axis in have)
        block = Block(arg_types=[element(value)] * 2)
        block.add_op(located(linalg.YieldOp(block.args[0]), location))
        copy = linalg.GenericOp(
            [value],
            [empty.tensor],
            Region(block),
            array_of_maps(rank, [read, identity(rank)]),
            [PARALLEL] * rank,
            [type],
        )
        if is_turned(value, have, layout):
            copy.attributes["kernel.no_fuse"] = UnitAttr()
        new += [empty, copy]
        assert before.parent is not None
        before.parent.insert_ops_before([located(op, location) for op in new], before)
        return copy.results[0]


def _permuted(value: SSAValue, layout: Layout, have: Layout | None = None) -> TensorType[Any]:
    """Return the type of ``value`` in ``layout``, from its original layout or ``have``."""
    sizes = shape(value)
    return TensorType(element(value), [sizes[have.index(a) if have else a] for a in layout])


def _retype(value: SSAValue, layout: Layout) -> None:
    value._type = _permuted(value, layout)  # pyright: ignore


def _dynamic(sizes: Sequence[SSAValue], value: SSAValue, layout: Layout) -> list[SSAValue]:
    """Return the dynamic sizes of ``value`` in the order of ``layout``."""
    written = shape(value)
    axes = [a for a, n in enumerate(written) if n == DYNAMIC_INDEX]
    of = dict(zip(axes, sizes, strict=True))
    return [of[a] for a in layout if a in of]


def _permute_slice(op: tensor.InsertSliceOp | tensor.ExtractSliceOp, layout: Layout) -> None:
    """Permute offsets, sizes and strides."""
    lists = []
    first = 2 if isinstance(op, tensor.InsertSliceOp) else 1
    operands = list(op.operands[:first])
    groups = (op.offsets, op.sizes, op.strides)
    for name, values in zip(("offsets", "sizes", "strides"), groups, strict=True):
        static = op.properties[f"static_{name}"]
        assert isinstance(static, DenseArrayBase)
        numbers: list[int] = [int(n) for n in static.get_values()]
        axes = [a for a, n in enumerate(numbers) if n == DYNAMIC_INDEX]
        of = dict(zip(axes, values, strict=True))
        operands += [of[a] for a in layout if a in of]
        lists.append((name, [numbers[a] for a in layout]))
    op.operands = operands
    for name, numbers in lists:
        op.properties[f"static_{name}"] = DenseArrayBase.from_list(i64, numbers)
