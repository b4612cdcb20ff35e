"""The step down: what one element of a result is, in scalar arithmetic."""

from xdsl.dialects import math
from xdsl.ir import SSAValue

from acme.dialect import SoftsignOp
from stepwell.extending import Body, register


def _softsign(b: Body, x: SSAValue) -> SSAValue:
    return b.div(x, b.add(b.emit(math.AbsFOp(x)), b.number(1)))


register({SoftsignOp: _softsign})
