"""Batched versions of whole functions, added to the module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.transformations import UNBATCHED, VmapOp


def write_batch(
    function: func.FuncOp,
    name: str,
    in_axes: Sequence[int],
    out_axes: Sequence[int],
    size: int | None,
) -> func.FuncOp:
    """Write the batched version of ``function`` after it, and return it.

    in_axes, out_axes : for each argument and result its batch axis, or -1
    size : the number of examples; None if it is that of the first batched argument
    """
    block = function.clone().detach_region(0).detach_block(0)
    last = block.last_op
    assert isinstance(last, func.ReturnOp)
    outs, ins = list(last.operands), list(block.args)
    last.detach()
    last.erase()
    block.add_op(YieldOp(outs))
    length = DYNAMIC if size is None else size
    types = [_with_axis(v.type, axis, length) for v, axis in zip(ins, in_axes, strict=True)]
    outer = Block(arg_types=types)
    for argument, value in zip(outer.args, ins, strict=True):
        argument.name_hint = value.name_hint
    count: int | SSAValue = length
    if size is None:
        batched = next(n for n, axis in enumerate(in_axes) if axis != UNBATCHED)
        dim = DimOp(outer.args[batched], in_axes[batched])
        outer.add_op(dim)
        count = dim.n
        count.name_hint = "examples"
    for argument, value in zip(outer.args, ins, strict=True):
        if not isinstance(value.type, TensorType):  # a size, which regions capture
            value.replace_all_uses_with(argument)
            block.erase_arg(value)
    given = [n for n, t in enumerate(types) if isinstance(t, TensorType)]
    results = [_with_axis(v.type, axis, length) for v, axis in zip(outs, out_axes, strict=True)]
    inside = [in_axes[n] for n in given]
    primals = [outer.args[n] for n in given]
    batch = VmapOp(primals, results, Region(block), inside, out_axes, count)
    batch.location = function.location
    for result, value in zip(batch.results, outs, strict=True):
        result.name_hint = value.name_hint
    outer.add_op(batch)
    outer.add_op(func.ReturnOp(*batch.results))
    new = func.FuncOp(name, (types, results), Region(outer))
    new.location = function.location
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    module.body.block.insert_op_after(new, function)
    expand(batch)
    return new


def _with_axis(type: Attribute, axis: int, size: int) -> Attribute:
    """Return a type with one more axis; unchanged if it is not batched."""
    if axis == UNBATCHED or not isinstance(type, TensorType):
        return type
    sizes = [*type.get_shape()]
    sizes.insert(axis, size)
    return TensorType(type.element_type, sizes)
