"""kernel.check: the lowered form of nd.check, on the host or in a kernel's loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerType, StringAttr, i64
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
from stepwell.dialects.types import place_of
from stepwell.dialects.upstream.effects import EndsCall


@irdl_op_definition
class CheckOp(IRDLOperation):
    """End the call with a Python exception if ``condition`` is false.

    The message is ``words``, with a number of ``values`` between any two of them.

    * (C1) kind is the name of an exception that checks can raise.
    * (C2) There is one text more than numbers, and there are at most two numbers.
    """

    name = "kernel.check"
    condition = operand_def(IntegerType(1))
    values = var_operand_def(I64)
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
        if any(v.type != i64 for v in self.values):
            raise VerifyException("numbers of a message are i64")
        if said := unfit_check(self.kind.data, len(self.words), len(self.values)):
            raise VerifyException(said)  # kernel_check_c1, kernel_check_c2

    @property
    def guard(self) -> Guard:
        """The guard with its message."""
        at = place_of(self)
        return Guard(tuple(w.data for w in self.words), str(at) if at else "", self.kind.data)
