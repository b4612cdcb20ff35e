"""Make every chain of destinations inside a kernel linear: each destination has a single use.

In destination-passing style the result of an op overwrites its destination. This preserves the
tensors' values only if no later op reads the destination. Violations are repaired here, on
tensors: a fill or an empty tensor with several uses is duplicated, any other tensor is copied by a
generic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from stepwell.analysis.levels import (
    NO_LANES,
    KernelLevels,
    Lanes,
    levels_of_versions,
    loop_ops,
    rebuilt,
    schedule_of,
    write_all,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import Schedule
from stepwell.dialects.kernel.sharing import SCHEDULE, is_border
from stepwell.dialects.types import tensor_type
from stepwell.transforms.kernels.versions import keep_versions_of_shared_loops
from stepwell.transforms.passes import fail


@dataclass(frozen=True)
class Read:
    """An op reads elements of ``value`` through ``map``, or at any index if that is None."""

    value: SSAValue
    map: AffineMap | None


@dataclass(frozen=True)
class Write:
    """An op overwrites ``destination`` through ``map`` (None: any index) to make ``result``."""

    destination: SSAValue
    result: OpResult
    map: AffineMap | None
    reads: bool
    """Whether the op reads the old elements of the destination."""


def operations(function: kernel.FuncOp) -> list[Operation]:
    """Return the ops of a kernel that read or write elements, in order."""
    known = linalg.GenericOp | linalg.FillOp | scf.ForOp
    return [op for op in function.body.block.ops if isinstance(op, known)]


def returned(function: kernel.FuncOp) -> kernel.ReturnOp:
    """Return the terminator of a kernel."""
    last = function.body.block.last_op
    assert isinstance(last, kernel.ReturnOp)
    return last


def reads_of(op: Operation) -> Iterator[Read]:
    """Yield the reads of ``op``, except those of its destinations."""
    if isinstance(op, linalg.GenericOp):
        maps = op.indexing_maps.data
        for value, map, inside in zip(op.inputs, maps, op.body.block.args, strict=False):
            if inside.uses and isinstance(value.type, TensorType):
                yield Read(value, map.data)
                if isinstance(border := value.owner, linalg.GenericOp) and is_border(border):
                    yield Read(border.inputs[0], None)
    inits = set[SSAValue](op.iter_args) if isinstance(op, scf.ForOp) else set[SSAValue]()
    for inside in op.walk():
        if inside is not op and inside.name != "tensor.dim":
            for value in inside.operands:
                outside = not op.is_ancestor(value.owner) and value not in inits
                if outside and isinstance(value.type, TensorType):
                    yield Read(value, None)


def writes_of(op: Operation) -> list[Write]:
    """Return the writes of ``op``, one for each of its results that is a tensor."""
    if isinstance(op, linalg.GenericOp):
        first = len(op.inputs)
        rows = zip(
            op.outputs,
            op.res,
            op.indexing_maps.data[first:],
            op.body.block.args[first:],
            strict=True,
        )
        return [
            Write(d, r, m.data, bool(inside.uses) or _may_stay(op, m.data))
            for d, r, m, inside in rows
        ]
    if isinstance(op, linalg.FillOp):
        return [Write(op.outputs[0], op.res[0], _filled(op), False)]
    if not isinstance(op, scf.ForOp):
        return []
    pairs = zip(op.iter_args, op.res, strict=True)
    return [Write(d, r, None, True) for d, r in pairs if isinstance(r.type, TensorType)]


def _may_stay(op: linalg.GenericOp, map: AffineMap) -> bool:
    """Whether a loop that does not index a destination may run zero times: its elements stay."""
    if not (others := set(range(map.num_dims)) - map.used_dims()):
        return False
    extents: dict[int, int] = {}
    for value, access in zip(op.operands, op.indexing_maps.data, strict=True):
        if isinstance(value.type, TensorType):
            rows = zip(access.data.results, value.type.get_shape(), strict=True)
            extents.update((e.position, n) for e, n in rows if isinstance(e, AffineDimExpr))
    return any(extents.get(loop) in (0, DYNAMIC_INDEX) for loop in others)


def _filled(op: linalg.FillOp) -> AffineMap:
    """Return the map of a fill: that of the generic that accumulates into it, else identity."""
    for use in op.res[0].uses:
        user = use.operation
        if isinstance(user, linalg.GenericOp) and use.index >= len(user.inputs):
            return user.indexing_maps.data[use.index].data
    return AffineMap.identity(tensor_type(op.outputs[0]).get_num_dims())


def linearize(function: kernel.FuncOp) -> None:
    """Make the chains of ``function``, a kernel on tensors, linear."""
    _check(function)
    _duplicate_shared(function)
    for op in operations(function):
        for write in writes_of(op):
            if not _may_overwrite(function, write):
                _replace_destination(function, op, write)
    last = returned(function)
    seen: set[SSAValue] = set()
    for number, value in enumerate(last.values):
        if value in seen or not _may_return(function, value, number):
            source, last_use = value, last
            last.operands[number] = _copy(function, source, last_use, number)
        seen.add(last.operands[number])


def _check(function: kernel.FuncOp) -> None:
    allowed = linalg.GenericOp | linalg.FillOp | scf.ForOp | tensor.EmptyOp | tensor.DimOp
    for op in function.body.block.ops:
        fine = isinstance(op, allowed | arith.ConstantOp | kernel.ReturnOp)
        on_tensors = any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))
        if not fine and on_tensors:
            fail(op, f"bufferize does not know {op.name} inside a kernel", "keep it on the host")


def _duplicate_shared(function: kernel.FuncOp) -> None:
    """Duplicate fills and empty tensors so that each has a single use."""
    for op in list(function.body.block.ops):
        if isinstance(op, linalg.FillOp | tensor.EmptyOp):
            for use in list(op.results[0].uses)[1:]:
                twin = op.clone()
                block = function.body.block
                block.insert_op_before(twin, op)
                if isinstance(twin, linalg.FillOp) and isinstance(
                    twin.outputs[0].owner, tensor.EmptyOp
                ):
                    empty = twin.outputs[0].owner.clone()
                    block.insert_op_before(empty, twin)
                    twin.operands[1] = empty.tensor
                twin.results[0].name_hint = op.results[0].name_hint
                use.operation.operands[use.index] = twin.results[0]


def _may_overwrite(function: kernel.FuncOp, write: Write) -> bool:
    value = write.destination
    alone = value.has_one_use()
    if isinstance(value, BlockArgument):
        number = value.index - (len(function.body.block.args) - len(returned(function).values))
        return alone and number >= 0 and _reaches(write.result, function, number)
    return alone and not isinstance(value.owner, arith.ConstantOp)


def _reaches(value: SSAValue, function: kernel.FuncOp, number: int) -> bool:
    """Whether the chain from ``value`` on ends as the kernel's ``number``-th result."""
    last = returned(function)
    while True:
        if any(use.operation is last and use.index == number for use in value.uses):
            return True
        following = [
            w.result
            for use in value.uses
            if use.operation is not last and use.operation.parent_block() is last.parent_block()
            for w in writes_of(use.operation)
            if w.destination is value
        ]
        if not following:
            return False
        value = following[0]


