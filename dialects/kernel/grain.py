"""kernel.grain: the minimum work per thread of a parallel loop, computed at launch."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def


@irdl_op_definition
class GrainOp(IRDLOperation):
    """Give each thread at least ``iterations`` of the scf.parallel that is the next op.

    The op affects only time; 0 means the same as 1.
    """

    name = "kernel.grain"
    iterations = operand_def(IndexType())
    assembly_format = "$iterations attr-dict"

    def __init__(self, iterations: SSAValue) -> None:
        super().__init__(operands=[iterations])
