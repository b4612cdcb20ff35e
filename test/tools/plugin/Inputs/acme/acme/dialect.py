"""The acme dialect: one op, with what it means beside it."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition

from acme.saturate import HardSigmoidOp, SaturateOp
from stepwell.extending import (
    FLOAT,
    AbsOp,
    Composer,
    Factor,
    Unary,
    in_numpy,
    partials,
    same_type,
)


@irdl_op_definition
class SoftsignOp(Unary):
    """``y = x / (1 + |x|)``. An infinity gives NaN."""

    name = "acme.softsign"
    ELEMENTS: ClassVar = FLOAT


same_type(SoftsignOp)
in_numpy({SoftsignOp: lambda x: x / (np.abs(x) + x.dtype.type(1))})

ACME = Dialect("acme", [SoftsignOp, HardSigmoidOp, SaturateOp])


@partials(SoftsignOp)
def _derivative(c: Composer, op: SoftsignOp) -> Sequence[Factor]:
    def times(g: SSAValue) -> SSAValue:
        below = c.add(c.of(AbsOp(op.x)), c.full(op.x, 1))
        return c.div(g, c.mul(below, below))

    return [times]
