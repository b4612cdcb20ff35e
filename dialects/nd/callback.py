"""nd.callback: a call of a Python function of the process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.core.host_functions import known
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import reference, shape
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.effects import EndsCall


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """Call the Python function ``name``, in program order; if it raises, the program's call ends.

    * (C1) The sizes of operands and results are known.
    """

    name = "nd.callback"
    values = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    function = prop_def(StringAttr, prop_name="name")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(EndsCall())
    assembly_format = "`(` $values `)` attr-dict `:` functional-type($values, $outputs)"

    def __init__(
        self, values: Sequence[SSAValue], results: Sequence[Attribute], function: str
    ) -> None:
        super().__init__(
            operands=[list(values)],
            result_types=[list(results)],
            properties={"name": StringAttr(function)},
        )

    def verify_(self) -> None:
        """Check C1."""
        if any(DYNAMIC in shape_of(v) for v in (*self.values, *self.outputs)):  # callback_c1
            raise VerifyException("arguments and results of a callback must have known sizes")


@evaluate(CallbackOp)
def _callback(
    interpreter: Interpreter, op: CallbackOp, operands: Sequence[Value]
) -> Sequence[Value]:
    if interpreter.effects is not None:  # record the effect instead of the call
        interpreter.effects.append((op, operands))
        return [np.zeros(shape_of(v), dtype(element(v)).numpy) for v in op.outputs]
    return known(op.function.data).results([np.array(v) for v in operands])


shape.none(CallbackOp, reason="the function decides")
reference.none(CallbackOp, reason="it calls Python: see its evaluate rule")

OPS = (CallbackOp,)
