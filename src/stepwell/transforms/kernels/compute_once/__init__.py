"""Hoist invariant computations: out of loops, and to load time.

Before:  func.func @main(%x, %w {nd.resource = "w"}) {
           scf.for ... { %p = kernel.launch @pack ins(%w) ...  kernel.launch @k ins(%c, %p) ... } }
After:   func.func @main(%x, %p {nd.resource = "w_packed", kernel.computed_constant = 0}) {
           scf.for ... { kernel.launch @k ins(%c, %p) ... } }
         func.func @main.constants(%w {nd.resource = "w"}) -> tensor<...> {
           %p = kernel.launch @pack ins(%w) ...  func.return %p }

Afterwards no host loop launches a kernel whose result is the same in each iteration, and the entry
launches none whose result is the same in each call. Such results of calls are weights of the entry;
`@main.constants` computes them from the given weights when the program is loaded. A weight that
only that function uses is no argument of the entry any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from stepwell.analysis.constness import MAKER, entries
from stepwell.transforms.kernels.compute_once.constants import split_off
from stepwell.transforms.kernels.compute_once.loops import move_out
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class ComputeOnce(Pass):
    """Hoist launches out of loops, and weight-only computations to load time.

    hoist_constants : 0 to leave weight-only computations in the call
    """

    name = "compute-once"
    one_block = True
    expects_work = False

    hoist_constants: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite each function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                move_out(function.body.block)
        if self.hoist_constants:
            names = {f.sym_name.data for f in op.ops if isinstance(f, func.FuncOp)}
            for function in list(entries(op)):
                name = function.sym_name.data
                if name.removesuffix(MAKER) in names - {name}:
                    continue  # computes the weights of the other, from an earlier run
                if f"{name}{MAKER}" not in names:
                    split_off(function)
