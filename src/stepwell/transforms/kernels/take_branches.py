"""Keep, of each branch that sizes decide, the side that a call takes.

Before:  func.func @main(%x: tensor<?x8xf32>, ...) {
           %c = arith.cmpi sgt, %n, %c4
           %y = scf.if %c -> (tensor<?x8xf32>) { ... @tiles ... } else { ... @direct ... } }
After, for call="3x8":
         func.func @main(%x: tensor<?x8xf32>, ...) attributes {
             nd.served = [["not", [">", "d0", 4]]]} { ... @direct ... }

Afterwards the entry serves only calls that take the same sides, and says so. Kernels that are
launched nowhere are erased. The arguments remain, also weights that only the other side reads: the
program for all sizes takes the weights of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from stepwell.analysis.launch_sizes import condition_of
from stepwell.analysis.sizes import Sizes
from stepwell.core.host_schedule import Tree
from stepwell.dialects import kernel
from stepwell.dialects.checks import write_served
from stepwell.transforms.dce import DeadCode
from stepwell.transforms.kernels.kernel_signature import launches_of
from stepwell.transforms.kernels.schedule.first_call import FirstCall
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class TakeBranches(Pass):
    """Replace branches on sizes by the side that a call takes.

    call : shapes of the arguments of the call, as "8x64,64x64"; "" for none, which keeps both sides
    """

    name = "take-branches"
    one_block = True
    expects_work = False

    call: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the entry."""
        call = FirstCall.of(op, self.call) if self.call else None
        if call is None or not (conditions := _taken(call)):
            return
        write_served(call.entry, conditions)
        DeadCode().apply(ctx, op)
        launched = launches_of(op)
        for function in list(op.ops):
            if isinstance(function, kernel.FuncOp) and function.sym_name.data not in launched:
                function.detach()
                function.erase()


def _taken(call: FirstCall) -> list[Tree]:
    """Replace the branches of the entry, and return the conditions on which that is right."""
    found: dict[Tree, None] = {}
    sizes = Sizes(call.entry.args)
    for branch in [op for op in call.entry.walk() if isinstance(op, scf.IfOp)]:
        if not call.entry.is_ancestor(branch):  # it was in a side that is gone
            continue
        condition = condition_of(branch, sizes)
        if condition is None:
            continue
        taken = condition.holds(call.sizes)
        found[condition.tree if taken else ("not", condition.tree)] = None
        _replace(branch, branch.true_region if taken else branch.false_region)
    return list(found)


def _replace(branch: scf.IfOp, side: Region) -> None:
    """Replace a branch by the ops of a side, which may have none."""
    results: Sequence[SSAValue] = ()
    if side.blocks:
        end = side.block.last_op
        assert end is not None
        results = end.operands
        end.detach()
        Rewriter.inline_block(side.block, InsertPoint.before(branch))
    for old, new in zip(branch.results, results, strict=True):
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)
    branch.detach()
    branch.erase()
