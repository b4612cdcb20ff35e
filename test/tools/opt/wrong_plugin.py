"""A plug-in whose pass is wrong on purpose: it swaps the operands of a subtraction."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe


@dataclass(frozen=True)
class SwapSubtraction(ModulePass):
    """Take x - y for y - x."""

    name = "swap-subtraction"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "nd.sub":
                each.operands = [each.operands[1], each.operands[0]]


@dataclass(frozen=True)
class Crash(ModulePass):
    """Die of a bug."""

    name = "crash"
    depth: int = 1
    loudly: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("a bug in the pass")


@dataclass(frozen=True)
class BreakDominance(ModulePass):
    """Leave a module that does not verify."""

    name = "break-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if each.name == "nd.sub":
                block = each.parent
                assert block is not None
                each.detach()
                first = block.first_op
                assert first is not None
                block.insert_op_before(each, first)
                return


UNIVERSE = Universe(
    all_passes={p.name: lambda p=p: p for p in (SwapSubtraction, Crash, BreakDominance)}
)
