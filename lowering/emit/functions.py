"""func and kernel ops in a function's body: calls, launches and returns."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func

from stepwell.dialects import kernel
from stepwell.lowering.emit.writer import Writer, emit


@emit(func.CallOp, kernel.LaunchOp)
def _call(w: Writer, op: Any) -> None:
    w.call(op, op.callee.string_value(), op.operands)


@emit(func.ReturnOp, kernel.ReturnOp)
def _return(w: Writer, op: Any) -> None:
    w.leave(op)
