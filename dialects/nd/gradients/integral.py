"""Ops with integers, truth values or sizes alone on one side: no derivative goes through them."""

from stepwell.dialects.nd import (
    bitwise,
    callback,
    checking,
    compare,
    control,
    creation,
    reduction,
    sorting,
)
from stepwell.dialects.readings import gradient

gradient.none(
    *bitwise.OPS,
    reduction.ReduceAndOp,
    reduction.ReduceOrOp,
    because="it computes with integers and truth values, which have no derivative",
)
gradient.none(
    compare.EqOp,
    compare.NeOp,
    compare.LtOp,
    compare.LeOp,
    compare.GtOp,
    compare.GeOp,
    compare.IsnanOp,
    compare.IsinfOp,
    compare.IsfiniteOp,
    because="its result is true or false, which has no derivative",
)
gradient.none(
    reduction.ArgmaxOp,
    reduction.ArgminOp,
    sorting.ArgsortOp,
    because="its result is a place, which has no derivative",
)
gradient.none(*creation.OPS, because="its result is a constant")
gradient.none(
    callback.CallbackOp,
    because="a Python function has no derivative here; give it one by sw.custom_vjp",
)
gradient.none(checking.CheckOp, control.YieldOp, control.ConditionOp, because="it has no results")
