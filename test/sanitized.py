"""Rows of ops and random programs, for a process in which the sanitizers are loaded.

    python test/sanitized.py --rows 0/12 --programs 16 --sizes 20 --seed 3 [--verbose]

runs every twelfth batch of rows, 16 random programs and 20 of sizes known only at run time, the
wrong ones too, compares with the reference, says what it has run, and ends with 1 where something
was wrong. A sanitizer that finds something ends it at once.
`sanitizing.py` starts it with them.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from op_rows import FAMILIES
from random_sizes.checking import check as check_sizes

import stepwell as sw
from stepwell.testing.op_rows.row import Row
from stepwell.testing.op_rows.together import Together
from stepwell.testing.random_programs.checking import check_compiled
from stepwell.testing.random_programs.program import Program
from stepwell.testing.random_programs.strategy import programs

AT_ONCE = 24
MACHINES = ("", "vector_bits=128", "vector_bits=256,threads=1")
"""What programs are compiled for, in turn."""


def batches() -> list[list[tuple[Row, str]]]:
    """Return all rows for all their dtypes, so many at a time."""
    found: list[list[tuple[Row, str]]] = []
    for family in FAMILIES:
        rows = [(row, dtype) for row in family.ROWS for dtype in row.dtypes]
        found += [rows[k : k + AT_ONCE] for k in range(0, len(rows), AT_ONCE)]
    return found


def drawn(count: int, start: int) -> Iterator[Program]:
    """Yield random programs, others for each ``start``."""
    if not count:
        return
    found: list[Program] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs())
    def collect(program: Program) -> None:
        found.append(program)

    collect()
    yield from found[:count]


@dataclass
class Tally:
    """What has been run."""

    rows: int = 0
    programs: int = 0
    sizes: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def note(self, what: str, text: str) -> None:
        """Note what was wrong, with the program it was wrong in."""
        self.wrong.append(f"{what}\n{traceback.format_exc()}\n{text}")
        print(self.wrong[-1], flush=True)

    def run_rows(self, batch: Sequence[tuple[Row, str]]) -> None:
        """Compile and run some rows as one program."""
        together = Together.of(batch)
        try:
            together.check(sw.compile(together.text, resources=together.resources))
        except (AssertionError, sw.CompileError):
            self.note("rows " + ", ".join(row.name for row, _ in batch), "")
        self.rows += len(batch)

    def run_program(self, program: Program, machine: str) -> None:
        """Compile and run a program on several sizes."""
        try:
            check_compiled(program, machine=machine)
        except (AssertionError, sw.CompileError):
            self.note(f"a random program, machine '{machine}'", program.text)
        self.programs += 1

    def run_sizes(self, seed: int) -> None:
        """Compile a program of sizes known only at run time, and call it with right and wrong."""
        try:
            check_sizes(seed)
        except (AssertionError, sw.CompileError):
            self.note(f"random sizes, seed {seed}", "")
        self.sizes += 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 0 if all was right."""
    parser = argparse.ArgumentParser(description="run rows and random programs")
    parser.add_argument("--rows", default="0/1", help="K/N: batches K, K + N, ...; '' for none")
    parser.add_argument("--programs", type=int, default=0, help="how many random programs")
    parser.add_argument("--sizes", type=int, default=0, help="how many of unknown sizes")
    parser.add_argument("--seed", type=int, default=0, help="which random programs")
    parser.add_argument("--verbose", action="store_true", help="print each before it runs")
    options = parser.parse_args(argv)
    first, step = map(int, (options.rows or "0/1").split("/"))
    tally = Tally()
    for batch in batches()[first::step] if options.rows else ():
        if options.verbose:
            print(f"rows {batch[0][0].name} to {batch[-1][0].name}", flush=True)
        tally.run_rows(batch)
    for number, program in enumerate(drawn(options.programs, options.seed)):
        if options.verbose:
            print(program.text, flush=True)
        tally.run_program(program, MACHINES[number % len(MACHINES)])
    for number in range(options.seed * options.sizes, (options.seed + 1) * options.sizes):
        if options.verbose:
            print(f"random sizes, seed {number}", flush=True)
        tally.run_sizes(number)
    print(
        f"{tally.rows} rows, {tally.programs} random programs, {tally.sizes} of unknown sizes, "
        f"{len(tally.wrong)} wrong"
    )
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
