"""Targets of xDSL's tools: the printing class of `-t NAME`, derived from our target records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target as Printing

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.targets import OURS, Target

MAIN = "main"


def printing(target: Target) -> type[Printing]:
    """Return a class that prints a module on the floor of loops as a target's program text.

    A package registers it in its universe: ``all_targets={"acme-steps": lambda: printing(STEPS)}``.
    The entry of the program is ``@main``, else the first public function.

    raises CompileError : the module has no public function with a body
    """

    @dataclass(frozen=True)
    class Printed(Printing):
        """Print the text of programs."""

        name: ClassVar = target.name
        record: ClassVar = target

        def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
            """Write the module's text."""
            text = target.emitted(module, _entry(module)).source
            output.write(text if text.endswith("\n") else text + "\n")

    Printed.__doc__ = target.about
    return Printed


def _entry(module: ModuleOp) -> str:
    names = [
        op.sym_name.data
        for op in module.ops
        if isinstance(op, func.FuncOp) and op.body.blocks and not _is_private(op)
    ]
    names = [n for n in names if "." not in n]  # not an entry's helpers, such as its arena size
    if not names:
        message = "there is no public function in the module, so there is no program to print"
        raise CompileError(Diagnostic("error", message))
    return MAIN if MAIN in names else names[0]


def _is_private(function: func.FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def c() -> type[Printing]:
    """Return the printing class of C."""
    return printing(OURS["c"])


def opencl() -> type[Printing]:
    """Return the printing class of OpenCL C, without the host's part."""
    return printing(OURS["opencl"])
