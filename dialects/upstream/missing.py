"""Ops that upstream has and xDSL does not: arith.remf and math.erfc, as MLIR 22 spells them."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Dialect, Operation
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure, SameOperandsAndResultType


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of a division truncated to an integer, exact: C's ``fmod``."""

    name = "arith.remf"
    traits = traits_def(Pure(), SameOperandsAndResultType())


@irdl_op_definition
class ErfcOp(math.FloatingPointLikeUnaryMathOperation):
    """The complementary error function, ``1 - erf(x)``: C's ``erfc``."""

    name = "math.erfc"
    traits = traits_def(Pure(), SameOperandsAndResultType())


def _add(dialect: Dialect, op: type[Operation]) -> None:
    """Give a dialect one more op; nothing where a later xDSL has it."""
    if op.name not in {known.name for known in dialect.operations}:
        dialect._operations.append(op)  # pyright: ignore[reportPrivateUsage]


_add(arith.Arith, RemFOp)
_add(math.Math, ErfcOp)
