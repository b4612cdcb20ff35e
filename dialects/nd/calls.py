"""nd.call: a call of a function of the module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import EffectInstance, MemoryEffect, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.nd.control import check_types
from stepwell.dialects.readings import reference, shape
from stepwell.dialects.upstream.effects import EndsCall


class _CalleeMatches(SymbolUserOpInterface):
    """Check C1 and C2 of nd.call, which need the module."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CallOp)
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp):  # call_c1
            raise VerifyException(f"no function {op.callee} in the module")
        inputs, outputs = callee.function_type.inputs.data, callee.function_type.outputs.data
        check_types(f"arguments of {op.callee} must be", op.operand_types, inputs)  # call_c2
        check_types(f"results of {op.callee} must be", op.result_types, outputs)  # call_c2


class _CalleeEffects(MemoryEffect):
    """A call may end the program's call if an op in the callee may."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Return the effects of an op that may end a call, if the callee has one."""
        waiting, seen = [op], set[str]()
        for call in waiting:
            assert isinstance(call, CallOp)
            if (name := call.callee.string_value()) in seen:
                continue
            seen.add(name)
            callee = SymbolTable.lookup_symbol(call, call.callee)
            for each in callee.walk() if callee is not None else ():
                if isinstance(each, CallOp):
                    waiting.append(each)
                elif each.has_trait(EndsCall):
                    return EndsCall.get_effects(each)
        return set()


@irdl_op_definition
class CallOp(IRDLOperation):
    """Call a function of the module. The op has the function's effects.

    * (C1) The callee is a function of the module.
    * (C2) Operands and results have the types of its arguments and results.
    """

    name = "nd.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    outputs = var_result_def()
    traits = traits_def(_CalleeMatches(), _CalleeEffects())
    assembly_format = (
        "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $outputs)"
    )

    def __init__(
        self, callee: str, arguments: Sequence[SSAValue], results: Sequence[Attribute]
    ) -> None:
        super().__init__(
            operands=[list(arguments)],
            result_types=[list(results)],
            properties={"callee": SymbolRefAttr(callee)},
        )


@evaluate(CallOp)
def _call(interpreter: Interpreter, op: CallOp, operands: Sequence[Value]) -> Sequence[Value]:
    return interpreter.call(op.callee.string_value(), operands)


shape.none(CallOp, reason="the callee says what the results are")
reference.none(CallOp, reason="it runs a function: see its evaluate rule")

OPS = (CallOp,)
