"""Find the values of an entry function that are equal in all calls: weights and their functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from stepwell.analysis.effects import is_pure
from stepwell.dialects import kernel

RESOURCE = "nd.resource"
MAKER = ".constants"
"""The end of the name of a function that computes the weights of an entry."""


def entries(module: ModuleOp) -> Iterator[func.FuncOp]:
    """Return the public functions, including those that compute constants."""
    for op in module.ops:
        if isinstance(op, func.FuncOp) and op.body.blocks and _is_public(op):
            yield op


def _is_public(function: func.FuncOp) -> bool:
    visibility = function.sym_visibility
    return visibility is None or visibility.data != "private"


def attributes_of(function: func.FuncOp, argument: int) -> Mapping[str, Attribute]:
    """Return the attributes of an argument."""
    return function.arg_attrs.data[argument].data if function.arg_attrs else {}


def constants_of(function: func.FuncOp) -> set[SSAValue]:
    """Return the top-level values of an entry function that depend on weights only.

    Ops with regions are not analysed; their results count as varying.
    """
    found: set[SSAValue] = {
        a for k, a in enumerate(function.args) if RESOURCE in attributes_of(function, k)
    }
    for op in function.body.block.ops:
        if not op.regions and is_pure(op) and all(v in found for v in op.operands):
            found.update(op.results)
    return found


def constant_arguments(module: ModuleOp) -> dict[str, set[int]]:
    """Return for each kernel the arguments that are constant in all launches."""
    constants = {v for function in entries(module) for v in constants_of(function)}
    found: dict[str, set[int]] = {}
    if not any(isinstance(v, BlockArgument) for v in constants):
        return found
    for op in module.walk():
        if isinstance(op, kernel.LaunchOp):
            here = {k for k, v in enumerate(op.operands) if v in constants}
            name = op.callee.string_value()
            found[name] = found[name] & here if name in found else here
    return found
