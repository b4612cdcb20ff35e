"""Ops defined by decomposition: activations, softmax and related ops, the mean.

The decomposition is their meaning. f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any, ClassVar, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import Kind
from stepwell.core.shapes import composite as shapes
from stepwell.dialects.nd.arithmetic import AbsOp, NegOp
from stepwell.dialects.nd.base import FLOAT, NUMBER, check_elements, tensor_of
from stepwell.dialects.nd.compare import IsfiniteOp, MinOp, SelectOp
from stepwell.dialects.nd.composing import Composer, others
from stepwell.dialects.nd.elementwise import Unary, same_type
from stepwell.dialects.nd.syntax import (
    AXES,
    SpelledOp,
    axes,
    axes_attr,
    element,
    int_attr,
    shape_of,
)
from stepwell.dialects.nd.transcendental import ErfOp, ExpOp, Log1pOp, LogOp
from stepwell.dialects.readings import decomposition, shape

Formula: TypeAlias = Callable[[Composer, Any, SSAValue], SSAValue]


def meaning(formula: Formula) -> Callable[[Builder, Any], Sequence[SSAValue]]:
    """Return the decomposition that computes ``formula`` of x in a wide type."""

    def decompose(builder: Builder, op: Any) -> Sequence[SSAValue]:
        compose = Composer(builder)
        y = formula(compose, op, compose.wide(op.x))
        return (compose.cast(y, element(op.x)),)

    return decompose


class Activation(Unary, ABC):
    """A unary function used in networks; NaN stays NaN."""

    ELEMENTS: ClassVar[frozenset[Kind]] = FLOAT


@irdl_op_definition
class ReluOp(Activation):
    """``y = max(x, 0)``."""

    name = "nd.relu"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class Relu6Op(Activation):
    """``y = min(max(x, 0), 6)``."""

    name = "nd.relu6"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class SigmoidOp(Activation):
    """``y = 1 / (1 + e^-x)``."""

    name = "nd.sigmoid"


@irdl_op_definition
class SiluOp(Activation):
    """``y = x / (1 + e^-x)``."""

    name = "nd.silu"


@irdl_op_definition
class SoftplusOp(Activation):
    """``y = ln(1 + e^x)``, without overflow."""

    name = "nd.softplus"


same_type(ReluOp, Relu6Op, SigmoidOp, SiluOp, SoftplusOp)


@decomposition(ReluOp)
def _relu(builder: Builder, op: ReluOp) -> Sequence[SSAValue]:
    compose = Composer(builder)
    return (compose.max(op.x, compose.full(op.x, 0)),)


@decomposition(Relu6Op)
def _relu6(builder: Builder, op: Relu6Op) -> Sequence[SSAValue]:
    compose = Composer(builder)
    positive = compose.max(op.x, compose.full(op.x, 0))
    return (compose.of(MinOp(positive, compose.full(op.x, 6))),)


def _one_plus_exp(c: Composer, x: SSAValue) -> SSAValue:
    return c.add(c.of(ExpOp(x)), c.full(x, 1))


@decomposition(SigmoidOp)
@meaning
def _sigmoid(c: Composer, op: SigmoidOp, x: SSAValue) -> SSAValue:
    return c.div(c.full(x, 1), _one_plus_exp(c, c.of(NegOp(x))))


@decomposition(SiluOp)
@meaning
def _silu(c: Composer, op: SiluOp, x: SSAValue) -> SSAValue:
    return c.div(x, _one_plus_exp(c, c.of(NegOp(x))))


@decomposition(SoftplusOp)
@meaning
def _softplus(c: Composer, op: SoftplusOp, x: SSAValue) -> SSAValue:
    """max(x, 0) + log1p(e^-|x|)."""
    rest = c.of(Log1pOp(c.of(ExpOp(c.of(NegOp(c.of(AbsOp(x))))))))
    return c.add(c.max(x, c.full(x, 0)), rest)


class FloatOp(SpelledOp, ABC):
    """A composite on floats with one result ``y``."""

    x = operand_def(TensorType)
    y = result_def(TensorType)

    def verify_(self) -> None:
        """Refuse integers; the shape rule checks the rest."""
        check_elements(tensor_of(self.x), FLOAT)
        super().verify_()


@irdl_op_definition
class GeluOp(FloatOp):
    """``y = x Φ(x)``, where Φ is the normal distribution; ``approximate`` selects the formula.

    "none": ``x/2 (1 + erf(x/√2))``; "tanh": ``x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))``.

    * (C1) ``approximate`` is "none" or "tanh".
    """

    name = "nd.gelu"
    approximate = prop_def(StringAttr, default_value=StringAttr("none"))

    def __init__(self, x: SSAValue, approximate: str = "none") -> None:
        properties = {"approximate": StringAttr(approximate)}
        super().__init__(operands=[x], result_types=[x.type], properties=properties)

    def verify_(self) -> None:
        """Check C1."""
        if (how := self.approximate.data) not in ("none", "tanh"):  # gelu_c1
            raise VerifyException(f'approximate must be "none" or "tanh", got "{how}"')
        super().verify_()


@decomposition(GeluOp)
@meaning
def _gelu(c: Composer, op: GeluOp, x: SSAValue) -> SSAValue:
    if op.approximate.data == "tanh":
        cube = c.mul(c.mul(x, x), x)
        inner = c.add(x, c.mul(cube, c.full(x, 0.044715)))
        # (1 + tanh(u)) / 2 is 1 / (1 + e^-2u), which is cheaper and accurate for small results
        return c.div(x, _one_plus_exp(c, c.mul(inner, c.full(x, -sqrt(8 / pi)))))
    curve = c.of(ErfOp(c.mul(x, c.full(x, sqrt(0.5)))))
    return c.mul(c.mul(x, c.full(x, 0.5)), c.add(curve, c.full(x, 1)))


class AlongAxisOp(FloatOp, ABC):
    """A composite along one axis that preserves the shape.

    * (C1) ``axis`` is one of the axes of x.
    """

    axis = prop_def(IntegerAttr)

    def __init__(self, x: SSAValue, axis: int) -> None:
        super().__init__(operands=[x], result_types=[x.type], properties={"axis": int_attr(axis)})


@irdl_op_definition
class SoftmaxOp(AlongAxisOp):
    """``y = e^(x - m) / sum(e^(x - m))`` along ``axis``, where m is the maximum along it."""

    name = "nd.softmax"


@irdl_op_definition
class LogSoftmaxOp(AlongAxisOp):
    """``y = x - m - ln(sum(e^(x - m)))`` along ``axis``, where m is the maximum along it."""

    name = "nd.log_softmax"


shape(GeluOp)(lambda op: (op.x.type,))


@shape(SoftmaxOp, LogSoftmaxOp)
def _along_axis_shape(op: AlongAxisOp) -> Sequence[Attribute]:
    shapes.axis_in(shape_of(op.x), op.axis.value.data)  # along_axis_c1
    return (op.x.type,)


def shifted(c: Composer, x: SSAValue, axis: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return x - m, e^(x - m) and the sum of the latter along ``axis``."""
    kept = others(x, [axis])
    shifted = c.sub(x, c.along(c.max_over(x, [axis]), x, kept))
    exp = c.of(ExpOp(shifted))
    return shifted, exp, c.sum_over(exp, [axis])


