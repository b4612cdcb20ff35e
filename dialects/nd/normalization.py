"""Composites that normalize values to mean 0 and variance 1, then scale and shift them.

f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.shapes import Shape
from stepwell.core.shapes import composite as shapes
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.composite import FloatOp, meaning
from stepwell.dialects.nd.syntax import element, int_attr, shape_of
from stepwell.dialects.nd.transcendental import RsqrtOp
from stepwell.dialects.readings import decomposition, shape


class NormOp(FloatOp, ABC):
    """A normalization of ``x``; ``eps`` is added to the variance.

    * (C1) The parameters have the element type of x and the sizes of their axes.
    """

    axis = prop_def(IntegerAttr)
    eps = prop_def(FloatAttr)

    def belongs(self) -> tuple[int, ...]:
        """Return the axes of x that the parameters have."""
        raise TypeError(self.name)

    def at_most(self) -> int:
        """Return the maximum number of parameters."""
        return len(self.operands) - 1

    def check(self) -> None:
        """Check C1."""
        shapes.axis_in(shape_of(self.x), self.axis.value.data)
        parameters = self.operands[1:]
        if len(parameters) > self.at_most():  # norm_c1
            raise VerifyException(
                f"expected at most {self.at_most()} parameters, got {len(parameters)}"
            )
        want: Shape = tuple(shape_of(self.x)[a] for a in self.belongs())
        for each in parameters:
            if element(each) != element(self.x):  # norm_c1
                raise VerifyException(
                    f"parameters must have elements {element(self.x)}, got {element(each)}"
                )
            shapes.parameters("parameters", shape_of(each), want)  # norm_c1


class OverLastAxesOp(NormOp, ABC):
    """A normalization over ``axis`` and all later axes."""

    x = operand_def(TensorType)  # repeated so that it is the first operand
    parameters = var_operand_def(TensorType)

    def __init__(
        self,
        x: SSAValue,
        parameters: Sequence[SSAValue] = (),
        *,
        axis: int,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(
            operands=[x, list(parameters)],
            result_types=[x.type],
            properties={"axis": int_attr(axis), "eps": FloatAttr(eps, f64)},
        )

    def belongs(self) -> tuple[int, ...]:
        """Return the axes that are normalized."""
        return tuple(range(self.axis.value.data, len(shape_of(self.x))))


@irdl_op_definition
class LayerNormOp(OverLastAxesOp):
    """``y = (x - mean) / √(variance + eps) * scale + bias`` over ``axis`` and all later axes.

    The parameters are scale, then bias; both are optional.

    * (C1) The parameters have the element type of x and the sizes of the axes from ``axis`` on.
    """

    name = "nd.layer_norm"

    def at_most(self) -> int:
        """Return 2: scale and bias."""
        return 2


@irdl_op_definition
class RmsNormOp(OverLastAxesOp):
    """``y = x / √(mean(x²) + eps) * scale`` over ``axis`` and all later axes.

    The parameter is scale; it is optional.

    * (C1) The parameter has the element type of x and the sizes of the axes from ``axis`` on.
    """

    name = "nd.rms_norm"

    def at_most(self) -> int:
        """Return 1: scale only."""
        return 1


@irdl_op_definition
class BatchNormOp(NormOp):
    """``y = (x - mean) * scale / √(variance + eps) + bias``, all four along ``axis``.

    This is the inference form: mean and variance are operands.

    * (C1) The parameters have the element type of x and the size of ``axis``.
    """

    name = "nd.batch_norm"
    x = operand_def(TensorType)  # repeated so that it is the first operand
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)

    def __init__(
        self,
        x: SSAValue,
        scale: SSAValue,
        bias: SSAValue,
        mean: SSAValue,
        variance: SSAValue,
        *,
        axis: int = 1,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(
            operands=[x, scale, bias, mean, variance],
            result_types=[x.type],
            properties={"axis": int_attr(axis), "eps": FloatAttr(eps, f64)},
        )

    def belongs(self) -> tuple[int, ...]:
        """Return the axis."""
        return (self.axis.value.data,)


@shape(LayerNormOp, RmsNormOp, BatchNormOp)
def _norm_shape(op: NormOp) -> Sequence[Attribute]:
    op.check()
    return (op.x.type,)


def _over_root(c: Composer, x: SSAValue, variance: SSAValue, op: NormOp) -> SSAValue:
    """Return x / √(variance + eps), with the variance indexed by the leading axes of x."""
    root = c.of(RsqrtOp(c.add(variance, c.full(variance, op.eps.value.data))))
    return c.mul(x, c.along(root, x, range(op.axis.value.data)))


def _scaled(c: Composer, op: OverLastAxesOp, y: SSAValue) -> SSAValue:
    """Return y * scale + bias, without missing parameters."""
    for combine, parameter in zip((c.mul, c.add), op.parameters, strict=False):
        y = combine(y, c.along(c.wide(parameter), y, op.belongs()))
    return y


@decomposition(LayerNormOp)
@meaning
def _layer_norm(c: Composer, op: LayerNormOp, x: SSAValue) -> SSAValue:
    gone = op.belongs()
    centred = c.sub(x, c.along(c.mean(x, gone), x, range(gone[0])))
    variance = c.mean(c.mul(centred, centred), gone)
    return _scaled(c, op, _over_root(c, centred, variance, op))


@decomposition(RmsNormOp)
@meaning
def _rms_norm(c: Composer, op: RmsNormOp, x: SSAValue) -> SSAValue:
    return _scaled(c, op, _over_root(c, x, c.mean(c.mul(x, x), op.belongs()), op))


@decomposition(BatchNormOp)
@meaning
def _batch_norm(c: Composer, op: BatchNormOp, x: SSAValue) -> SSAValue:
    """(x - mean) * factor + bias, with the factor computed once per channel."""
    scale, bias, mean, variance = (c.wide(v) for v in (op.scale, op.bias, op.mean, op.variance))
    root = c.of(RsqrtOp(c.add(variance, c.full(variance, op.eps.value.data))))
    centred = c.sub(x, c.along(mean, x, op.belongs()))
    y = c.mul(centred, c.along(c.mul(scale, root), x, op.belongs()))
    return c.add(y, c.along(bias, x, op.belongs()))


OPS = (LayerNormOp, RmsNormOp, BatchNormOp)
