"""Measure NumPy programs beside Numba, JAX and NumPy: `make bench-programs`.

Every program runs as it is written under `sw.jit`. All that comes out is compared with NumPy's
results first; then the libraries are asked in turn for one batch after another, the others
stopped. Numba counts with the fastest of its forms: `njit` of the same text, of hand-written loops,
and both in parallel.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from limits import processor
from measuring import Batch, Outcome, geometric_mean, spell_seconds
from peers import interpreter, state
from processes import Gone, Process
from programs import NAMES, program

from stepwell.runtime.toolchain import find_compiler

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "programs.md"
OURS = "stepwell"
OTHERS = ("numba", "jax", "numpy")
GOALS = {"numba": 0.5, "jax": 0.3, "numpy": 0.12}
"""What the geometric mean of our time to theirs is to be at most."""
OTHERS_HAVE = 180.0
"""Seconds that another library has at least: Numba compiles four forms."""
LONGEST_COMPILE = 2.0
"""Seconds that a first call may take."""

LEGEND = """\
Each program is plain NumPy and runs unchanged but for the decorator `sw.jit`; its results and the
final contents of its arguments are first compared with NumPy's. A time is the median of a call over
the rounds; the libraries were asked in turn, round after round, each process stopped while another
ran. Numba is the fastest of its forms (which one is said), without `fastmath`; JAX is a port as its
users write it, in float64 where NumPy is. *compile* is our first call, nothing cached. A ratio is
our time to theirs: below 1 we are faster. `~` means noisy, `!` that other programs took the
processors."""


@dataclass
class Line:
    """What the libraries did with a program."""

    program: str
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    tried: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What failed, for each library and form."""

    @property
    def ours(self) -> Outcome:
        """What Stepwell did."""
        return self.outcomes[OURS]

    def ratio(self, peer: str) -> float | None:
        """Return our time to that of another, where both are right."""
        other = self.outcomes.get(peer)
        if other is None or not other.counts or not self.ours.counts:
            return None
        return self.ours.seconds / other.seconds


@dataclass
class Bench:
    """What is asked of a run."""

    peers: tuple[str, ...]
    threads: int
    rounds: int
    batch: float
    patience: float
    tiny: bool
    least: bool
    folder: Path
    versions: dict[str, str] = field(default_factory=dict[str, str])

    def measure(self, names: Sequence[str]) -> list[Line]:
        """Return a line for each program."""
        numba = state() / "numba"
        variables = {"NUMBA_CACHE_DIR": str(numba)}
        processes = [
            Process(peer, self.threads, self.folder, variables, script="programs_worker.py")
            for peer in (OURS, *self.peers)
        ]
        lines: list[Line] = []
        try:
            for name in names:
                lines.append(self._program(processes, name))
                say(f"{name}: {', '.join(_said(lines[-1]))}")
                with (state() / "programs.jsonl").open("a") as file:
                    about = {k: asdict(o) for k, o in lines[-1].outcomes.items()}
                    when = time.strftime("%F %T")
                    file.write(json.dumps({"program": name, "when": when, **about}) + "\n")
        finally:
            self.versions |= {p.peer: p.version for p in processes if p.version}
            for process in processes:
                process.stop()
        return lines

    def _program(self, processes: Sequence[Process], name: str) -> Line:
        line = Line(name)
        said = {p: self._ask(p, do="prepare", program=name, tiny=self.tiny) for p in processes}
        running = [p for p in processes if "compile" in said[p]]
        batches: dict[Process, list[Batch]] = {p: [] for p in running}
        for _ in range(self.rounds):
            for process in list(running):
                answer = self._ask(process, do="batch", seconds=self.batch)
                if "seconds" in answer:
                    seconds = answer["least" if self.least else "seconds"]
                    batches[process].append(Batch(**{**answer, "seconds": seconds}))
                else:
                    said[process] |= answer
                    running.remove(process)
        for process in running:
            self._ask(process, do="forget")
        for process in processes:
            line.outcomes[process.peer] = _outcome(process, said[process], batches.get(process, []))
            line.tried[process.peer] = said[process].get("problems", {})
        return line

    def _ask(self, process: Process, **request: Any) -> dict[str, Any]:
        try:
            ours = process.peer == OURS
            return process.ask(
                self.patience if ours else max(self.patience, OTHERS_HAVE), **request
            )
        except Gone as error:
            return {"failed": str(error)}


def _outcome(process: Process, said: Mapping[str, Any], batches: Sequence[Batch]) -> Outcome:
    problem = said.get("failed", "").partition(", see ")[0]
    if not problem and "compile" not in said:
        problem = "; ".join(f"{k}: {v}" if k else v for k, v in said["problems"].items())
    problem = problem.replace(f"{HERE}{os.sep}", "")
    return Outcome(
        process.peer,
        tuple(batches),
        process.threads,
        said.get("compile", 0.0),
        correct=not problem.startswith("wrong"),
        way=said.get("way", ""),
        problem=problem,
    )


def _said(line: Line) -> Iterator[str]:
    for peer, outcome in line.outcomes.items():
        yield f"{peer} {_time(outcome) if outcome.counts else outcome.problem[:150]}"


def _time(outcome: Outcome) -> str:
    return spell_seconds(outcome.seconds) + outcome.mark


