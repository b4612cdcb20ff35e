"""Batching of ops with effects: checks for all examples at once, Python calls one by one."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import SymbolTable

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.shapes.shape import DYNAMIC
from stepwell.dialects.nd.batching.walk import Batch
from stepwell.dialects.nd.bitwise import NotOp, OrOp
from stepwell.dialects.nd.callback import CallbackOp
from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.nd.checking import CheckOp
from stepwell.dialects.nd.compare import EqOp, SelectOp
from stepwell.dialects.nd.control import IfOp, ScanOp, YieldOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import FullOp, IotaOp
from stepwell.dialects.nd.gradients.reverse import reads
from stepwell.dialects.nd.reduction import ArgminOp, ReduceAndOp, ReduceSumOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import batching
from stepwell.dialects.types import place_of


@batching(CheckOp)
def _check(b: Batch, op: CheckOp) -> Sequence[SSAValue]:
    """Require the condition for all active examples; the message is that of the first failure."""
    if b.length == 0:
        return ()
    holds = b.lead(op.condition)
    if (active := b.active()) is not None:
        holds = b.of(OrOp(holds, b.of(NotOp(active))))
    values = [_value_of_first(b, holds, b.found[v]) if b.has(v) else v for v in op.values]
    words = [each.data for each in op.words]
    b.builder.insert(CheckOp(b.of(ReduceAndOp(holds, [0])), values, op.kind.data, words))
    return ()


def _value_of_first(b: Batch, holds: SSAValue, values: SSAValue) -> SSAValue:
    """Return the value of the first example for which ``holds`` is false."""
    first = b.of(ArgminOp(b.of(CastOp(holds, i64)), 0))
    lanes = TensorType(i64, [b.length])
    place = b.of(IotaOp(lanes, 0, b.sizes(values)))
    here = b.of(EqOp(place, b.along(first, place, ())))
    return b.of(ReduceSumOp(b.of(SelectOp(here, values, b.full(values, 0))), [0]))


@batching(CallbackOp)
def _callback(b: Batch, op: CallbackOp) -> Sequence[SSAValue]:
    """Call Python for one example after the other."""
    return each_alone(b, op)


def each_alone(b: Batch, op: Operation) -> Sequence[SSAValue]:
    """Run ``op``, which has no regions, for the active examples one after the other."""
    sizes = _sizes_of_example(b, op)
    given = list(dict.fromkeys(v for v in reads(op) if b.has(v)))
    active = b.active()
    xs = [*(b.found[v] for v in given), *([] if active is None else [active])]
    block = Block(arg_types=[TensorType(element(x), shape_of(x)[1:]) for x in xs])
    mapper = dict(zip(given, block.args, strict=False))
    copy = op.clone(value_mapper=dict[SSAValue, SSAValue](mapper))
    inside = b.within(block)
    if active is None:
        inside.builder.insert(copy)
        results: Sequence[SSAValue] = copy.results
    else:
        results = _where(inside, block.args[-1], copy)
    inside.builder.insert(YieldOp(results))
    scan = ScanOp([], xs, Region(block), sizes=sizes)
    b.builder.insert(scan)
    return list(scan.outputs)


def _sizes_of_example(b: Batch, op: Operation) -> list[SSAValue]:
    """Return the unknown sizes of the results of ``op`` for one example."""
    if all(DYNAMIC not in shape_of(y) for y in op.results):
        return []
    like: dict[SSAValue, SSAValue] = {}
    for value in op.operands:
        if (known := b.found.get(value)) is not None:
            dynamic = [b.size(known, a + 1) for a, n in enumerate(shape_of(value)) if n == DYNAMIC]
            type = TensorType(element(value), shape_of(value))
            like[value] = b.of(FullOp.of(0, type, dynamic))
    return [n for y in b.builder.insert(op.clone(value_mapper=like)).results for n in b.sizes(y)]


def _where(b: Batch, condition: SSAValue, op: Operation) -> Sequence[SSAValue]:
    """Run ``op`` if ``condition`` is true; otherwise its results are zeros."""
    types = [y.type for y in op.results]
    then, otherwise = Block([op, YieldOp(op.results)]), Block()
    zeros = b.within(otherwise)
    zeros.builder.insert(YieldOp([zeros.of(FullOp.of(0, t)) for t in types]))  # pyright: ignore
    chosen = IfOp(condition, types, Region(then), Region(otherwise))
    b.builder.insert(chosen)
    return chosen.outputs


@batching(CallOp)
def _call(b: Batch, op: CallOp) -> Sequence[SSAValue]:
    """Inline the function for the batch."""
    name = op.callee.string_value()
    callee = SymbolTable.lookup_symbol(op, op.callee)
    if not isinstance(callee, func.FuncOp) or len(callee.body.blocks) != 1:
        help = "a function of the module that has a body, of one block, can be"
        said = f"@{name} cannot be batched"
        raise CompileError(Diagnostic("error", said, place_of(op), help=help))
    given = [b.has(v) for v in op.arguments]
    ends = b.inlined(callee.body.clone().block, [b.read(v) for v in op.arguments], given)
    return [b.read(v) for v in ends]
