"""Ops of upstream that xDSL lacks: arith.remf and math.erfc, with the syntax of MLIR 22."""

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


def _with(dialect: Dialect, op: type[Operation]) -> Dialect:
    """Return a dialect with one more op; the dialect itself if a later xDSL has the op."""
    if op.name in {known.name for known in dialect.operations}:
        return dialect
    operations, attributes = [*dialect.operations, op], [*dialect.attributes]
    return Dialect(dialect.name, operations, attributes, [*dialect._interfaces])  # pyright: ignore[reportPrivateUsage]


ARITH = _with(arith.Arith, RemFOp)
MATH = _with(math.Math, ErfcOp)
"""The dialects used by our tools; xDSL's own objects are unchanged."""
