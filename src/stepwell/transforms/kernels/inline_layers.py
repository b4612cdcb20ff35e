"""Inline the calls of the layers that `outline-layers` outlined.

Before:  func.func private @main.layer(%x, %v) attributes {nd.layer_of = "main"} {
           %y = kernel.launch @main_matmul_exp ins(%x, %v) outs(%e)   func.return %y }
         func.func @main(%x, %v, %w) {
           %y = func.call @main.layer(%x, %v)   %z = func.call @main.layer(%y, %w) ... }
After:   func.func @main(%x, %v, %w) {
           %y = kernel.launch @main_matmul_exp ins(%x, %v) outs(%e)
           %z = kernel.launch @main_matmul_exp ins(%y, %w) outs(%f) ... }

Afterwards no function with `nd.layer_of` is called, and none is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from stepwell.transforms.graph.inline_calls import inline
from stepwell.transforms.graph.outline_layers import LAYER_OF
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class InlineLayers(Pass):
    """Inline the calls of outlined layers, and erase these functions.

    Before:
        %y = func.call @main.layer(%x, %v)
    After:
        %y = kernel.launch @main_matmul_exp ins(%x, %v) outs(%e)
    Afterwards: no function with `nd.layer_of` is called, and none is left.
    """

    name = "inline-layers"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline into every function."""
        functions = [each for each in op.ops if isinstance(each, func.FuncOp)]
        layers = {f.sym_name.data: f for f in functions if _is_layer(f)}
        if not layers:
            return
        for function in functions:
            for call in _calls(function) if function not in layers.values() else ():
                if (layer := layers.get(call.callee.string_value())) is not None:
                    inline(call, layer)
        called = {call.callee.string_value() for call in _calls(op)}
        for name in layers.keys() - called:
            layers[name].detach()
            layers[name].erase()


def _is_layer(function: func.FuncOp) -> bool:
    return LAYER_OF in function.attributes and bool(function.body.blocks)


def _calls(root: Operation) -> list[func.CallOp]:
    return [op for op in root.walk() if isinstance(op, func.CallOp)]