def _may_return(function: kernel.FuncOp, value: SSAValue, number: int) -> bool:
    if isinstance(value, BlockArgument):
        first = len(function.body.block.args) - len(returned(function).values)
        return value.index == first + number and value.has_one_use()
    return not isinstance(value.owner, arith.ConstantOp)


def _replace_destination(function: kernel.FuncOp, op: Operation, write: Write) -> None:
    at = next(i for i, v in enumerate(op.operands) if v is write.destination)
    if isinstance(op, linalg.GenericOp | linalg.FillOp):
        at = len(op.inputs) + list(op.outputs).index(write.destination)
    if write.reads:
        op.operands[at] = _copy(function, write.destination, op, None)
    else:
        op.operands[at] = _empty_like(function, write.destination, op)


def _empty_like(function: kernel.FuncOp, value: SSAValue, before: Operation) -> SSAValue:
    block = function.body.block
    sizes: list[SSAValue] = []
    for axis, n in enumerate(tensor_type(value).get_shape()):
        if n == DYNAMIC_INDEX:
            index = arith.ConstantOp(IntegerAttr(axis, IndexType()))
            dim = tensor.DimOp(value, index)
            block.insert_ops_before([index, dim], before)
            sizes.append(dim.result)
    empty = tensor.EmptyOp(sizes, value.type)
    empty.location = before.location
    block.insert_op_before(empty, before)
    return empty.tensor


