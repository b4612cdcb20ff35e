"""From one element type to another."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.nd.base import ANY, NUMBER, element_dtype, like, tensor_of
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.readings import shape


class Conversion(Elementwise):
    """An op that changes the element type: ``nd.cast %x : tensor<4xf32> -> tensor<4xi32>``."""

    ELEMENTS: ClassVar = ANY
    CONVERTS: ClassVar = True
    x = operand_def(TensorType)

    def __init__(self, x: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[x], result_types=[like(tensor_of(x), element)])


@irdl_op_definition
class CastOp(Conversion):
    """``y`` = x as a value of another element type.

    * Float to float rounds to nearest even (f64 to f16 and bf16 by way of f32).
    * Float to integer truncates towards zero and saturates; NaN gives 0.
    * Integer to float rounds to nearest even (to f16 and bf16 by way of f32).
    * Integer to integer keeps the low bits, and extends by the sign of the source type.
    * To i1 is ``x ≠ 0`` (NaN is true); from i1 are 0 and 1.
    """

    name = "nd.cast"


@irdl_op_definition
class BitcastOp(Conversion):
    """``y`` = the bits of x taken as another element type of the same width.

    * (C1) Both element types are floats or integers of one width.
    """

    name = "nd.bitcast"
    ELEMENTS: ClassVar = NUMBER

    def verify_(self) -> None:
        """Check C1."""
        super().verify_()
        x, y = element_dtype(tensor_of(self.x)), element_dtype(tensor_of(self.y))
        if y.kind == "bool" or x.bytes != y.bytes:  # bitcast_c1
            raise VerifyException(f"elements must have one width, got {x.name} and {y.name}")


shape(CastOp, BitcastOp)(lambda op: (like(tensor_of(op.x), tensor_of(op.y).element_type),))

OPS = (CastOp, BitcastOp)
