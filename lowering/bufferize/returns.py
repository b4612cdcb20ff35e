"""Results of host functions: each is written into memory of the caller's.

A result with ``nd.into = k`` replaces argument ``k``: the caller may pass one array for both, which
the function then updates in place. If the caller passes two, the argument is copied into the result
on entry, and nothing else differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import OpResult

from stepwell.dialects import kernel
from stepwell.dialects.calling import INTO
from stepwell.dialects.types import locate, tensor_type
from stepwell.transforms.passes import fail


def updated_arguments(function: func.FuncOp) -> Mapping[int, int]:
    """Return the numbers of results that replace an argument, by the number of the argument."""
    found: dict[int, int] = {}
    types = function.function_type
    for number, given in enumerate(function.res_attrs.data if function.res_attrs else ()):
        told = given.data.get(INTO)
        if told is None:
            continue
        argument = told.value.data if isinstance(told, IntegerAttr) else -1
        if not 0 <= argument < len(types.inputs) or argument in found:
            fail(function, f"result {number}: {INTO} = {told} names no argument of its own")
        if types.inputs.data[argument] != types.outputs.data[number]:
            fail(function, f"result {number} has another type than argument {argument}, its memory")
        found[argument] = number
    return found


def wanted_in_place(module: ModuleOp) -> dict[str, set[tuple[int, int]]]:
    """Return by kernel the pairs (input, result) in which the result replaces the input.

    The input is an argument of the host function that has ``nd.into`` on that result.
    """
    found: dict[str, set[tuple[int, int]]] = {}
    for function in module.ops:
        if not isinstance(function, func.FuncOp) or not function.body.blocks:
            continue
        last = function.body.block.last_op
        for argument, result in updated_arguments(function).items():
            value = last.operands[result] if isinstance(last, func.ReturnOp) else None
            if not isinstance(value, OpResult) or not isinstance(value.owner, kernel.LaunchOp):
                continue
            launch, old = value.owner, function.args[argument]
            name = launch.callee.root_reference.data
            inputs = [i for i, given in enumerate(launch.inputs) if given is old]
            found.setdefault(name, set()).update((i, value.index) for i in inputs)
    return found


def copy_old_values(function: func.FuncOp) -> None:
    """Copy, on entry, each updated argument whose old value is returned as another result."""
    last = function.body.block.last_op
    updated = {function.args[k]: n for k, n in updated_arguments(function).items()}
    first = function.body.block.first_op
    if not isinstance(last, func.ReturnOp) or first is None:
        return
    for number, value in enumerate(last.operands):
        # a result that is its own argument stays; two that swap arguments are copied at the end
        if value not in updated or number in updated.values():
            continue
        type = tensor_type(value)
        axes = [arith.ConstantOp(IntegerAttr(a, IndexType())) for a in range(type.get_num_dims())]
        dims = [tensor.DimOp(value, a.result) for a in axes]
        shape = type.get_shape()
        dynamic = [d.result for d, n in zip(dims, shape, strict=True) if n == DYNAMIC_INDEX]
        empty = tensor.EmptyOp(dynamic, type)
        zeros, ones = [0] * len(shape), [1] * len(shape)
        copy = tensor.InsertSliceOp.get(
            value, empty.tensor, shape, zeros, ones, [], dynamic, [], type
        )
        function.body.block.insert_ops_before([*axes, *dims, empty, copy], first)
        copy.result.name_hint = value.name_hint
        for op in (*axes, *dims, empty, copy):
            locate(op, last.location)
        last.operands[number] = copy.result
