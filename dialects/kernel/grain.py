"""kernel.grain: how much of a parallel loop is worth a thread, where only the launch knows."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def


@irdl_op_definition
class GrainOp(IRDLOperation):
    """Give each thread ``iterations`` or more of the scf.parallel that is the next op.

    It changes nothing but time; 0 is as good as 1.
    """

    name = "kernel.grain"
    iterations = operand_def(IndexType())
    assembly_format = "$iterations attr-dict"

    def __init__(self, iterations: SSAValue) -> None:
        super().__init__(operands=[iterations])
