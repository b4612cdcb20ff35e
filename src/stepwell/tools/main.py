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
  stepwell run model.mlir --random --size 1000     run it on random arrays, with 1000 for `?`
  stepwell run model.mlir --random --repeat 100    and time it
  stepwell compile model.mlir -o build             C source, header, library, description
  stepwell compile model.mlir --stage kernels      print the module as it is after a stage
  stepwell profile model.mlir --trace t.json       show the time of each kernel
  stepwell explain model.mlir --measure            show the chosen schedules and the reasons
  stepwell compile model.mlir --tune -o build      tune schedules, keep them in a lock file
  stepwell passes canonicalize                     describe a pass
  stepwell ops nd.softmax                          describe an op
  stepwell targets                                 list the targets
  stepwell machine                                 show the properties of this processor
  stepwell devices                                 list the OpenCL devices

environment: STEPWELL_CC (C compiler), STEPWELL_CACHE (cache folder), STEPWELL_THREADS,
STEPWELL_MACHINE (as --machine), STEPWELL_DEVICE (as --device)
weights of model.mlir are in model.npz beside it; stepwell-opt runs and tests single passes
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
    _command(commands, "targets", "list the targets that programs are compiled for")
    _add_machines(commands)
    return parser


def _add_run(commands: Any) -> None:
    """Add `stepwell run`."""
    run = _command(commands, "run", "compile a module and run it on arrays")
    _add_module(run, PROGRAM)
    _add_inputs(run)
    run.add_argument(
        "-o", "--output", metavar="FILE", help="write the results to a .npy or .npz file"
    )
    run.add_argument(
        "--repeat",
        type=_count,
        default=0,
        metavar="N",
        help="call it N times and report the time of a call",
    )


def _add_compile(commands: Any) -> None:
    """Add `stepwell compile`."""
    build = _command(commands, "compile", "write a program's source, header, library, description")
    _add_module(build)
    build.add_argument("-o", "--output", metavar="DIR", help="the folder to write (default: print)")
    build.add_argument(
        "--tune", action="store_true", help="first search for faster schedules by timing them"
    )
    build.add_argument(
        "--budget", type=float, metavar="SECONDS", help="time limit of --tune (default 60)"
    )
    build.add_argument("--size", type=_several, help="sizes for `?` while tuning: 8, or 1,8,260")
    build.add_argument(
        "--stage", help="only print the module after nd, structured, kernels, buffers or loops"
    )
    build.add_argument(
        "--print-pipeline", action="store_true", help="only print the passes of every stage"
    )


def _add_profile(commands: Any) -> None:
    """Add `stepwell profile`."""
    profile = _command(commands, "profile", "measure the time of each kernel of a program")
    _add_module(profile, PROGRAM)
    _add_inputs(profile)
    profile.add_argument(
        "--threads", type=_count, default=0, help="number of threads (default: cores)"
    )
    profile.add_argument(
        "--repeat", type=_count, default=0, metavar="N", help="calls (default: 1 s)"
    )
    profile.add_argument("--trace", metavar="FILE", help="write a trace for ui.perfetto.dev")


def _add_explain(commands: Any) -> None:
    """Add `stepwell explain`."""
    explain = _command(
        commands, "explain", "show the schedule of each kernel and the reasons for it"
    )
    _add_module(explain)
    _add_inputs(explain)
    explain.add_argument("--kernel", default="*", metavar="NAME", help="one kernel, or a pattern")
    explain.add_argument(
        "--measure", action="store_true", help="also run it and report the time of each kernel"
    )


def _add_machines(commands: Any) -> None:
    """Add the commands about machines and devices."""
    machine = _command(
        commands, "machine", "show the properties of a machine and where they come from"
    )
    machine.add_argument("machine", nargs="?", help="as for --machine (default: this one)")
    machine.add_argument("--list", action="store_true", help="list the predefined machines")
    machine.add_argument("--measure", action="store_true", help="repeat the measurements")
    machine.add_argument("--json", action="store_true", help="print JSON")
    devices = _command(commands, "devices", "list the devices that can run programs")
    devices.add_argument("--measure", action="store_true", help="repeat the measurements")
    devices.add_argument("--json", action="store_true", help="print JSON")


MOST_CALLS = 10**9
"""The most calls that --repeat makes: of programs of a microsecond, they take a quarter hour."""


def _count(text: str) -> int:
    """Parse a count, a positive number."""
    return _number(text, 1, MOST_CALLS)


def _size(text: str) -> int:
    """Parse the size of an axis."""
    return _number(text, 0, 2**63 - 1)


def _number(text: str, least: int, most: int) -> int:
    """Parse a number; a text of thousands of digits, which Python refuses, is too large."""
    if not text.isdecimal() or (len(text) <= len(str(most)) and int(text) < least):
        raise argparse.ArgumentTypeError(f"must be a number of {least} or more, got '{text}'")
    if len(text) > len(str(most)) or int(text) > most:
        raise argparse.ArgumentTypeError(f"must be at most {most}, got '{text}'")
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
    parser.add_argument("--entry", help="the entry function (default main)")
    parser.add_argument(
        "--weights", metavar="FILE.npz", help="file of the weights (default: the .npz beside FILE)"
    )
    parser.add_argument("--target", help="c (the default), opencl, or a target of a package")
    parser.add_argument(
        "--device", help="device to run on: gpu, gpu:1 or a part of its name (target opencl)"
    )
    parser.add_argument(
        "--machine", help="machine to compile for, as in zen4,threads=2 or vector_bits=256"
    )
    parser.add_argument(
        "--lock",
        metavar="FILE",
        help="file of tuned schedules (default: the .lock.json beside FILE, if any)",
    )
    parser.add_argument(
        "--pass",
        action="append",
        metavar="PASS@before:ANCHOR",
        help="add a pass to the pipeline; an anchor is a pass, a stage, or stage/pass",
    )
    parser.add_argument(
        "--no-check-bounds",
        action="store_const",
        const=True,
        help="trust a module of buffers or loops: omit its bounds checks",
    )
    parser.add_argument("--remarks", action="store_true", help="print the decisions of passes")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an argument: a .npy file, in order or by name; a .npz file gives several by name",
    )
    parser.add_argument(
        "--random",
        type=int,
        nargs="?",
        const=0,
        metavar="SEED",
        help="use random arrays for missing inputs",
    )
    parser.add_argument("--size", type=_size, help="size for `?` in random arrays (default 8)")


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
