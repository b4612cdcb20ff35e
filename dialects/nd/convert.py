"""Conversions between element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import DType
from stepwell.dialects.nd.base import ANY, NUMBER, element_dtype, like, tensor_of
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.readings import Array, reference, shape


class Conversion(Elementwise):
    """An op that changes the element type: ``nd.cast %x : tensor<4xf32> -> tensor<4xi32>``."""

    ELEMENTS: ClassVar = ANY
    CONVERTS: ClassVar = True
    x = operand_def(TensorType)

    def __init__(self, x: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[x], result_types=[like(tensor_of(x), element)])


@irdl_op_definition
class CastOp(Conversion):
    """``y`` = x converted to another element type.

    * Float to float rounds to nearest even (f64 to f16 and bf16 by way of f32).
    * Float to integer truncates towards zero and saturates; NaN gives 0.
    * Integer to float rounds to nearest even (to f16 and bf16 by way of f32).
    * Integer to integer keeps the low bits, and extends by the sign of the source type.
    * To i1 is ``x ≠ 0`` (NaN gives true); i1 converts to 0 and 1.
    """

    name = "nd.cast"


@irdl_op_definition
class BitcastOp(Conversion):
    """``y`` = the bits of x reinterpreted as another element type of the same width.

    * (C1) Both element types are floats or integers of the same width.
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


@reference(CastOp)
def _cast_reference(op: CastOp, operands: Sequence[Array]) -> Array:
    x, to = np.asarray(operands[0]), element_dtype(tensor_of(op.y))
    if to.kind == "bool":
        return x != 0
    if x.dtype.kind == "f" and to.kind != "float":
        return _saturated(x, to)
    if to.name in ("f16", "bf16") and x.dtype != np.float16:
        with np.errstate(all="ignore"):
            x = x.astype(np.float32)
    return to.round(x)


def _saturated(x: Array, to: DType) -> Array:
    """Truncate floats to integers; values out of range become the nearest bound."""
    least, most = np.iinfo(to.numpy).min, np.iinfo(to.numpy).max
    whole = np.trunc(x.astype(np.float64))
    above, below = whole >= float(most + 1), whole < float(least)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(to.numpy)
    return np.where(above, to.numpy.type(most), np.where(below, to.numpy.type(least), inside))


@reference(BitcastOp)
def _bitcast_reference(op: BitcastOp, operands: Sequence[Array]) -> Array:
    """Reinterpret the bits; bf16 is stored as the upper half of f32."""
    x = np.ascontiguousarray(operands[0]).reshape(np.shape(operands[0]))
    before, after = element_dtype(tensor_of(op.x)), element_dtype(tensor_of(op.y))
    if before.name == "bf16":
        x = (x.view(np.uint32) >> 16).astype(np.uint16)
    if after.name == "bf16":
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return x.view(after.numpy)


OPS = (CastOp, BitcastOp)
