"""stepwell profile: say where the time of a program goes, and write a trace of it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stepwell.compiled import Compiled, compile, load
from stepwell.modules import read_module
from stepwell.tools.locking import lock_of
from stepwell.tools.running import inputs_of


def profile_command(options: argparse.Namespace) -> int:
    """Compile a module, or load a saved program, call it again and again, and print the table."""
    if options.threads:
        os.environ["STEPWELL_THREADS"] = str(options.threads)
    compiled = _program(options)
    if options.random is None and not options.input:
        options.random = 0
    found = compiled.profile(*inputs_of(compiled, options), repeat=options.repeat)
    print(found)
    if options.trace:
        Path(options.trace).write_text(found.trace())
        print(f"trace: {options.trace} (open it in ui.perfetto.dev)")
    return 0


def _program(options: argparse.Namespace) -> Compiled:
    """Return what FILE is: a module, or the folder of a saved program."""
    if Path(options.file).is_dir():
        return load(options.file)
    module = read_module(options.file, options.weights)
    return compile(
        module,
        options.entry,
        target=options.target,
        machine=options.machine,
        lock=lock_of(options),
    )
