"""What a launch computes: its kernel, run on its operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.kernel.check import CheckOp
from stepwell.dialects.kernel.concurrent import ConcurrentOp
from stepwell.dialects.kernel.lookup import LookupOp
from stepwell.dialects.kernel.ops import LaunchOp
from stepwell.dialects.kernel.prefetch import PrefetchOp
from stepwell.dialects.readings import Array, reference


@evaluate(LaunchOp)
def _launch(interpreter: Interpreter, op: LaunchOp, operands: Sequence[Value]) -> Sequence[Value]:
    return interpreter.call(op.callee.string_value(), operands)


@evaluate(ConcurrentOp)
def _concurrent(
    interpreter: Interpreter, op: ConcurrentOp, operands: Sequence[Value]
) -> Sequence[Value]:
    """One branch after the other: they have nothing to do with each other."""
    for branch in op.branches:
        interpreter.run(branch, ())
    return ()


@evaluate(PrefetchOp)
def _prefetch(interpreter: Interpreter, op: PrefetchOp, operands: Sequence[Value]) -> tuple[()]:
    return ()


@evaluate(CheckOp)
def _check(interpreter: Interpreter, op: CheckOp, operands: Sequence[Value]) -> tuple[()]:
    condition, *values = operands
    if not bool(condition):
        raise op.guard.fault([int(v) for v in values])
    return ()


@reference(LookupOp)
def _lookup(op: LookupOp, operands: Sequence[Array]) -> Array:
    table, indices = operands
    return table[np.asarray(indices).astype(np.int64) % len(table)]
