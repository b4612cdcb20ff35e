"""Check the sizes and indices of a module that begins below the graph, before all other passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.checks import read_checks, write_checks
from stepwell.dialects.upstream.accesses import Accesses
from stepwell.transforms.graph.check_sizes import is_entry
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class CheckAccesses(Pass):
    """Prove that structured ops and kernels access no element outside their tensors.

    Before:  %s = tensor.extract_slice %x[0] [4] [1] : tensor<?xf32> to tensor<4xf32>
    After:   the same, and nd.checks of the function requires that %x has 4 elements or more
    Afterwards: a call whose sizes meet all checks accesses no memory outside its tensors. An index
    that cannot be bounded is an error. Programs in `nd` are checked by `check-sizes` instead.
    """

    name = "check-accesses"
    expects_work: ClassVar[bool] = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check every public function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and is_entry(function):
                _record_checks(function)


def _record_checks(function: func.FuncOp) -> None:
    accesses = Accesses(function)
    accesses.block(function.body.block)
    if accesses.hopeless is not None:
        raise CompileError(accesses.hopeless)
    noted = {repr(each.holds): each for each in read_checks(function)}
    for each in accesses.finished():
        noted.setdefault(repr(each.holds), each)
    write_checks(function, list(noted.values()))