def page(lines: Sequence[Line], peers: Sequence[str], about: str) -> str:
    """Return the page as Markdown."""
    text = ["# NumPy programs", "", about, "", LEGEND, "", *_summary(lines, peers), ""]
    columns = ["program", "stepwell", "compile", *peers, *(f"/ {p}" for p in peers)]
    text += [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    text += [_row(line, peers) for line in lines]
    problems = [f"* {line.program}: {line.ours.problem}" for line in lines if not line.ours.counts]
    if problems:
        text += ["", "## Not right, or refused", "", *problems]
    failed = [
        f"* {line.program}, {peer}: {line.outcomes[peer].problem}"
        for line in lines
        for peer in peers
        if not line.outcomes[peer].counts
    ]
    if failed:
        text += ["", "## What others could not", "", *failed]
    return "\n".join(text) + "\n"


def _summary(lines: Sequence[Line], peers: Sequence[str]) -> Iterator[str]:
    """Say what the goals are about."""
    for peer in peers:
        ratios = [r for line in lines if (r := line.ratio(peer)) is not None]
        mean = f"{geometric_mean(ratios):.2f}" if ratios else "-"
        yield f"* Stepwell / {peer}: {mean} (geometric mean of {len(ratios)}; goal {GOALS[peer]})"
    right = [line for line in lines if line.ours.counts]
    wrong = [line.program for line in lines if not line.ours.correct]
    refused = [x.program for x in lines if not x.ours.counts and x.ours.correct]
    slow = [x.program for x in right if x.ours.compile > LONGEST_COMPILE]
    behind = [x.program for x in right if (x.ratio("numpy") or 0.0) > 1]
    yield f"* right: {len(right)} of {len(lines)}"
    for what, names in (
        ("wrong", wrong),
        ("refused or failed", refused),
        (f"above {LONGEST_COMPILE:g} s to compile", slow),
        ("slower than NumPy", behind),
    ):
        yield f"* {what}: {len(names)}{': ' + ', '.join(names) if names else ''}"


def _row(line: Line, peers: Sequence[str]) -> str:
    ours = line.ours
    state = "wrong" if not ours.correct else _time(ours) if ours.counts else "refused"
    cells = [line.program, state, f"{ours.compile:.2f} s" if ours.counts else ""]
    for peer in peers:
        outcome = line.outcomes[peer]
        way = f" ({outcome.way})" if outcome.way else ""
        cells.append(_time(outcome) + way if outcome.counts else "")
    for peer in peers:
        ratio = line.ratio(peer)
        cells.append("" if ratio is None else f"{ratio:.2f}")
    return f"| {' | '.join(cells)} |"


def say(what: str) -> None:
    """Tell how it goes."""
    print(what, file=sys.stderr, flush=True)


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--programs", default="*", metavar="PATTERNS", help="as in 'jacobi*,lu' (default all)")
    add("--peers", metavar="NAMES", help=f"of {', '.join(OTHERS)} (default: those installed)")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: every core")
    add("--rounds", type=int, default=5, help="batches of each library (default 5)")
    add("--batch", type=float, default=0.1, help="seconds of a batch (default 0.1)")
    add("--patience", type=float, default=120, help="seconds Stepwell has for a program")
    add("--tiny", action="store_true", help="inputs of a few elements, to see what is right")
    add("--least", action="store_true", help="the fastest call of each batch: on a busy machine")
    add("--page", help=f"where to write the page (default {PAGE} for all programs, else print)")
    add("--list", action="store_true", help="list the programs")
    return parser


def chosen(patterns: str) -> list[str]:
    """Return the programs that a list of patterns names."""
    wanted = patterns.split(",")
    return [name for name in NAMES if any(fnmatch(name, each) for each in wanted)]


def main() -> None:
    """Measure what is asked."""
    parser = arguments()
    options = parser.parse_args()
    if options.list:
        print(*(f"{name:24} {program(name).about}" for name in NAMES), sep="\n")
        return
    names = chosen(options.programs)
    if options.peers is None:
        peers = tuple(p for p in OTHERS if interpreter(p).exists())
    else:
        peers = tuple(p for p in options.peers.split(",") if p)
    if unknown := [p for p in peers if p not in OTHERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there is {', '.join(OTHERS)}")
    if not names:
        parser.error("no such program")
    state().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="stepwell-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bench = Bench(
        peers,
        options.threads,
        max(options.rounds, 1),
        options.batch,
        options.patience,
        options.tiny,
        options.least,
        folder,
    )
    with (state() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one benchmark at a time on this machine
        lines = bench.measure(names)
    versions = ", ".join(f"{k} {v}" for k, v in bench.versions.items())
    about = (
        f"`make bench-programs` measured these: {date.today()}, {processor()}, "
        f"{bench.threads} threads, Python {platform.python_version()}, "
        f"{find_compiler().version}, {versions}; {bench.rounds} rounds of {bench.batch:g} s."
        + (
            " Of each batch the fastest call counts: others used the machine."
            if bench.least
            else ""
        )
    )
    text = page(lines, peers, about)
    if options.page or (len(names) == len(NAMES) and not options.tiny):
        Path(options.page or PAGE).write_text(text)
        say(f"written: {options.page or PAGE}")
        say("\n".join(_summary(lines, peers)))
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
