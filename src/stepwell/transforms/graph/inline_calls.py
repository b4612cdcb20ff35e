"""Inline function bodies at their calls.

Before:  func.func private @twice(%x: T) -> T { %y = nd.add %x, %x  func.return %y }
         func.func @main(%a: T) -> T { %b = nd.call @twice(%a)  func.return %b }
After:   func.func @main(%a: T) -> T { %b = nd.add %a, %a  func.return %b }

Afterwards no function with a body is called, and unreferenced private functions are erased. The
location of an inlined op is that of the op and of the call together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.types import fuse_locations
from stepwell.transforms.passes import Pass, fail

Functions = dict[str, func.FuncOp]


@dataclass(frozen=True)
class InlineCalls(Pass):
    """Inline the calls of the module's own functions, and erase unreferenced private ones.

    Before:
        func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = nd.add %x, %x : tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
          %b = nd.call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %b : tensor<4xf32>
        }
    After:
        func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
          %b = nd.add %a, %a : tensor<4xf32>
          func.return %b : tensor<4xf32>
        }
    Afterwards: no function with a body is called.
    """

    name = "inline-calls"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline into every function, callees before callers."""
        functions: Functions = {
            each.sym_name.data: each
            for each in op.ops
            if isinstance(each, func.FuncOp) and each.body.blocks
        }
        calls = {name: list(_calls(each, functions)) for name, each in functions.items()}
        for name in _called_first(functions, calls):
            for call in calls[name]:
                inline(call, functions[_callee(call)])
        _drop_unnamed(op, functions)


def _callee(call: Operation) -> str:
    assert isinstance(call, CallOp | func.CallOp)
    return call.callee.string_value()


def _calls(function: func.FuncOp, functions: Functions) -> Iterator[Operation]:
    for op in function.walk():
        if isinstance(op, CallOp | func.CallOp) and _callee(op) in functions:
            if len(functions[_callee(op)].body.blocks) > 1:
                fail(op, f"@{_callee(op)} cannot be inlined: its body has more than one block")
            yield op


def _called_first(functions: Functions, calls: dict[str, list[Operation]]) -> list[str]:
    """Return the functions in post-order: callees before callers."""
    order: dict[str, None] = {}
    path: list[str] = []

    def visit(name: str) -> None:
        path.append(name)
        for call in calls[name]:
            if (callee := _callee(call)) in path:
                cycle = [*path[path.index(callee) :], callee]
                fail(
                    call,
                    f"recursion: {' calls '.join(f'@{n}' for n in cycle)}",
                    help="a program of tensors cannot call itself; say it with nd.while or nd.scan",
                )
            if callee not in order:
                visit(callee)
        path.pop()
        order[name] = None

    for name in functions:
        if name not in order:
            visit(name)
    return list(order)


def inline(call: Operation, callee: func.FuncOp) -> None:
    """Replace a call by a copy of the callee's body."""
    body, into = callee.body.block, call.parent
    assert into is not None
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands, strict=True))
    last = body.last_op
    assert isinstance(last, func.ReturnOp)
    for op in body.ops:
        if op is last:
            break
        copy = op.clone(values)
        for each in copy.walk():
            each.location = fuse_locations((each.location, call.location))
        into.insert_op_before(copy, call)
    for old, inner in zip(call.results, last.operands, strict=True):
        now = values.get(inner, inner)
        if old.name_hint is not None and inner not in body.args:
            now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    call.detach()
    call.erase()


def _drop_unnamed(module: ModuleOp, functions: Functions) -> None:
    """Erase private functions that no op references."""
    named: set[str] = set()
    for op in module.walk():
        for attribute in (*op.properties.values(), *op.attributes.values()):
            named.update(_symbols(attribute))
    for name, function in functions.items():
        private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        if private and name not in named:
            function.detach()
            function.erase()


def _symbols(attribute: Attribute) -> Iterator[str]:
    if isinstance(attribute, SymbolRefAttr):
        yield attribute.root_reference.data
    elif isinstance(attribute, ArrayAttr):
        for each in attribute:
            yield from _symbols(each)
