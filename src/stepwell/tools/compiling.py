"""stepwell compile: write a program's files into a folder, or print a stage or its text."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.api.compiled import lock_beside
from stepwell.api.modules import ModuleText
from stepwell.core.deep import with_deep_stack
from stepwell.core.escape import quoted
from stepwell.core.locks import write_lock
from stepwell.core.signature import Signature
from stepwell.driver.lowering import pipeline_text, stage_text, translate
from stepwell.driver.tuning import BUDGET, tune
from stepwell.runtime.program import seal, write_program
from stepwell.tools.inputs import (
    bare_source_of,
    fail,
    lock_of,
    module_of,
    program_of,
    source_of,
    target_of,
)


def compile_command(options: argparse.Namespace) -> int:
    """Compile a module; write the program, or print its text or a stage of it."""
    module = module_of(options)
    for name in ("budget", "size"):
        if getattr(options, name) is not None and not options.tune:
            fail(f"--{name} is for --tune alone", f"add --tune, or leave --{name} away")
    if options.output is not None and (options.print_pipeline or options.stage):
        option = "--stage" if options.stage else "--print-pipeline"
        fail(f"{option} only prints, so that -o has no effect", "redirect the output to a file")
    if options.tune:
        options.lock = lock_of(options) or lock_beside(Path(options.file), target_of(options).name)
        _tune(module, options)
    target = target_of(options)
    if options.print_pipeline:
        print(pipeline_text(source_of(module, options)))
        return 0
    if options.stage:
        source = source_of(module, options)
        print(with_deep_stack(lambda: stage_text(source, options.stage)), end="")
        return 0
    if not target.native:
        source = source_of(module, options)
        created = with_deep_stack(lambda: translate(source, target.name))
        if options.output is None:
            print(created.text, end="")
        else:
            folder = Path(options.output)
            write_program(folder, created.text, "", created.signature, None, module.resources)
            seal(folder, created.signature)
            _report_files(created.signature, Path(options.output))
        return 0
    compiled = program_of(options, module)
    if options.output is None:
        print(compiled.source, end="")
    else:
        compiled.save(options.output)
        _report_files(compiled.signature, Path(options.output))
    return 0


def _tune(module: ModuleText, options: argparse.Namespace) -> None:
    """Search for better schedules and write them into the lock file."""
    if not (target := target_of(options)).timed:
        said = f"schedules for {target.name} cannot be tuned: nothing times its kernels"
        fail(said, "leave --tune away")
    budget = BUDGET if options.budget is None else options.budget
    source = bare_source_of(module, options)
    found = with_deep_stack(
        lambda: tune(source, budget, options.size, print, target.name, options.device or "")
    )
    write_lock(Path(options.lock), found)
    print(f"lock file: {options.lock}, {len(found.kernels)} kernels")


def _report_files(signature: Signature, folder: Path) -> None:
    """Report the files that were written."""
    print(f"{signature}")
    for file in sorted(p for p in folder.iterdir() if p.name.startswith(("program.", "constants"))):
        print(f"  {file}  {file.stat().st_size:,} bytes")
    print(f"  kernels: {', '.join(quoted(k.name) for k in signature.kernels) or 'none'}")
    print(f"  arena: {_arena(signature)}")


def _arena(signature: Signature) -> str:
    if signature.arena is None:
        return "bytes depend on the sizes"
    return f"{signature.arena:,} bytes"
