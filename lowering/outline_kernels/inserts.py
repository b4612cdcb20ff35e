"""Wrap the updates of single elements in loops of one iteration, so that they become kernels.

Before:  %a = tensor.extract %x[%i] : tensor<16xf32>
         %b = arith.addf %a, %one : f32
         %y = tensor.insert %b into %x[%i] : tensor<16xf32>
After:   %y = scf.for %k = %c0 to %c1 step %c1 iter_args(%z = %x) -> (tensor<16xf32>) {
           %a = tensor.extract %z[%i] : tensor<16xf32>
           %b = arith.addf %a, %one : f32
           %w = tensor.insert %b into %z[%i] : tensor<16xf32>
           scf.yield %w : tensor<16xf32> }

A scatter of several elements is such a loop already; canonicalization removes the loop of a single
one. On the host its arithmetic would be that of a target that may lack the element type.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ShapedType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from stepwell.lowering.outline_kernels.grow import is_scalar_code, is_scalar_nest


def wrap_inserts(block: Block) -> None:
    """Wrap insertions into single elements of ``block``, with their scalar operands, in loops."""
    order = {op: number for number, op in enumerate(block.ops)}
    for op in order:
        if isinstance(op, tensor.InsertOp | scf.IfOp) and is_scalar_nest(op):
            bases = [_base(result, op) for result in op.results]
            found = [base for base in bases if base is not None]
            if len(set(found)) == len(bases):
                _wrap(op, found, order)


def _base(value: SSAValue, op: Operation) -> SSAValue | None:
    """Return the tensor that ``value`` is updated from by insertions inside ``op``, if any."""
    if not isinstance(value.type, ShapedType):
        return None
    if not isinstance(value, OpResult) or not op.is_ancestor(value.op):
        return value
    match value.op:
        case tensor.InsertOp(dest=dest):
            return _base(dest, op)
        case scf.IfOp() as choice:
            ends = [_yielded(region)[value.index] for region in choice.regions]
            first, second = (_base(end, op) for end in ends)
            return first if first is second else None
        case _:
            return None


def _yielded(region: Region) -> Sequence[SSAValue]:
    last = region.block.last_op
    assert last is not None
    return last.operands


def _wrap(op: Operation, bases: list[SSAValue], order: dict[Operation, int]) -> None:
    """Replace ``op`` by a loop of one iteration that updates ``bases``."""
    index = IndexType()
    zero, one = (arith.ConstantOp(IntegerAttr(n, index)) for n in (0, 1))
    body = Block(arg_types=[index, *(base.type for base in bases)])
    loop = scf.ForOp(zero, one, one, bases, Region(body))
    parent = op.parent
    assert parent is not None
    parent.insert_ops_before([zero, one, loop], op)
    values: dict[SSAValue, SSAValue] = dict(zip(bases, body.args[1:], strict=True))
    for each in [*sorted(_scalars(op), key=order.__getitem__), op]:
        copy = each.clone(values)
        body.add_op(copy)
        values.update(zip(each.results, copy.results, strict=True))
    end = scf.YieldOp(*(values[result] for result in op.results))
    body.add_op(end)
    for each in (zero, one, loop, end):
        each.location = op.location
    for old, new, argument in zip(op.results, loop.results, body.args[1:], strict=True):
        new.name_hint = argument.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def _scalars(op: Operation) -> dict[Operation, None]:
    """Return the ops in the block of ``op`` that compute its scalar operands."""
    found: dict[Operation, None] = {}
    waiting = [op]
    while waiting:
        for each in waiting.pop().walk():
            for value in each.operands:
                made_by = value.owner
                if (
                    isinstance(made_by, Operation)
                    and made_by.parent is op.parent
                    and made_by not in found
                    and not isinstance(value.type, ShapedType)
                    and not made_by.regions
                    and is_scalar_code(made_by)
                ):
                    found[made_by] = None
                    waiting.append(made_by)
    return found
