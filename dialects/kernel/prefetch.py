"""kernel.prefetch: prefetch memory into a cache."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, var_operand_def
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Prefetch the cache line of an element into the second cache.

    The op affects only time. The element may be out of the buffer's bounds.

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
