"""stepwell compile: write a program's files into a folder, or print what there is to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.compiled import compile, fitting_lock, lock_beside
from stepwell.core.deep import with_deep_stack
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.machine import Machine, machine_for
from stepwell.core.signature import Signature
from stepwell.modules import ModuleText, read_module
from stepwell.pipeline import Source, stage_text, translate
from stepwell.runtime.program import write_program
from stepwell.tools.locking import lock_of
from stepwell.tuning import BUDGET, tune


def compile_command(options: argparse.Namespace) -> int:
    """Compile a module; write the program, or print its text or a stage of it."""
    module = read_module(options.file, options.weights)
    machine = machine_for(options.target, options.machine)
    lock = lock_of(options)
    if options.budget is not None and not options.tune:
        help = "add --tune, or leave --budget away"
        raise CompileError(Diagnostic("error", "--budget is for --tune alone", help=help))
    if options.tune:
        lock = lock or lock_beside(Path(options.file))
        _tune(module, options, machine, lock)
    used = str(lock) if lock and fitting_lock(lock, machine) else ""
    source = Source(module.text, module.name, options.entry, machine, used)
    if options.stage:
        print(with_deep_stack(lambda: stage_text(source, options.stage)), end="")
        return 0
    if options.target != "c":
        made = with_deep_stack(lambda: translate(source, options.target))
        if options.output is None:
            print(made.text, end="")
        else:
            write_program(
                Path(options.output), made.text, "", made.signature, None, module.resources
            )
            _tell(made.signature, Path(options.output))
        return 0
    compiled = compile(
        module, options.entry, target=options.target, machine=options.machine, lock=lock
    )
    if options.output is None:
        print(compiled.source, end="")
    else:
        compiled.save(options.output)
        _tell(compiled.signature, Path(options.output))
    return 0


def _tune(module: ModuleText, options: argparse.Namespace, machine: Machine, place: Path) -> None:
    """Search for better schedules and write them into the lock file."""
    if options.target != "c":
        message = f"schedules are tuned for programs of C, not for {options.target}"
        raise CompileError(Diagnostic("error", message, help="leave --tune away"))
    budget = BUDGET if options.budget is None else options.budget
    found = with_deep_stack(lambda: tune(module, options.entry, machine, budget, print))
    place.write_text(found.to_json())
    print(f"lock file: {place}, {len(found.kernels)} kernels")


def _tell(signature: Signature, folder: Path) -> None:
    """Say what was written."""
    print(f"{signature}")
    for file in sorted(p for p in folder.iterdir() if p.name.startswith(("program.", "constants"))):
        print(f"  {file}  {file.stat().st_size:,} bytes")
    print(f"  kernels: {', '.join(k.name for k in signature.kernels) or 'none'}")
    print(f"  arena: {_arena(signature)}")


def _arena(signature: Signature) -> str:
    if signature.arena is None:
        return "bytes depend on the sizes"
    return f"{signature.arena:,} bytes"
