"""Ops with only integers, booleans or sizes as operands or results: their derivative is none."""

from stepwell.dialects.nd.bitwise import OPS as BITWISE
from stepwell.dialects.nd.callback import CallbackOp
from stepwell.dialects.nd.checking import CheckOp
from stepwell.dialects.nd.compare import (
    EqOp,
    GeOp,
    GtOp,
    IsfiniteOp,
    IsinfOp,
    IsnanOp,
    LeOp,
    LtOp,
    NeOp,
)
from stepwell.dialects.nd.control import ConditionOp, YieldOp
from stepwell.dialects.nd.creation import OPS as CREATION
from stepwell.dialects.nd.reduction import ArgmaxOp, ArgminOp, ReduceAndOp, ReduceOrOp
from stepwell.dialects.nd.sorting import ArgsortOp
from stepwell.dialects.readings import gradient

gradient.none(
    *BITWISE,
    ReduceAndOp,
    ReduceOrOp,
    reason="it computes with integers and truth values, which have no derivative",
)
gradient.none(
    *(EqOp, NeOp, LtOp, LeOp, GtOp, GeOp, IsnanOp, IsinfOp, IsfiniteOp),
    reason="its result is true or false, which has no derivative",
)
gradient.none(
    *(ArgmaxOp, ArgminOp, ArgsortOp),
    reason="its result is a place, which has no derivative",
)
gradient.none(*CREATION, reason="its result is a constant")
gradient.none(
    CallbackOp,
    reason="a Python function has no derivative here; give it one by sw.custom_vjp",
)
gradient.none(CheckOp, YieldOp, ConditionOp, reason="it has no results")
