"""stepwell: compile and run modules, and list passes, ops and targets."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from stepwell.tools.process_exit import leave_quickly

EPILOG = """\
examples:
  stepwell run model.mlir --input x.npy            run a module on an array
  stepwell run model.mlir --random --size 1000     run it on random arrays, `?` being 1000
  stepwell run model.mlir --random --repeat 100    and time it
  stepwell compile model.mlir -o build             C source, header, library, description
  stepwell compile model.mlir --stage kernels      print the module as it is after a stage
  stepwell profile model.mlir --trace t.json       where the time goes, kernel by kernel
  stepwell explain model.mlir --measure            which schedules were chosen, and why
  stepwell compile model.mlir --tune -o build      time schedules first, keep them in a lock file
  stepwell passes canonicalize                     what a pass does
  stepwell ops nd.softmax                          what an op means
  stepwell targets                                 what programs are compiled to
  stepwell machine                                 what is known of this processor, and how
  stepwell devices                                 what programs of OpenCL can run on

environment: STEPWELL_CC (C compiler), STEPWELL_CACHE (cache folder), STEPWELL_THREADS,
STEPWELL_MACHINE (what to compile for, as --machine says it), STEPWELL_DEVICE (as --device)
weights lie in model.npz beside model.mlir; stepwell-opt shows and tests single passes
"""

COMMANDS = {
    "run": "stepwell.tools.running:run",
    "compile": "stepwell.tools.compiling:compile_command",
    "explain": "stepwell.tools.explaining:explain_command",
    "profile": "stepwell.tools.profiling:profile_command",
    "passes": "stepwell.tools.listing:passes",
    "ops": "stepwell.tools.listing:ops",
    "targets": "stepwell.tools.listing:targets",
    "machine": "stepwell.tools.machines:machine_command",
    "devices": "stepwell.tools.devices:devices_command",
}
"""The function of each subcommand, imported when it is called."""


PROGRAM = "a module of textual IR, or the folder of a saved program"


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        "stepwell",
        description="Compile tensor programs written as textual IR, and run them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--debug", action="store_true", help="show Python's traceback of errors")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_run(commands)
    _add_compile(commands)
    _add_profile(commands)
    _add_explain(commands)
    passes = _command(commands, "passes", "list the passes, or show one")
    passes.add_argument("name", nargs="?", help="a pass")
    ops = _command(commands, "ops", "list the ops of the nd dialect, or show one")
    ops.add_argument("name", nargs="?", help="an op")
    _command(commands, "targets", "list the targets: what programs are compiled to")
    _add_machines(commands)
    return parser


def _add_run(commands: Any) -> None:
    """Add `stepwell run`."""
    run = _command(commands, "run", "compile a module and run it on arrays")
    _add_module(run, PROGRAM)
    _add_inputs(run)
    run.add_argument("-o", "--output", metavar="FILE", help="save results in a .npy or .npz file")
    run.add_argument(
        "--repeat", type=_count, default=0, metavar="N", help="call N times and time it"
    )


def _add_compile(commands: Any) -> None:
    """Add `stepwell compile`."""
    build = _command(commands, "compile", "write a program's source, header, library, description")
    _add_module(build)
    build.add_argument("-o", "--output", metavar="DIR", help="the folder to write (default: print)")
    build.add_argument("--tune", action="store_true", help="search for schedules by timing first")
    build.add_argument("--budget", type=float, metavar="SECONDS", help="for --tune (default 60)")
    build.add_argument(
        "--size", type=_several, help="what `?` is while schedules are timed: 8, or 1,8,260"
    )
    build.add_argument(
        "--stage", help="print the module after nd, structured, kernels, buffers or loops instead"
    )
    build.add_argument(
        "--print-pipeline", action="store_true", help="print every stage's passes instead"
    )


def _add_profile(commands: Any) -> None:
    """Add `stepwell profile`."""
    profile = _command(commands, "profile", "say where the time of a program goes")
    _add_module(profile, PROGRAM)
    _add_inputs(profile)
    profile.add_argument(
        "--threads", type=_count, default=0, help="how many threads (default: cores)"
    )
    profile.add_argument(
        "--repeat", type=_count, default=0, metavar="N", help="calls (default: 1 s)"
    )
    profile.add_argument("--trace", metavar="FILE", help="write a trace for ui.perfetto.dev")


def _add_explain(commands: Any) -> None:
    """Add `stepwell explain`."""
    explain = _command(commands, "explain", "say which schedule each kernel has, and why")
    _add_module(explain)
    _add_inputs(explain)
    explain.add_argument("--kernel", default="*", metavar="NAME", help="one kernel, or a pattern")
    explain.add_argument("--measure", action="store_true", help="run it and say how long it took")


def _add_machines(commands: Any) -> None:
    """Add the commands about machines and devices."""
    machine = _command(commands, "machine", "say what is known of a machine, and what follows")
    machine.add_argument("machine", nargs="?", help="as for --machine (default: this one)")
    machine.add_argument("--list", action="store_true", help="list machines that are written down")
    machine.add_argument("--measure", action="store_true", help="measure again what is measured")
    machine.add_argument("--json", action="store_true", help="print JSON")
    devices = _command(commands, "devices", "list the devices that programs can run on")
    devices.add_argument("--measure", action="store_true", help="measure again what is measured")
    devices.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    """Parse a count, a positive number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of 1 or more, got '{text}'")
    return int(text)


