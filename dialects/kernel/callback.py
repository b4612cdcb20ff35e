"""kernel.callback: the lowered form of nd.callback, on the host."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import EffectInstance, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.upstream.effects import EndsCall


class CallbackEffects(EndsCall):
    """The op reads its buffers, writes its destinations, and may end the call."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Return one effect for each buffer, and one for ending the call."""
        assert isinstance(op, CallbackOp)
        reads = [v for v in op.inputs if isinstance(v.type, MemRefType)]
        return {
            EffectInstance(MemoryEffectKind.WRITE),
            *(EffectInstance(MemoryEffectKind.READ, v) for v in reads),
            *(EffectInstance(MemoryEffectKind.WRITE, v) for v in op.outputs),
        }


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """Call the Python function ``name``; if it raises, the program's call ends.

    * (C1) On tensors there are results and no outs, on buffers outs and no results.
    """

    name = "kernel.callback"
    inputs = var_operand_def(TensorType.constr() | MemRefType.constr())
    outputs = var_operand_def(MemRefType)
    results_ = var_result_def(TensorType)
    function = prop_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(CallbackEffects())
    assembly_format = (
        "$function (`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "(`outs` `(` $outputs^ `:` type($outputs) `)`)? attr-dict (`->` type($results_)^)?"
    )

    def __init__(
        self,
        function: str,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue] = (),
        results: Sequence[Attribute] = (),
    ) -> None:
        super().__init__(
            operands=[list(inputs), list(outputs)],
            result_types=[list(results)],
            properties={"function": StringAttr(function)},
        )

    def verify_(self) -> None:
        """Check C1."""
        buffers = any(isinstance(v.type, MemRefType) for v in self.operands)
        tensors = any(isinstance(v.type, TensorType) for v in (*self.operands, *self.results))
        if buffers and tensors:
            raise VerifyException("it is on tensors, or on buffers")  # kernel_callback_c1
