"""stepwell compile: write a program's files into a folder, or print what there is to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.compiled import RUNNABLE, Compiled, compile
from stepwell.core.deep import with_deep_stack
from stepwell.core.machine import this_machine
from stepwell.core.signature import Signature
from stepwell.modules import read_module
from stepwell.pipeline import Source, Translation, stage_text, translate
from stepwell.runtime.program import DESCRIPTION


def compile_command(options: argparse.Namespace) -> int:
    """Compile a module; write the program, or print its text or a stage of it."""
    module = read_module(options.file, options.weights)
    machine = this_machine().override(options.machine)
    source = Source(module.text, module.name, options.entry, machine)
    if options.stage:
        print(with_deep_stack(lambda: stage_text(source, options.stage)), end="")
        return 0
    if options.target != RUNNABLE:
        made = with_deep_stack(lambda: translate(source, options.target))
        _write_text(made, options.output)
        return 0
    compiled = compile(module, options.entry, target=options.target, machine=options.machine)
    if options.output is None:
        print(compiled.source, end="")
    else:
        _write(compiled, Path(options.output))
    return 0


def _write_text(made: Translation, folder: str | None) -> None:
    """Print a program that is not for C, or write its text and description."""
    if folder is None:
        print(made.text, end="")
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    (place / "program.cl").write_text(made.text)
    (place / DESCRIPTION).write_text(made.signature.to_json())


def _write(compiled: Compiled, folder: Path) -> None:
    compiled.save(folder)
    signature = compiled.signature
    print(f"{signature}")
    for file in sorted(p for p in folder.iterdir() if p.name.startswith(("program.", "constants"))):
        print(f"  {file}  {file.stat().st_size:,} bytes")
    print(f"  kernels: {', '.join(k.name for k in signature.kernels) or 'none'}")
    print(f"  arena: {_arena(signature)}")


def _arena(signature: Signature) -> str:
    if signature.arena is None:
        return "bytes depend on the sizes"
    return f"{signature.arena:,} bytes"
