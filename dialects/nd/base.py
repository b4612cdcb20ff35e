"""The base of all ops of `nd`: they are pure, and operands determine the result types."""

from __future__ import annotations

from abc import ABC
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.traits import OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import DType, Kind
from stepwell.core.shapes import ShapeError
from stepwell.dialects import readings
from stepwell.dialects.types import dtype, element_type

TensorOf = TensorType[Attribute]

I1 = element_type("i1")

FLOAT: frozenset[Kind] = frozenset({"float"})
INTEGER: frozenset[Kind] = frozenset({"signed", "unsigned"})
BITS: frozenset[Kind] = frozenset({"signed", "unsigned", "bool"})
NUMBER: frozenset[Kind] = frozenset({"signed", "unsigned", "float"})
ANY: frozenset[Kind] = frozenset({"signed", "unsigned", "float", "bool"})

_WORDS = {
    FLOAT: "floating point",
    INTEGER: "integer",
    BITS: "integer or i1",
    NUMBER: "floating point or integer",
    ANY: "floating point, integer or i1",
}


class KeptWhole(OpTrait):
    """The op has a decomposition and a lowering of its own: `decompose` leaves it unchanged."""


class NdOp(IRDLOperation, ABC):
    """An op of `nd`. Results must have exactly the types that its `shape` rule infers."""

    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Compare the result types with the inferred ones; families add their own constraints."""
        for value in (*self.operands, *self.results):
            if isinstance(value.type, TensorType):
                element_dtype(value.type)
        infer = readings.shape.get(cast(Any, type(self)))
        if infer is None:
            return
        try:
            wanted = infer(self)
        except ShapeError as error:
            raise VerifyException(str(error)) from None
        for result, want in zip(self.results, wanted, strict=True):
            if result.type != want:
                raise VerifyException(f"result must be {want}, got {result.type}")


def tensor_of(value: SSAValue) -> TensorOf:
    """Return the type of an operand, which must be a ranked tensor of a supported dtype."""
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"expected a tensor, got {value.type}")
    element_dtype(value.type)
    return value.type


def element_dtype(type: TensorOf) -> DType:
    """Return the dtype of a tensor's elements; refuse unsupported types."""
    try:
        return dtype(type.element_type)
    except KeyError:
        raise VerifyException(f"{type.element_type} is no element type of nd") from None


def check_elements(type: TensorOf, kinds: frozenset[Kind]) -> None:
    """Refuse a tensor whose elements are not of one of ``kinds`` (FLOAT, INTEGER, ...)."""
    if element_dtype(type).kind not in kinds:
        raise VerifyException(f"elements must be {_WORDS[kinds]}, got {type}")


def like(type: TensorOf, element: Attribute) -> TensorOf:
    """Return the tensor type of the shape of ``type`` with another element type."""
    return TensorType(element, type.get_shape())
