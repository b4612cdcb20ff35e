"""Evaluation of kernel ops: a launch runs its kernel on its operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import ShapedType, TensorType

from stepwell.core.host_functions import known
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.kernel.callback import CallbackOp
from stepwell.dialects.kernel.check import CheckOp
from stepwell.dialects.kernel.concurrent import ConcurrentOp
from stepwell.dialects.kernel.grain import GrainOp
from stepwell.dialects.kernel.lookup import LookupOp
from stepwell.dialects.kernel.ops import LaunchOp
from stepwell.dialects.kernel.prefetch import PrefetchOp
from stepwell.dialects.kernel.stack import StackOp
from stepwell.dialects.readings import Array, reference
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.scalar import element_of


@evaluate(LaunchOp)
def _launch(interpreter: Interpreter, op: LaunchOp, operands: Sequence[Value]) -> Sequence[Value]:
    return interpreter.call(op.callee.string_value(), operands)


@evaluate(ConcurrentOp)
def _concurrent(
    interpreter: Interpreter, op: ConcurrentOp, operands: Sequence[Value]
) -> Sequence[Value]:
    """Run the branches one after the other: they are independent."""
    for branch in op.branches:
        interpreter.run(branch, ())
    return ()


@evaluate(PrefetchOp, GrainOp)
def _hint(
    interpreter: Interpreter, op: PrefetchOp | GrainOp, operands: Sequence[Value]
) -> tuple[()]:
    return ()


@evaluate(CheckOp)
def _check(interpreter: Interpreter, op: CheckOp, operands: Sequence[Value]) -> tuple[()]:
    condition, *values = operands
    if not bool(condition):
        raise op.guard.fault([int(v) for v in values])
    return ()


@evaluate(CallbackOp)
def _callback(
    interpreter: Interpreter, op: CallbackOp, operands: Sequence[Value]
) -> Sequence[Value]:
    given, into = operands[: len(op.inputs)], operands[len(op.inputs) :]
    outputs = [v.type for v in (*op.outputs, *op.results_) if isinstance(v.type, ShapedType)]
    if interpreter.effects is not None:  # record the effect instead of the call
        interpreter.effects.append((op, given))
        found: Sequence[Value] = [
            np.zeros(t.get_shape(), dtype(element_of(t)).numpy) for t in outputs
        ]
    else:
        found = known(op.function.data).results([np.array(v) for v in given])
    for target, value in zip(into, found, strict=False):
        target[...] = value
    return () if into else found


@reference(LookupOp)
def _lookup(op: LookupOp, operands: Sequence[Array]) -> Array:
    table, indices = operands
    return table[np.asarray(indices).astype(np.int64) % len(table)]


@reference(StackOp)
def _stack(op: StackOp, operands: Sequence[Array]) -> Array:
    assert isinstance(op.result.type, TensorType)
    parts = operands[: len(op.parts)]
    length = int(operands[-1]) if op.length else op.result.type.get_shape()[1]
    y = np.zeros((len(parts), length), parts[0].dtype)
    for row, part in zip(y, parts, strict=True):
        row[: part.size] = part.reshape(-1)
    return y
