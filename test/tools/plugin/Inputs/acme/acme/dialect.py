"""The acme dialect: one op, with what it means beside it."""

from typing import ClassVar

import numpy as np
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition

from acme.saturate import HardSigmoidOp, SaturateOp
from stepwell.dialects.nd.base import FLOAT
from stepwell.dialects.nd.elementwise import Unary, in_numpy, same_type


@irdl_op_definition
class SoftsignOp(Unary):
    """``y = x / (1 + |x|)``. An infinity gives NaN."""

    name = "acme.softsign"
    ELEMENTS: ClassVar = FLOAT


same_type(SoftsignOp)
in_numpy({SoftsignOp: lambda x: x / (np.abs(x) + x.dtype.type(1))})

ACME = Dialect("acme", [SoftsignOp, HardSigmoidOp, SaturateOp])