def _size(text: str) -> int:
    """Parse the size of an axis."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number of 0 or more, got '{text}'")
    return int(text)


def _several(text: str) -> tuple[int, ...]:
    """Parse the sizes of axes, separated by commas."""
    return tuple(map(_size, text.split(",")))


def _command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="a Universe of dialects, passes and targets that is not installed",
    )
    return parser


def _add_module(parser: argparse.ArgumentParser, file: str = "a module of textual IR") -> None:
    parser.add_argument("file", help=file)
    parser.add_argument("--entry", help="the function to call (default main)")
    parser.add_argument("--weights", metavar="FILE.npz", help="weights, if not FILE's own .npz")
    parser.add_argument("--target", help="c (the default), opencl, or one of a package")
    parser.add_argument(
        "--device", help="run on it, as in gpu, gpu:1 or a part of its name (target opencl)"
    )
    parser.add_argument(
        "--machine", help="compile for another machine, as in zen4,threads=2 or vector_bits=256"
    )
    parser.add_argument(
        "--lock", metavar="FILE", help="tuned schedules (default: FILE's own .lock.json, if there)"
    )
    parser.add_argument(
        "--pass",
        action="append",
        metavar="PASS@before:ANCHOR",
        help="a pass to place in the pipeline; an anchor is a pass, a stage, or stage/pass",
    )
    parser.add_argument(
        "--no-check-bounds",
        action="store_const",
        const=True,
        help="trust a module of buffers or loops: do not compare what it touches with sizes",
    )
    parser.add_argument("--remarks", action="store_true", help="show what passes decided and why")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an argument: a .npy file, in order or by name; a .npz file gives several by name",
    )
    parser.add_argument(
        "--random", type=int, nargs="?", const=0, metavar="SEED", help="make up what is not given"
    )
    parser.add_argument("--size", type=_size, help="what `?` is in made-up arrays (default 8)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return 0, or 1 after an error."""
    leave_quickly()
    parser = arguments()
    options = parser.parse_args(argv)
    if options.version:
        print(f"stepwell {import_module('stepwell').__version__}")
        return 0
    if options.command is None:
        parser.print_help()
        return 1
    module, name = COMMANDS[options.command].split(":")
    try:
        return import_module("stepwell.tools.error_boundary").guarded(
            getattr(import_module(module), name), options
        )
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader closed the pipe: no error
        return 1


if __name__ == "__main__":
    sys.exit(main())
