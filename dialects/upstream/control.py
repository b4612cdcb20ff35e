"""Evaluation of scf and func: control flow, run directly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from xdsl.dialects import func, scf
from xdsl.traits import SymbolTable

from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.upstream.faults import check_loop


@evaluate(func.CallOp)
def _call(
    interpreter: Interpreter, op: func.CallOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    callee = SymbolTable.lookup_symbol(interpreter.module, op.callee)
    declared = isinstance(callee, func.FuncOp) and not callee.body.blocks
    if declared and interpreter.effects is not None and not op.results:
        interpreter.effects.append((op, tuple(map(np.copy, operands))))
        return ()
    return interpreter.call(op.callee.string_value(), operands)


@evaluate(scf.IfOp)
def _if(interpreter: Interpreter, op: scf.IfOp, operands: Sequence[Value]) -> tuple[Value, ...]:
    region = op.true_region if operands[0] else op.false_region
    return interpreter.run(region, ()) if region.blocks else ()


@evaluate(scf.ForOp)
def _for(interpreter: Interpreter, op: scf.ForOp, operands: Sequence[Value]) -> tuple[Value, ...]:
    lower, upper, step, *carried = operands
    values = tuple(carried)
    check_loop(op, int(lower), int(upper), int(step))
    block = op.body.block
    for i in range(int(lower), int(upper), int(step)):
        values = interpreter.run_block(block, (np.int64(i), *values))
    return values


@evaluate(scf.WhileOp)
def _while(
    interpreter: Interpreter, op: scf.WhileOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    values = tuple(operands)
    while True:
        go_on, *values = interpreter.run(op.before_region, values)
        if not go_on:
            return tuple(values)
        values = interpreter.run(op.after_region, values)


@evaluate(scf.ParallelOp)
def _parallel(
    interpreter: Interpreter, op: scf.ParallelOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """Run the iterations in order; a reduction folds the operands of scf.reduce."""
    rank = len(op.lowerBound)
    lower, upper, step = (operands[i * rank : (i + 1) * rank] for i in range(3))
    values = list(operands[3 * rank :])
    for bounds in zip(lower, upper, step, strict=True):
        check_loop(op, *map(int, bounds))
    last = op.body.block.last_op
    for point in product(
        *(range(int(a), int(b), int(s)) for a, b, s in zip(lower, upper, step, strict=True))
    ):
        given = interpreter.run(op.body, [np.int64(i) for i in point])
        if isinstance(last, scf.ReduceOp):
            for k, (region, value) in enumerate(zip(last.reductions, given, strict=True)):
                (values[k],) = interpreter.run(region, (values[k], value))
    return tuple(values)
