"""Derivatives of nd.call: calls of derivative functions, each written once per module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import SSAValue
from xdsl.traits import SymbolTable

from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.nd.gradients.forward import Forward
from stepwell.dialects.nd.gradients.functions import Kind, write_derivative
from stepwell.dialects.nd.gradients.reverse import Reverse, is_float
from stepwell.dialects.nd.transformations import JvpOp, VjpOp
from stepwell.dialects.readings import gradient, tangent


@gradient(CallOp)
def _backward(r: Reverse, op: CallOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Call the derivative of the callee, which runs the callee again."""
    wrt = [k for k, v in enumerate(op.arguments) if r.wants(v)]
    of = [k for k, g in enumerate(cotangents) if g is not None]
    given = [g for g in cotangents if g is not None]
    name = _derivative(op, VjpOp, wrt, of)
    types = [op.arguments[k].type for k in wrt]
    call = r.builder.insert(CallOp(name, [*op.arguments, *given], types))
    for k, result in zip(wrt, call.results, strict=True):
        r.accumulate(op.arguments[k], result)


@tangent(CallOp)
def _forward(
    f: Forward, op: CallOp, tangents: Sequence[SSAValue | None]
) -> Sequence[SSAValue | None]:
    """Call the derivative of the callee with the tangents."""
    wrt = [k for k, t in enumerate(tangents) if t is not None]
    of = _floats(op)
    name = _derivative(op, JvpOp, wrt, of)
    types = [op.outputs[k].type for k in of]
    call = f.builder.insert(CallOp(name, [*op.arguments, *(t for t in tangents if t)], types))
    found = dict(zip(of, call.results, strict=True))
    return [found.get(k) for k in range(len(op.outputs))]


def _floats(op: CallOp) -> list[int]:
    return [k for k, v in enumerate(op.outputs) if is_float(v)]


def _derivative(op: CallOp, kind: Kind, wrt: Sequence[int], of: Sequence[int]) -> str:
    """Return the name of the function that computes only the derivative; write it if missing."""
    callee = SymbolTable.lookup_symbol(op, op.callee)
    assert isinstance(callee, func.FuncOp)
    word = "vjp" if kind is VjpOp else "jvp"
    name = f"{callee.sym_name.data}_{word}_{'_'.join(map(str, wrt))}_of_{'_'.join(map(str, of))}"
    if SymbolTable.lookup_symbol(callee, name) is None:
        write_derivative(callee, name, kind, wrt, of, whole=False)
    return name
