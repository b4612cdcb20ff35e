"""kernel.prefetch: asking for memory before it is needed."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, var_operand_def
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask for the line of memory that an element lies in, to be in the second cache soon.

    It changes nothing but time. The element need not be one of the buffer's.

    * (C1) There is one index for each axis of the buffer.
    """

    name = "kernel.prefetch"
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    assembly_format = "$buffer `[` $indices `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[buffer, list(indices)])

    def verify_(self) -> None:
        """Check C1."""
        assert isinstance(self.buffer.type, MemRefType)
        axes = self.buffer.type.get_num_dims()
        if len(self.indices) != axes:  # kernel_prefetch_c1
            raise VerifyException(f"a buffer of {axes} axes needs as many indices")
