"""Collectives, ops within nd.vmap that combine all examples of a batch: sums, gathers, scatters.

They refer to the batch by the ``axis_name`` of an enclosing nd.vmap, and are rewritten with it.
Each is linear; the derivative of the sum of all examples' results transposes all_sum to itself, and
the other two to each other.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.core.shapes import ShapeError
from stepwell.dialects.nd.base import NUMBER, check_elements, tensor_of
from stepwell.dialects.nd.syntax import SpelledOp, element, shape_of
from stepwell.dialects.nd.transformations import VmapOp
from stepwell.dialects.readings import reference, shape


class CollectiveOp(SpelledOp, ABC):
    """An op whose result for an example depends on all examples of a batch.

    * (C1) ``over`` is the ``axis_name`` of an nd.vmap around it.
    """

    x = operand_def(TensorType)
    y = result_def(TensorType)
    over = prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, x: SSAValue, over: str, result: Attribute) -> None:
        super().__init__(operands=[x], result_types=[result], properties={"over": StringAttr(over)})

    def verify_(self) -> None:
        """Check C1; the shape rule checks sizes."""
        super().verify_()
        around = self.parent_op()
        while around is not None:
            if isinstance(around, VmapOp) and around.axis_name == self.over:
                return
            around = around.parent_op()
        raise VerifyException(  # collective_c1
            f"no nd.vmap around it has the axis_name {self.over}"
        )


@irdl_op_definition
class AllSumOp(CollectiveOp):
    """``y`` = the sum of ``x`` over all examples, the same for all.

    * (C2) Elements are numbers; f16 and bf16 are accumulated in f32.
    """

    name = "nd.all_sum"

    def verify_(self) -> None:
        """Check C1 and C2."""
        check_elements(tensor_of(self.x), NUMBER)  # all_sum_c2
        super().verify_()


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """``y[k] = x`` of example ``k``: the values of all examples, the same for all.

    * (C2) ``y`` has one more leading axis, of the size of the batch.
    """

    name = "nd.all_gather"


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """``y`` of example ``k`` = the sum over all examples of ``x[k]``.

    * (C2) The first axis of ``x`` has the size of the batch; ``y`` has the others.
    * (C3) Elements are numbers; f16 and bf16 are accumulated in f32.
    """

    name = "nd.reduce_scatter"

    def verify_(self) -> None:
        """Check C1 to C3."""
        check_elements(tensor_of(self.x), NUMBER)  # reduce_scatter_c3
        super().verify_()


@shape(AllSumOp)
def _all_sum_shape(op: AllSumOp) -> Sequence[Attribute]:
    return (op.x.type,)


@shape(AllGatherOp)
def _all_gather_shape(op: AllGatherOp) -> Sequence[Attribute]:
    size = shape_of(op.y)[:1]
    if not size:
        raise ShapeError("the result must have an axis for the examples")
    return (TensorType(element(op.x), (*size, *shape_of(op.x))),)


@shape(ReduceScatterOp)
def _reduce_scatter_shape(op: ReduceScatterOp) -> Sequence[Attribute]:
    if not shape_of(op.x):
        raise ShapeError("the operand must have an axis for the examples")
    return (TensorType(element(op.x), shape_of(op.x)[1:]),)


OPS: tuple[type[CollectiveOp], ...] = (AllSumOp, AllGatherOp, ReduceScatterOp)
reference.none(*OPS, reason="it is about a batch, and is written out with the nd.vmap around it")
