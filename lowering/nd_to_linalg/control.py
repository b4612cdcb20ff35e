"""Control flow as scf on tensors: branches, loops that carry tensors, calls."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Block, Region, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import kernel
from stepwell.dialects.nd.callback import CallbackOp
from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.nd.checking import CheckOp
from stepwell.dialects.nd.control import IfOp, ScanOp, WhileOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import I1, INDEX
from stepwell.lowering.nd_to_linalg.generic import index
from stepwell.lowering.nd_to_linalg.running import running
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes, shape_of_sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower, lower_block, signless

Operands = Sequence[SSAValue]


@lower(IfOp)
def _if(lowering: Lowering, op: IfOp, operands: Operands) -> Operands:
    condition = lowering.insert(tensor.ExtractOp(operands[0], [], I1))

    def end(values: Operands) -> None:
        lowering.insert(scf.YieldOp(*values))

    types = [signless(t) for t in op.result_types]
    then, otherwise = lowering.region(op.then, end), lowering.region(op.otherwise, end)
    return lowering.insert(scf.IfOp(condition.result, types, then, otherwise)).results


@lower(WhileOp)
def _while(lowering: Lowering, op: WhileOp, operands: Operands) -> Operands:
    def test(values: Operands) -> None:
        (condition,) = values
        scalar = lowering.insert(tensor.ExtractOp(condition, [], I1))
        lowering.insert(scf.ConditionOp(scalar.result, *lowering.block.args))

    def end(values: Operands) -> None:
        lowering.insert(scf.YieldOp(*values))

    before, after = lowering.region(op.test, test), lowering.region(op.body, end)
    types = [v.type for v in operands]
    return lowering.insert(scf.WhileOp(operands, types, before, after)).results


@lower(ScanOp)
def _scan(lowering: Lowering, op: ScanOp, operands: Operands) -> Operands:
    if found := running(lowering, op, operands):
        return found
    sizes = Sizes(lowering)
    first, second = len(op.carried), len(op.carried) + len(op.xs)
    carried, xs = operands[:first], operands[first:second]
    dynamic = operands[second:]
    count: Size = op.count
    if count == DYNAMIC:
        count = sizes.of(xs[0], 0) if xs else dynamic[0]
    stacked = _destinations(lowering, op, count, dynamic[1:] if op.steps is not None else dynamic)
    initial = [*carried, *(into for into, _ in stacked)]
    if count == 0:  # no element of xs is a slice
        return initial
    block = Block(arg_types=[INDEX, *(v.type for v in initial)])
    zero, one = index(lowering, 0), index(lowering, 1)
    end = sizes.value(count)
    last = sizes.value(sizes.sub(count, 1)) if op.reverse is not None else None
    shapes = [[sizes.of(x, a) for a in range(1, len(shape_of(x)))] for x in xs]
    with lowering.inside(block):
        at = block.args[0]
        at.name_hint = "i"
        if last is not None:
            at = lowering.insert(arith.SubiOp(last, at)).result
        slices = [_slice_at(lowering, x, at, shape) for x, shape in zip(xs, shapes, strict=True)]
        inside = [*block.args[1 : 1 + first], *slices]
        for was, now in zip(op.body.block.args, inside, strict=True):
            lowering.values[was] = now
            now.name_hint = was.name_hint
        results = lower_block(lowering, op.body.block)
        rows = [
            _insert_at(lowering, y, into, at, shape)
            for y, into, (_, shape) in zip(
                results[first:], block.args[1 + first :], stacked, strict=True
            )
        ]
        lowering.insert(scf.YieldOp(*results[:first], *rows))
    return lowering.insert(scf.ForOp(zero, end, one, initial, Region(block))).results


def _destinations(
    lowering: Lowering, op: ScanOp, count: Size, dynamic: Operands
) -> list[tuple[SSAValue, list[Size]]]:
    """Return an empty tensor for each stacked result, and the sizes of one of its slices."""
    sizes, rest = Sizes(lowering), iter(dynamic)
    found: list[tuple[SSAValue, list[Size]]] = []
    for y in op.stacked:
        shape: list[Size] = [next(rest) if n == DYNAMIC else n for n in shape_of(y)[1:]]
        found.append((sizes.empty([count, *shape], signless(tensor_type(y).element_type)), shape))
    return found


def _slice_at(lowering: Lowering, x: SSAValue, at: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    """Return ``x[at]``, a slice of these sizes."""
    ones = [1] * (len(sizes) + 1)
    offsets: list[Size] = [at, *(0 for _ in sizes)]
    slice = TensorType(tensor_type(x).element_type, shape_of(x)[1:])
    return lowering.insert(tensor.ExtractSliceOp(x, offsets, [1, *sizes], ones, slice)).result


def _insert_at(
    lowering: Lowering, y: SSAValue, into: SSAValue, at: SSAValue, sizes: Sequence[Size]
) -> SSAValue:
    """Return ``into`` with ``y`` written to ``into[at]``."""
    rank = len(sizes) + 1
    op = tensor.InsertSliceOp.build(
        operands=[y, into, [at], [n for n in sizes if not isinstance(n, int)], []],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, [DYNAMIC, *(0 for _ in sizes)]),
            "static_sizes": DenseArrayBase.from_list(i64, [1, *shape_of_sizes(sizes)]),
            "static_strides": DenseArrayBase.from_list(i64, [1] * rank),
        },
        result_types=[into.type],
    )
    return lowering.insert(op).result


@lower(CallOp)
def _call(lowering: Lowering, op: CallOp, operands: Operands) -> Operands:
    types = [signless(t) for t in op.result_types]
    return lowering.insert(func.CallOp(op.callee.string_value(), operands, types)).results


@lower(CheckOp)
def _check(lowering: Lowering, op: CheckOp, operands: Operands) -> Operands:
    """Keep the check on the host, at its position."""
    condition, *values = operands
    holds = lowering.insert(tensor.ExtractOp(condition, [], I1)).result
    numbers = [lowering.insert(tensor.ExtractOp(v, [], i64)).result for v in values]
    words = [w.data for w in op.words]
    lowering.insert(kernel.CheckOp(holds, numbers, op.kind.data, words))
    return ()


@lower(CallbackOp)
def _callback(lowering: Lowering, op: CallbackOp, operands: Operands) -> Operands:
    types = [signless(t) for t in op.result_types]
    return lowering.insert(kernel.CallbackOp(op.function.data, operands, (), types)).results
