"""An op of the loops floor, written as C and OpenCL by a rule, and one of graphs that becomes it."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, VectorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from stepwell.extending import (
    FLOAT,
    Body,
    Unary,
    Writer,
    emit,
    in_numpy,
    reference,
    register,
    same_type,
)

NUMBER = base(Float32Type) | base(Float64Type)


@irdl_op_definition
class SaturateOp(IRDLOperation):
    """The nearest number in [0, 1], of a float or of each in a vector; 0 for a NaN."""

    name = "acme.saturate"
    T: ClassVar = VarConstraint("T", NUMBER | VectorType.constr(NUMBER))
    x = operand_def(T)
    y = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x)"


@emit(SaturateOp)
def _saturate(w: Writer, op: SaturateOp) -> None:
    kind, s = w.kind(op.y), w.spelling
    zero, one = (s.literal(kind.element, number) for number in (0.0, 1.0))
    if kind.lanes:
        zero, one = s.splat(kind, zero), s.splat(kind, one)
    w.define(op.y, s.function("fmin", kind, [s.function("fmax", kind, [w[op.x], zero]), one]))


@reference(SaturateOp)
def _saturated(op: SaturateOp, operands: Sequence[Any]) -> Any:
    (x,) = operands
    return np.fmin(np.fmax(x, x.dtype.type(0)), x.dtype.type(1))


@irdl_op_definition
class HardSigmoidOp(Unary):
    """``y = acme.saturate(x / 4 + 1/2)``."""

    name = "acme.hard_sigmoid"
    ELEMENTS: ClassVar = FLOAT


def _hard_sigmoid(b: Body, x: SSAValue) -> SSAValue:
    return b.emit(
        SaturateOp.create(
            operands=[b.add(b.mul(x, b.number(0.25)), b.number(0.5))], result_types=[x.type]
        )
    )


same_type(HardSigmoidOp)
in_numpy({HardSigmoidOp: lambda x: np.fmin(np.fmax(x / 4 + x.dtype.type(0.5), 0), 1)})
register({HardSigmoidOp: _hard_sigmoid})
