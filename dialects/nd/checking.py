"""nd.check: a condition checked at run time, and the Python exception raised if it fails."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, StringAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.core.guards import Guard, unfit_check
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.nd.control import CONDITION
from stepwell.dialects.readings import reference, shape
from stepwell.dialects.types import place_of
from stepwell.dialects.upstream.effects import EndsCall

NUMBER = TensorType(i64, [])
"""The type of a number in a message."""


@irdl_op_definition
class CheckOp(IRDLOperation):
    """End the call with a Python exception if ``condition`` is false.

    The message is ``words``, with a number of ``values`` between any two of them. Checks run in
    program order, and only if their branch or loop runs; after one that failed no further effect is
    visible.

    * (C1) kind is the name of an exception that checks can raise.
    * (C2) There is one text more than numbers, and there are at most two numbers.
    """

    name = "nd.check"
    condition = operand_def(CONDITION)
    values = var_operand_def(TensorType[I64].constr())
    kind = prop_def(StringAttr)
    words = prop_def(ArrayAttr[StringAttr])
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(EndsCall())
    assembly_format = "$condition (`,` $values^ `:` type($values))? attr-dict"

    def __init__(
        self, condition: SSAValue, values: Sequence[SSAValue], kind: str, words: Sequence[str]
    ) -> None:
        super().__init__(
            operands=[condition, list(values)],
            properties={"kind": StringAttr(kind), "words": ArrayAttr(map(StringAttr, words))},
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        if any(v.type != NUMBER for v in self.values):
            raise VerifyException("numbers of a message are tensor<i64>")
        if said := unfit_check(self.kind.data, len(self.words), len(self.values)):
            raise VerifyException(said)  # check_c1, check_c2

    @property
    def guard(self) -> Guard:
        """The guard with its message."""
        at = place_of(self)
        return Guard(tuple(w.data for w in self.words), str(at) if at else "", self.kind.data)


@evaluate(CheckOp)
def _check(interpreter: Interpreter, op: CheckOp, operands: Sequence[Value]) -> tuple[()]:
    condition, *values = operands
    if not bool(condition):
        raise op.guard.fault([int(v) for v in values])
    return ()


shape.none(CheckOp, reason="it has no results")
reference.none(CheckOp, reason="it computes nothing")

OPS = (CheckOp,)
