"""stepwell profile: report where the time of a program goes, and write a trace of it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stepwell.tools.inputs import inputs_of, program_of


def profile_command(options: argparse.Namespace) -> int:
    """Compile a module, or load a saved program, call it repeatedly, and print the table."""
    if options.threads:
        os.environ["STEPWELL_THREADS"] = str(options.threads)
    compiled = program_of(options)
    if options.random is None and not options.input:
        options.random = 0
    found = compiled.profile(*inputs_of(compiled, options), repeat=options.repeat)
    print(found)
    if options.trace:
        Path(options.trace).write_text(found.trace())
        print(f"trace: {options.trace} (open it in ui.perfetto.dev)")
    return 0
