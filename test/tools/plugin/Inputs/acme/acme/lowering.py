"""The step down: what one element of a result is, in scalar arithmetic."""

from xdsl.dialects import math
from xdsl.ir import SSAValue

from acme.dialect import SoftsignOp
from stepwell.lowering.nd_to_linalg.body import Body
from stepwell.lowering.nd_to_linalg.elementwise import register


def _softsign(b: Body, x: SSAValue) -> SSAValue:
    return b.div(x, b.add(b.emit(math.AbsFOp(x)), b.number(1)))


register({SoftsignOp: _softsign})
