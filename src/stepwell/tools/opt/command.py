"""The command line of stepwell-opt: its options and exit code."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from stepwell.tools.process_exit import leave_quickly

EPILOG = """\
pipelines:
  -p 'canonicalize,cse'                      passes on the module, in order
  -p 'func.func(canonicalize,cse)'           passes on each function
  -p 'schedule{machine=haswell},bufferize'   options
  -p 'through(structured)'                   every stage up to and including one
examples:
  stepwell-opt model.mlir -p nd-to-linalg
  stepwell-opt model.mlir -p 'through(loops)' --print-ir-tree-dir=steps
  stepwell-opt test.mlir -p canonicalize --check
"""

STACK_BYTES = 512 << 20
"""The stack size in bytes, for recursion over nested regions; only touched pages are used."""

FLAG: dict[str, Any] = {"action": "store_true"}
"""The keywords of an option without a value."""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        "stepwell-opt",
        description="Read a module of textual IR, run passes over it, print it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", nargs="?", default="-", help="the module; - is standard input")
    parser.add_argument("-p", "--passes", default="", help="the pipeline to run")
    parser.add_argument("-o", "--output", default="-", help="where to write the result")
    parser.add_argument(
        "--machine",
        metavar="NAME,...",
        help="machine that supplies pass options that are not written: "
        "zen4,threads=2 or vector_bits=256",
    )
    parser.add_argument("-t", "--target", help="print the module for a target instead of as IR")
    _add_about(parser)
    _add_reading(parser)
    _add_seeing(parser)
    _add_checking(parser)
    _add_failing(parser)
    return parser


def _add_about(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask about the tool."""
    about = parser.add_argument_group("information")
    about.add_argument("--list-passes", help="list every pass", **FLAG)
    about.add_argument("--show-pass", metavar="NAME", help="describe a pass and its options")
    about.add_argument("--version", help="print the version", **FLAG)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading and printing."""
    reading = parser.add_argument_group("reading and printing")
    reading.add_argument("--split-input-file", help="modules between lines of // -----", **FLAG)
    reading.add_argument("--allow-unregistered-dialect", help="accept unknown ops", **FLAG)
    reading.add_argument("--print-op-generic", help="print every op in generic form", **FLAG)
    reading.add_argument("--print-debuginfo", help="print locations", **FLAG)
    reading.add_argument(
        "--elide-constants",
        type=int,
        metavar="N",
        help="print constants of more than N elements as dense_resource<__elided__>",
    )


def _add_seeing(parser: argparse.ArgumentParser) -> None:
    """Add the options that trace passes."""
    seeing = parser.add_argument_group("tracing passes (on standard error)")
    seeing.add_argument("--print-ir-before", metavar="PASS,...", default="")
    seeing.add_argument("--print-ir-after", metavar="PASS,...", default="")
    seeing.add_argument("--print-ir-before-all", **FLAG)
    seeing.add_argument("--print-ir-after-all", **FLAG)
    seeing.add_argument(
        "--print-ir-after-change", help="only after passes that changed the module", **FLAG
    )
    seeing.add_argument(
        "--print-ir-tree-dir", metavar="DIR", help="write one file per print instead"
    )
    seeing.add_argument(
        "--timing", help="print the time of parsing, each pass, verifying, printing", **FLAG
    )
    seeing.add_argument("--stats", help="count ops before and after each pass", **FLAG)
    seeing.add_argument(
        "--remarks", help="print remarks: the decisions of passes and their reasons", **FLAG
    )


def _add_checking(parser: argparse.ArgumentParser) -> None:
    """Add the options of checking."""
    checking = parser.add_argument_group("checking")
    checking.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the module after every pass",
    )
    checking.add_argument(
        "--verify-diagnostics", help="compare diagnostics with expected-error comments", **FLAG
    )
    checking.add_argument(
        "--check", help="run the module before and after every pass and compare results", **FLAG
    )
    checking.add_argument("--bit-exact", help="refuse passes that may change a result", **FLAG)
    checking.add_argument(
        "--no-check-bounds",
        help="print a module of buffers or loops (-t) without bounds checks",
        **FLAG,
    )


def _add_failing(parser: argparse.ArgumentParser) -> None:
    """Add the options for failures."""
    failing = parser.add_argument_group("failures and plug-ins")
    failing.add_argument("--debug", help="show Python's traceback", **FLAG)
    failing.add_argument(
        "--reproducer", metavar="FILE", help="file to which a crash writes the module"
    )
    failing.add_argument(
        "--run-reproducer", help="run the pipeline named in the input file", **FLAG
    )
    failing.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="load a Universe of dialects and passes (installed ones are found by entry point)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run stepwell-opt; return 0, or 1 after an error."""
    leave_quickly()
    options = arguments().parse_args(argv)
    if options.version or options.list_passes or options.show_pass:
        # listing needs only the names of the compiler's passes
        from stepwell.tools.opt.listing import answer

        return answer(options)
    outcome: list[int] = []

    def run() -> None:
        # imported here so that --help does not load the compiler
        from stepwell.tools.opt.driver import Driver

        outcome.append(Driver(options).run())

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(40_000)
    size = threading.stack_size(STACK_BYTES)
    try:
        worker = threading.Thread(target=run)
        worker.start()
        worker.join()
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    return outcome[0] if outcome else 1


if __name__ == "__main__":
    sys.exit(main())
