"""kernel.concurrent: parts of a host function that may run at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.kernel.ops import LaunchOp


@irdl_op_definition
class ConcurrentOp(IRDLOperation):
    """Run independent branches, in parallel if there are threads.

    A buffer that a branch writes is neither read nor written by another branch.

    * (C1) There are two branches or more, none of which has arguments.
    * (C2) A destination of a launch in one branch is not an operand of a launch in another.
    """

    name = "kernel.concurrent"
    branches = var_region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, branches: Sequence[Region]) -> None:
        super().__init__(regions=[list(branches)])

    def verify_(self) -> None:
        """Check C1 and C2."""
        if len(self.branches) < 2 or any(b.block.args for b in self.branches):
            raise VerifyException(  # kernel_concurrent_c1
                "there must be two branches or more, without arguments"
            )
        user: dict[SSAValue, int] = {}
        launches = [
            (number, op)
            for number, branch in enumerate(self.branches)
            for op in branch.walk()
            if isinstance(op, LaunchOp)
        ]
        for number, launch in launches:
            for value in launch.outputs:
                if isinstance(value.type, MemRefType):
                    user[value] = number
        for number, launch in launches:
            if any(user.get(value, number) != number for value in launch.operands):
                raise VerifyException(  # kernel_concurrent_c2
                    "a branch touches what another one writes"
                )

    @classmethod
    def parse(cls, parser: Parser) -> ConcurrentOp:
        """Parse ``{ ... } and { ... }``, then attributes."""
        branches = [parser.parse_region()]
        while parser.parse_optional_keyword("and") is not None:
            branches.append(parser.parse_region())
        for branch in branches:
            if not branch.blocks:
                branch.add_block(Block())
        op = ConcurrentOp(branches)
        op.attributes = dict(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        for number, branch in enumerate(self.branches):
            printer.print_string(" and " if number else " ")
            printer.print_region(branch)
        printer.print_op_attributes(self.attributes)
