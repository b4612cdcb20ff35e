"""Compare this checkout with another commit: `make bench-against BASE=origin/main`.

Each side is a process with a cache of its own, the same Python and the same workloads and programs:
those of this checkout. For each of them both sides compile, are checked, and are then asked in turn
for one batch after another, the side that begins changing from round to round, the other stopped. A
ratio is the median over the rounds of our time to that of the base, so that what the machine does
meanwhile hits both. Rows outside of the tolerance are measured again with three times as many
rounds before they count. Exits with 1 where a row is slower than that, or is not right any more.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from typing import Any

from measuring import Batch, geometric_mean, spell_seconds
from peers import state
from processes import Gone, Process
from programs import NAMES
from workloads import WORKLOADS

ROOT = Path(__file__).parents[1]
PATIENCE = 150.0
"""Seconds that a side has for a request."""
AGAIN = 3
"""Times as many rounds where a row is outside of the tolerance."""
WIDE = 38
"""Characters of the first column."""


@dataclass(frozen=True)
class Row:
    """What is measured: a workload of `make bench`, or a program of `make bench-programs`."""

    name: str
    peer: str
    script: str
    request: Mapping[str, Any]


@dataclass
class Pair:
    """A row on both sides, the base first."""

    row: Row
    batches: tuple[list[Batch], list[Batch]] = field(default_factory=lambda: ([], []))
    compile: tuple[float, float] = (0.0, 0.0)
    problem: str = ""
    """Why it is not right here; empty where it is."""
    skipped: str = ""
    """Why there is nothing to compare."""

    def ratio(self, least: bool) -> float:
        """Return our time to that of the base.

        least : compare the fastest calls of all rounds, not the median of the rounds
        """
        base, ours = self.batches
        if least:
            return min(b.least for b in ours) / min(b.least for b in base)
        return median(b.seconds / a.seconds for a, b in zip(base, ours, strict=True))

    def spelled(self, least: bool, within: float) -> str:
        """Return a line of the table."""
        if self.problem or self.skipped:
            return f"{self.row.name:{WIDE}} {self.problem or self.skipped}"
        base, ours = (spell_seconds(median(b.seconds for b in side)) for side in self.batches)
        ratio = self.ratio(least)
        mark = " slower" if ratio > 1 + within else " faster" if ratio < 1 - within else ""
        compiled = " ".join(f"{seconds:6.2f}" for seconds in self.compile)
        return f"{self.row.name:{WIDE}} {base:>10} {ours:>10} {ratio:7.3f} {compiled}{mark}"


@dataclass
class Against:
    """What is asked of a run."""

    sources: tuple[Path, Path]
    """Where the packages of both sides lie, the base first."""
    folder: Path
    rounds: int
    seconds: float
    within: float
    least: bool

    def measure(self, rows: Sequence[Row], threads: int) -> list[Pair]:
        """Measure all rows and print a line for each."""
        found: list[Pair] = []
        for peer, script in dict.fromkeys((row.peer, row.script) for row in rows):
            sides = self._sides(peer, script, threads)
            try:
                for row in rows:
                    if (row.peer, row.script) == (peer, script):
                        found.append(self._pair(sides, row))
                        print(found[-1].spelled(self.least, self.within), flush=True)
            finally:
                for side in sides:
                    side.stop()
        return found

    def _sides(self, peer: str, script: str, threads: int) -> tuple[Process, Process]:
        """Return the processes of both sides."""
        sides: list[Process] = []
        for name, source in zip(("base", "this"), self.sources, strict=True):
            folder = self.folder / name
            variables = {"PYTHONPATH": str(source), "STEPWELL_CACHE": str(folder / "cache")}
            sides.append(Process(peer, threads, folder, variables, script=script))
        return sides[0], sides[1]

    def _pair(self, sides: tuple[Process, Process], row: Row) -> Pair:
        """Measure a row."""
        pair = Pair(row)
        base, ours = (_prepared(side, row) for side in sides)
        pair.compile = base.get("compile", 0.0), ours.get("compile", 0.0)
        here, there = _problem(ours), _problem(base)
        if there:
            pair.skipped = f"on neither side: {here}" if here else f"only here; base: {there}"
        else:
            pair.problem = here
        if not pair.problem and not pair.skipped:
            self._rounds(sides, pair, self.rounds)
            if abs(pair.ratio(self.least) - 1) > self.within:
                self._rounds(sides, pair, AGAIN * self.rounds)
        for side in sides:
            _asked(side, do="forget")
        return pair

    def _rounds(self, sides: tuple[Process, Process], pair: Pair, count: int) -> None:
        """Ask both sides in turn."""
        for number in range(count):
            order = (0, 1) if number % 2 else (1, 0)
            answers = {k: _asked(sides[k], do="batch", seconds=self.seconds) for k in order}
            if problem := next((p for k in order if (p := _problem(answers[k], "seconds"))), ""):
                pair.problem = problem
                return
            for k in order:
                pair.batches[k].append(Batch(**answers[k]))


def _prepared(side: Process, row: Row) -> dict[str, Any]:
    return _asked(side, do="prepare", **row.request)


def _asked(side: Process, **request: Any) -> dict[str, Any]:
    try:
        return side.ask(PATIENCE, **request)
    except Gone as error:
        return {"failed": str(error)}


def _problem(answer: Mapping[str, Any], wanted: str = "compile") -> str:
    """Return why a side has no figure, "" where it has one."""
    if wanted in answer:
        return "" if answer.get("correct", True) else f"wrong: error {answer['error']:.3g}"
    reasons = [answer[k] for k in ("unsupported", "failed") if k in answer]
    return str((reasons or list(answer.get("problems", {}).values()) or ["no answer"])[0])


def rows_of(workloads: str, programs: str) -> list[Row]:
    """Return the rows that lists of patterns name."""
    rows: list[Row] = []
    for peer, suffix in (("stepwell", ""), ("stepwell-constants", ", constant weights")):
        rows += [
            Row(name + suffix, peer, "worker.py", {"workload": name})
            for name in WORKLOADS
            if _named(name, workloads)
        ]
    request = {"tiny": False}
    rows += [
        Row(name, "stepwell", "programs_worker.py", {"program": name, **request})
        for name in NAMES
        if _named(name, programs)
    ]
    return rows


def _named(name: str, patterns: str) -> bool:
    return any(fnmatch(name, each) for each in patterns.split(","))


def source_of(base: str) -> Path:
    """Return where the package of a checkout lies: of a folder, or of a commit of this repository.

    A commit is checked out once, below the folder of benchmarks.
    """
    if (Path(base) / "src" / "stepwell").is_dir():
        return (Path(base) / "src").absolute()
    commit = _git("rev-parse", "--verify", f"{base}^{{commit}}")
    folder = state() / "checkouts" / commit[:12]
    if not folder.exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(folder), commit)
    return folder / "src"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def summary(pairs: Sequence[Pair], least: bool, within: float) -> tuple[str, bool]:
    """Return what is to be said of all rows, and whether none is worse than it may be."""
    known = [p for p in pairs if not p.problem and not p.skipped]
    slower = [p for p in known if p.ratio(least) > 1 + within]
    faster = [p for p in known if p.ratio(least) < 1 - within]
    broken = [p for p in pairs if p.problem]
    mean = geometric_mean([p.ratio(least) for p in known])
    lines = [f"{mean:.3f} of the base's time: geometric mean of {len(known)}"]
    for what, some in (("slower", slower), ("faster", faster)):
        named = ", ".join(f"{p.row.name} {p.ratio(least):.3f}" for p in some)
        lines.append(f"{len(some)} {what} by more than {within:.0%}{': ' if some else ''}{named}")
    lines += [f"not right: {p.row.name}: {p.problem}" for p in broken]
    return "\n".join(lines), not slower and not broken


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("base", help="a commit of this repository, or the folder of another checkout")
    add("--workloads", default="*", metavar="PATTERNS", help="as in 'gemm*,mlp*' (default all)")
    add("--programs", default="", metavar="PATTERNS", help="as in 'jacobi*,lu' (default none)")
    add("--threads", default="1,2", help="default 1,2")
    add("--rounds", type=int, default=7, help="batches of each side (default 7)")
    add("--batch", type=float, default=0.1, help="seconds of a batch (default 0.1)")
    add("--within", type=float, default=0.03, help="what may differ (default 0.03)")
    add("--least", action="store_true", help="compare the fastest calls: on a busy machine")
    return parser


def main() -> int:
    """Measure what is asked; 1 where something is slower or not right."""
    parser = arguments()
    options = parser.parse_args()
    rows = rows_of(options.workloads, options.programs)
    if not rows:
        parser.error("no such workload or program")
    state().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="stepwell-against-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sources = source_of(options.base), ROOT / "src"
    rounds = max(options.rounds, 1)
    against = Against(sources, folder, rounds, options.batch, options.within, options.least)
    fine = True
    with (state() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one benchmark at a time on this machine
        for threads in map(int, options.threads.split(",")):
            head = f"threads: {threads}"
            print(f"{head:{WIDE}} {'base':>10} {'this':>10} {'ratio':>7} compiled (s)")
            said, right = summary(against.measure(rows, threads), options.least, options.within)
            print(said, flush=True)
            fine = fine and right
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
