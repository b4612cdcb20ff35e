"""kernel.lookup: numbers from a table that fits in a register."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class LookupOp(IRDLOperation):
    """Return lane ``i mod n`` of a vector of ``n`` lanes for an integer ``i``, or each of a vector.

    The lowest bits of ``i`` are the lane, so that one shuffle instruction suffices if available.

    * (C1) The table is a vector with one axis, whose size is a power of two.

    * (C2) The result has the table's element type and a lane for each index.
    """

    name = "kernel.lookup"
    table = operand_def(VectorType)
    indices = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$table `[` $indices `]` attr-dict `:` type($table) `,` type($indices) `->` type($result)"
    )

    def __init__(self, table: SSAValue, indices: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[table, indices], result_types=[result])

    def verify_(self) -> None:
        """Check C1 and C2."""
        table, indices, result = self.table.type, self.indices.type, self.result.type
        assert isinstance(table, VectorType)
        sizes = table.get_shape()
        if len(sizes) != 1 or sizes[0] & (sizes[0] - 1):  # kernel_lookup_c1
            raise VerifyException(f"a table has a power of two of lanes, this is {table}")
        integer, wanted = indices, table.element_type
        if isinstance(indices, VectorType):
            integer = indices.element_type
            wanted = VectorType(table.element_type, indices.get_shape())
        if not isinstance(integer, IntegerType):
            raise VerifyException(f"indices must be integers, not {indices}")
        if result != wanted:  # kernel_lookup_c2
            raise VerifyException(f"looking {indices} up in {table} gives {wanted}, not {result}")