@decomposition(SoftmaxOp)
@meaning
def _softmax(c: Composer, op: SoftmaxOp, x: SSAValue) -> SSAValue:
    _, exp, total = shifted(c, x, op.axis.value.data)
    part = c.div(c.full(total, 1), total)  # one division per row instead of one per element
    return c.mul(exp, c.along(part, x, others(x, [op.axis.value.data])))


@decomposition(LogSoftmaxOp)
@meaning
def _log_softmax(c: Composer, op: LogSoftmaxOp, x: SSAValue) -> SSAValue:
    moved, _, total = shifted(c, x, op.axis.value.data)
    log = c.of(LogOp(total))
    return c.sub(moved, c.along(log, x, others(x, [op.axis.value.data])))


class OverAxesOp(FloatOp, ABC):
    """A composite that combines the elements along ``axes``, which are removed.

    * (C1) ``axes`` are distinct axes of x.
    """

    axes = prop_def(AXES)

    def __init__(self, x: SSAValue, axes: Sequence[int]) -> None:
        inferred = TensorType(element(x), shapes.without(shape_of(x), axes))
        super().__init__(
            operands=[x], result_types=[inferred], properties={"axes": axes_attr(sorted(axes))}
        )


@irdl_op_definition
class MeanOp(OverAxesOp):
    """``y`` = the sum of x over ``axes``, divided by the number of summands; NaN if empty."""

    name = "nd.mean"


@irdl_op_definition
class LogsumexpOp(OverAxesOp):
    """``y = ln(sum(e^x))`` over ``axes``, without overflow; -inf if empty."""

    name = "nd.logsumexp"


@shape(MeanOp, LogsumexpOp)
def _over_axes_shape(op: OverAxesOp) -> Sequence[Attribute]:
    # over_axes_c1
    return (TensorType(element(op.x), shapes.without(shape_of(op.x), axes(op.axes))),)


@decomposition(MeanOp)
@meaning
def _mean(c: Composer, op: MeanOp, x: SSAValue) -> SSAValue:
    return c.mean(x, axes(op.axes))


@decomposition(LogsumexpOp)
@meaning
def _logsumexp(c: Composer, op: LogsumexpOp, x: SSAValue) -> SSAValue:
    """m + ln(sum(e^(x - m))), where m is the maximum, or 0 if that is infinite."""
    gone = axes(op.axes)
    top = c.max_over(x, gone)
    m = c.of(SelectOp(c.of(IsfiniteOp(top)), top, c.full(top, 0)))
    exp = c.of(ExpOp(c.sub(x, c.along(m, x, others(x, gone)))))
    return c.add(c.of(LogOp(c.sum_over(exp, gone))), m)


OPS = (
    ReluOp,
    Relu6Op,
    SigmoidOp,
    SiluOp,
    SoftplusOp,
    GeluOp,
    SoftmaxOp,
    LogSoftmaxOp,
    MeanOp,
    LogsumexpOp,
)
