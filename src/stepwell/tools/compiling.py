"""stepwell compile: write a program's files into a folder, or print what there is to read."""

from __future__ import annotations

import argparse
from pathlib import Path

from stepwell.compiled import Compiled, compile
from stepwell.core.deep import with_deep_stack
from stepwell.core.machine import this_machine
from stepwell.core.signature import Signature
from stepwell.modules import read_module
from stepwell.pipeline import Source, stage_text


def compile_command(options: argparse.Namespace) -> int:
    """Compile a module; write the program, or print its text or a stage of it."""
    module = read_module(options.file, options.weights)
    if options.stage:
        machine = this_machine().override(options.machine)
        source = Source(module.text, module.name, options.entry, machine)
        print(with_deep_stack(lambda: stage_text(source, options.stage)), end="")
        return 0
    compiled = compile(module, options.entry, target=options.target, machine=options.machine)
    if options.output is None:
        print(compiled.source, end="")
    else:
        _write(compiled, Path(options.output))
    return 0


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