def _copy(
    function: kernel.FuncOp, value: SSAValue, before: Operation, result: int | None
) -> SSAValue:
    """Insert a generic that copies ``value``; its first loops are the kernel's shared ones."""
    destination = _empty_like(function, value, before)
    rank = tensor_type(value).get_num_dims()
    map = AffineMapAttr(_aligned(function, value, rank))
    body = Block(arg_types=[tensor_type(value).element_type] * 2)
    body.add_op(linalg.YieldOp(body.args[0]))
    parallel: list[Attribute] = [IteratorTypeAttr.parallel()] * rank
    copy = linalg.GenericOp(
        [value], [destination], Region(body), [map, map], parallel, [value.type]
    )
    copy.location = before.location
    copy.res[0].name_hint = value.name_hint
    keep_versions_of_shared_loops(function, choices.number(function, "kernel.shared"))
    lists = levels_of_versions(function)
    function.body.block.insert_op_before(copy, before)
    schedule = schedule_of(function)
    if schedule is not None and schedule.has_groups:  # the new op shifts the numbers in its lists
        del function.attributes[SCHEDULE]
    elif schedule is not None:
        write_all(function, [_with_copy(levels, copy) for levels in lists])
    return copy.res[0]


def _with_copy(levels: KernelLevels, copy: linalg.GenericOp) -> Schedule:
    """Return the levels of a kernel with a further copy, in the vectors that all ops share."""
    lanes: dict[Operation, Lanes] = dict(zip(levels.ops, levels.lanes, strict=True))
    shared = (x for x in levels.lanes if 0 <= x.axis < levels.shared)
    lanes[copy] = next(shared, NO_LANES)._replace(nontemporal=())
    ops = loop_ops(levels.function)
    return rebuilt(levels, ops=ops, lanes=[lanes.get(op, NO_LANES) for op in ops])


def _aligned(function: kernel.FuncOp, value: SSAValue, rank: int) -> AffineMap:
    """Return the indexing map of a copy of ``value``, with the kernel's shared loops first."""
    shared = choices.number(function, "kernel.shared")
    axis_of = list(range(shared))
    for op in operations(function):
        maps = [r.map for r in reads_of(op) if r.value is value]
        maps += [w.map for w in writes_of(op) if w.result is value or w.destination is value]
        for map in maps:
            if map is not None and None not in (at := shared_axes(map, shared)):
                axis_of = [a for a in at if a is not None]
    others = iter(d for d in range(shared, rank))
    exprs: list[AffineExpr] = [
        AffineDimExpr(axis_of.index(a) if a in axis_of else next(others)) for a in range(rank)
    ]
    return AffineMap(rank, 0, tuple(exprs))


def shared_axes(map: AffineMap, shared: int) -> list[int | None]:
    """Return for each shared loop the axis that it alone indexes, or None.

    >>> shared_axes(AffineMap.transpose_map(), 2)
    [1, 0]
    """
    plain = {e.position: a for a, e in enumerate(map.results) if isinstance(e, AffineDimExpr)}
    return [plain.get(loop) for loop in range(shared)]
