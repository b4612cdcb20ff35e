"""The elementwise ops of `nd`, each as a scalar body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from stepwell.dialects.nd import arithmetic
from stepwell.lowering.nd_to_linalg.body import Body
from stepwell.lowering.nd_to_linalg.generic import Scalars, elementwise
from stepwell.lowering.nd_to_linalg.table import Lowering, lower


def register(bodies: Mapping[Any, Scalars]) -> None:
    """Let each op be a generic over identity maps with its scalar body."""
    for op, body in bodies.items():
        lower(op)(_rule(body))


def _rule(body: Scalars) -> Any:
    def rule(lowering: Lowering, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return elementwise(lowering, op, operands, body)

    return rule


register(
    {
        arithmetic.AddOp: Body.add,
        arithmetic.SubOp: Body.sub,
        arithmetic.MulOp: Body.mul,
    }
)
