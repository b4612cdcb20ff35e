"""Split off a function that computes the weight-only values once."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from stepwell.analysis.constness import MAKER, RESOURCE, attributes_of, constants_of
from stepwell.analysis.structured import tensor_bytes
from stepwell.dialects import kernel

COMPUTED_CONSTANT = "kernel.computed_constant"
MAX_FREE_BYTES = 1 << 20
"""Bytes of a result that is always kept, however small its operands are."""
MAX_GROWTH = 2
"""Size of a larger result relative to the weights it is computed from, at most."""


def split_off(function: func.FuncOp) -> None:
    """Move the computations of ``function`` on weights alone to a new function."""
    constants = constants_of(function)
    created = _worth_keeping(function, constants)
    needed = _used_outside(function, created)
    if not needed:
        return
    block = function.parent_block()
    assert block is not None
    block.insert_op_after(_constants_function(function, needed), function)
    names = _take_as_arguments(function, needed)
    _write_signature(function, names)


def _worth_keeping(function: func.FuncOp, constants: set[SSAValue]) -> set[SSAValue]:
    """Return the results of launches on constants, and stacks of such, that are worth keeping.

    A result without inputs is mostly a fill for others to write into: kept, it would be copied.
    """
    weight = {v: tensor_bytes(v) if isinstance(v, BlockArgument) else 0 for v in constants}
    found: set[SSAValue] = set()
    for op in function.body.block.ops:
        if not op.results or op.results[0] not in constants:
            continue
        made_of = sum(weight[v] for v in dict.fromkeys(op.operands))
        weight.update(dict.fromkeys(op.results, made_of))
        static = all(
            isinstance(r.type, TensorType) and DYNAMIC_INDEX not in r.type.get_shape()
            for r in op.results
        )
        launched = isinstance(op, kernel.LaunchOp) and op.inputs
        if static and (launched or isinstance(op, kernel.StackOp)):
            size = sum(tensor_bytes(r) for r in op.results)
            if size <= max(MAX_FREE_BYTES, MAX_GROWTH * made_of):
                found.update(op.results)
    return found


def _used_outside(function: func.FuncOp, created: set[SSAValue]) -> list[SSAValue]:
    """Return the values of ``created`` that code outside of the new function uses, in order."""
    block = function.body.block
    needed: dict[SSAValue, None] = {}
    alive: set[Operation] = set()
    for op in reversed(list(block.ops)):
        here = bool(op.regions) or not op.results or op in alive
        for value in (v for each in op.walk() for v in each.operands) if here else ():
            if value in created:
                needed[value] = None
            elif isinstance(value.owner, Operation):
                alive.add(value.owner)
    return [r for op in block.ops for r in op.results if r in needed]


def _slice(needed: list[SSAValue]) -> set[Operation]:
    """Return the backward slice of ``needed``."""
    found: set[Operation] = set()
    waiting = list(needed)
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            waiting.extend(owner.operands)
    return found


def _constants_function(function: func.FuncOp, needed: list[SSAValue]) -> func.FuncOp:
    """Return a function that computes ``needed`` from weights."""
    ops = _slice(needed)
    used = {v for op in ops for v in op.operands}
    weights = [a for a in function.args if a in used]
    block = Block(arg_types=[a.type for a in weights])
    values: dict[SSAValue, SSAValue] = dict(zip(weights, block.args, strict=True))
    for old, new in zip(weights, block.args, strict=True):
        new.name_hint, new.location = old.name_hint, old.location
    for op in function.body.block.ops:
        if op in ops:
            copy = op.clone(values)
            copy.location = op.location
            block.add_op(copy)
    end = func.ReturnOp(*(values[v] for v in needed))
    end.location = function.location
    block.add_op(end)
    maker = func.FuncOp(
        f"{function.sym_name.data}{MAKER}",
        FunctionType.from_lists([a.type for a in weights], [v.type for v in needed]),
        Region(block),
        arg_attrs=ArrayAttr(DictionaryAttr(attributes_of(function, a.index)) for a in weights),
    )
    maker.location = function.location
    return maker


def _take_as_arguments(function: func.FuncOp, needed: list[SSAValue]) -> list[dict[str, Attribute]]:
    """Make ``needed`` arguments, erase dead code; return the attributes of all arguments."""
    block = function.body.block
    attributes = [dict(attributes_of(function, k)) for k in range(len(block.args))]
    taken = {a.data for each in attributes if isinstance(a := each.get(RESOURCE), StringAttr)}
    for number, value in enumerate(needed):
        new = block.insert_arg(value.type, len(block.args))
        new.name_hint = value.name_hint or "constant"
        name = _fresh(new.name_hint or "constant", taken)
        attributes.append({RESOURCE: StringAttr(name), COMPUTED_CONSTANT: IntegerAttr(number, i64)})
        value.replace_all_uses_with(new)
    for op in reversed(list(block.ops)):
        unused = op.results and all(r.first_use is None for r in op.results)
        if unused and not op.regions:
            op.detach()
            op.erase()
    for argument in reversed(block.args):
        each = attributes[argument.index]
        if RESOURCE in each and argument.first_use is None:
            del attributes[argument.index]
            block.erase_arg(argument)
    return attributes


def _fresh(name: str, taken: set[str]) -> str:
    """Return ``name``, with a number appended where a weight has that name already."""
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def _write_signature(function: func.FuncOp, attributes: list[dict[str, Attribute]]) -> None:
    function.properties["function_type"] = FunctionType.from_lists(
        list(function.body.block.arg_types), function.function_type.outputs.data
    )
    function.properties["arg_attrs"] = ArrayAttr(DictionaryAttr(each) for each in attributes)
