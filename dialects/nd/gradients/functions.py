"""Derivatives of whole functions, added to the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Region

from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.transformations import JvpOp, VjpOp

Kind: TypeAlias = type[VjpOp] | type[JvpOp]


def write_derivative(
    function: func.FuncOp,
    name: str,
    kind: Kind,
    wrt: Sequence[int],
    of: Sequence[int],
    *,
    whole: bool,
) -> func.FuncOp:
    """Write the derivative of ``function`` after it, and return it.

    It takes the arguments of the function, then cotangents of the results ``of`` (tangents of the
    arguments ``wrt``), and returns the results, then cotangents of ``wrt`` (tangents of ``of``).

    whole : whether it returns the results too; a function without them is private
    """
    block = function.clone().detach_region(0).detach_block(0)
    last = block.last_op
    assert isinstance(last, func.ReturnOp)
    outs, ins = list(last.operands), list(block.args)
    last.detach()
    last.erase()
    block.add_op(YieldOp(outs))
    given, found = [outs[k] for k in of], [ins[k] for k in wrt]
    if kind is JvpOp:
        given, found = found, given
    outer = Block(arg_types=[v.type for v in (*ins, *given)])
    hints = [v.name_hint for v in ins]
    prefix = "t" if kind is JvpOp else "d"
    hints += [f"{prefix}_{v.name_hint}" if v.name_hint else None for v in given]
    for argument, hint in zip(outer.args, hints, strict=True):
        argument.name_hint = hint
    results = [v.type for v in (*outs, *found)]
    arguments = outer.args
    n = len(ins)
    derivative = kind(arguments[:n], arguments[n:], results, Region(block), wrt, of)
    derivative.location = function.location
    for result, value in zip(derivative.results, outs, strict=False):
        result.name_hint = value.name_hint
    for result, value in zip(derivative.results[len(outs) :], found, strict=True):
        result.name_hint = f"{prefix}_{value.name_hint}" if value.name_hint else None
    outer.add_op(derivative)
    ends = derivative.results if whole else derivative.results[len(outs) :]
    outer.add_op(func.ReturnOp(*ends))
    types = ([a.type for a in outer.args], [v.type for v in ends])
    visibility = None if whole else StringAttr("private")
    new = func.FuncOp(name, types, Region(outer), visibility=visibility)
    new.location = function.location
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    module.body.block.insert_op_after(new, function)
    expand(derivative)
    return new
