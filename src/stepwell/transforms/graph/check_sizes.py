"""Record the constraints on dynamic sizes before the ops that require them are rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.checks import read_checks, write_checks
from stepwell.dialects.sizing import sizing_of
from stepwell.transforms.graph.pinning import pin
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class CheckSizes(Pass):
    """Record in each public function the constraints on the `?` of its arguments.

    Before:  func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) ... { nd.add %x, %y ... }
    After:   func.func @main(...) attributes {nd.checks = [
               {holds = ["==", "d0", "d1"], words = [...], values = [...], at = "a.mlir:2:3"}]}
    Afterwards: a call whose sizes meet all checks satisfies the types of all ops; the sizes of
    values that branches and loops yield are proved (see `pinning`).
    """

    name = "check-sizes"
    one_block = True
    expects_work: ClassVar[bool] = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every public function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and is_entry(function):
                _record_checks(function)


def is_entry(function: func.FuncOp) -> bool:
    """Whether a function of tensors can be called from outside."""
    private = function.sym_visibility is not None and function.sym_visibility.data == "private"
    taken = function.function_type.inputs.data
    return (
        len(function.body.blocks) == 1
        and not private
        and all(isinstance(type, TensorType) for type in taken)
    )


def _record_checks(function: func.FuncOp) -> None:
    sizing = sizing_of(function)
    if sizing is None:
        return
    if sizing.hopeless is not None:
        raise CompileError(sizing.hopeless)
    noted = {repr(each.holds): each for each in read_checks(function)}
    for each in sizing.finished():
        noted.setdefault(repr(each.holds), each)
    write_checks(function, list(noted.values()))
    pin(function, sizing)
