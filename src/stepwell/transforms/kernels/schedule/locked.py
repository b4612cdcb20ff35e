"""Schedules of a lock file: the key of a kernel, and its levels; choices as numbers and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.locks import Tuned, read_lock
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import schedule_from
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.printing import text_of
from stepwell.transforms.kernels.schedule.from_levels import write_levels
from stepwell.transforms.kernels.schedule.levels import (
    CHOICES,
    LISTS,
    LOOPS,
    MARKS,
    NUMBERS,
)
from stepwell.transforms.kernels.schedule.reasons import because


def kernel_key(function: kernel.FuncOp) -> str:
    """Return a digest of what a kernel computes and what is written on it by hand.

    Its own name, those of its values and where it comes from do not matter.
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


def choices_of(function: kernel.FuncOp) -> dict[str, Any]:
    """Return the choices written on a kernel."""
    found: dict[str, Any] = {}
    for name in LISTS:
        if sizes := choices.numbers(function, f"kernel.{name}"):
            found[name] = list(sizes)
    for name in NUMBERS:
        if (key := f"kernel.{name}") in function.attributes:
            found[name] = choices.number(function, key)
    found |= {name: True for name in MARKS if f"kernel.{name}" in function.attributes}
    loops = [op.attributes.get(LOOPS) for op in _generics(function)]
    found["loops"] = [
        [each.axis.data, each.width.data, each.interleave.data]
        if isinstance(each, kernel.LoopsAttr)
        else None
        for each in loops
    ]
    return found


def write_choices(function: kernel.FuncOp, schedule: Mapping[str, Any]) -> None:
    """Write choices on a kernel that has none."""
    for name in (*LISTS, *NUMBERS):
        if name in schedule:
            function.attributes[f"kernel.{name}"] = choices.spelled(schedule[name])
    for name in MARKS:
        if schedule.get(name):
            function.attributes[f"kernel.{name}"] = UnitAttr()
    generics = _generics(function)
    for op, loops in zip(generics, schedule["loops"], strict=True):
        if loops is not None:
            op.attributes[LOOPS] = kernel.LoopsAttr.of(*loops)


def write_all_tuned(module: ModuleOp, lock: str) -> set[kernel.FuncOp]:
    """Write what the lock file ``lock`` says on the kernels of a module, and return these.

    What is in the file and not in the module is reported.
    """
    tuned = read_lock(Path(lock)).kernels
    known: set[str] = set()
    written: set[kernel.FuncOp] = set()
    for function in module.ops:
        if isinstance(function, kernel.FuncOp) and (key := kernel_key(function)) in tuned:
            known.add(key)
            found = tuned[key]
            because(function, lambda t=found: f"from the lock file, best of {t.tried} timed")
            write_tuned(function, found)
            written.add(function)
    if left := [each.name for key, each in tuned.items() if key not in known]:
        said = f"no kernel here is what the lock file {lock} has as {', '.join(left)}"
        report(Diagnostic("warning", said, help="was the module changed? tune it again"))
    return written


def write_tuned(function: kernel.FuncOp, tuned: Tuned) -> None:
    """Write what a lock file says on its kernel; `CompileError` where that cannot be."""
    try:
        write_levels(function, schedule_from(tuned.schedule))
        function.verify_()
    except (VerifyException, ParseError) as error:
        said = error.msg if isinstance(error, ParseError) else error
        message = f"the schedule of kernel '{tuned.name}' in the lock file cannot be: {said}"
        help = "make the lock file anew with --tune, or leave it away"
        raise CompileError(Diagnostic("error", message, help=help)) from None


def is_untouched(function: kernel.FuncOp) -> bool:
    """Whether nothing is scheduled by hand."""
    hand = any(name in function.attributes for name in (SCHEDULE, *CHOICES))
    return not hand and all(LOOPS not in op.attributes for op in _generics(function))


def operands_of(function: kernel.FuncOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """Return the inputs and the destinations of a kernel."""
    arguments = function.body.block.args
    count = len(arguments) - len(function.function_type.outputs)
    return arguments[:count], arguments[count:]


def _generics(function: kernel.FuncOp) -> list[linalg.GenericOp]:
    return [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
