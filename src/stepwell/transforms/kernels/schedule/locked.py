"""Schedules of a lock file: the key of a kernel, and its levels."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.analysis.levels import check_levels, write_schedule
from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.locks import Tuned, read_lock
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import schedule_from
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.printing import text_of
from stepwell.transforms.kernels.schedule.reasons import explain_choice


def kernel_key(function: kernel.FuncOp) -> str:
    """Return a digest of a kernel's ops and its hand-written attributes.

    It ignores the kernel's name, the names of its values and its locations.
    """
    plain = function.clone()
    plain.properties["sym_name"] = StringAttr("kernel")
    for op in plain.walk():
        for value in op.results:
            value.name_hint = None
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument.name_hint = None
    return sha256(text_of(plain).encode()).hexdigest()[:16]


def write_all_tuned(module: ModuleOp, lock: str) -> set[kernel.FuncOp]:
    """Write the schedules of the lock file ``lock`` on a module's kernels, and return these.

    Kernels of the file that are not in the module are reported.
    """
    tuned = read_lock(Path(lock)).kernels
    known: set[str] = set()
    written: set[kernel.FuncOp] = set()
    for function in module.ops:
        if isinstance(function, kernel.FuncOp) and (key := kernel_key(function)) in tuned:
            known.add(key)
            found = tuned[key]
            explain_choice(function, lambda t=found: f"from the lock file, best of {t.tried} timed")
            write_tuned(function, found)
            written.add(function)
    if left := [each.name for key, each in tuned.items() if key not in known]:
        said = f"no kernel here is what the lock file {lock} has as {', '.join(left)}"
        report(Diagnostic("warning", said, help="was the module changed? tune it again"))
    return written


def write_tuned(function: kernel.FuncOp, tuned: Tuned) -> None:
    """Write a schedule of a lock file on its kernel; raise `CompileError` if it is illegal."""
    try:
        levels = schedule_from(tuned.schedule)
        check_levels(function, levels)
        write_schedule(function, levels)
    except (VerifyException, ParseError) as error:
        said = error.msg if isinstance(error, ParseError) else error
        message = f"the schedule of kernel '{tuned.name}' in the lock file cannot be: {said}"
        help = "make the lock file anew with --tune, or leave it away"
        raise CompileError(Diagnostic("error", message, help=help)) from None


def is_untouched(function: kernel.FuncOp) -> bool:
    """Whether the kernel has no hand-written schedule."""
    return SCHEDULE not in function.attributes


def operands_of(function: kernel.FuncOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """Return the inputs and the destinations of a kernel."""
    arguments = function.body.block.args
    count = len(arguments) - len(function.function_type.outputs)
    return arguments[:count], arguments[count:]
