"""Measure steps of training beside the peers that are installed: `make bench-training`.

For each task every peer starts three times in an environment of its own: with an empty cache, with
the cache that it left, and once more to be measured. What some steps come to is compared with
PyTorch's in float64; then the processes are asked in turn for one batch of steps after another, the
others stopped. A batch begins from the first parameters.
"""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import alone, outcome_of, say, write_models
from limits import processor
from measuring import Batch, Outcome, best, geometric_mean, spell_seconds
from peers import interpreter, state
from processes import Gone, Process
from report import problems, shown
from training import Task
from training.tasks import TASKS, chosen
from workloads import WORKLOADS

from stepwell.runtime.toolchain import find_compiler

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "training.md"
OURS = "stepwell"
OTHERS = ("torch", "torch-compile", "jax", "onnxruntime")
SCRIPT = "training_worker.py"
GOAL = 0.8
"""What the geometric mean of our time to the best peer's is to be at most."""
EXAMPLES_GOAL = 0.7
"""What our time for the gradients of examples is to be at most, in parts of JAX's."""

LEGEND = f"""\
A step is forward, backward and update with the optimiser named; parameters, moments and statistics
are updated in place or donated. A time is the median of a step over the rounds; the peers were
asked in turn, round after round, each process stopped while another ran, and every batch began from
the same parameters. Results of three steps are compared with PyTorch in float64. *ratio* is ours
to the fastest peer: below 1 we are faster (goal: geometric mean {GOAL}, none above 1). *memory* is
by how much the process rises, the first step included, above what it has with modules imported, a
tiny network trained, and parameters, moments and batch there; the program comes from the cache.
*cold* is the first step in a new process with an empty cache, less what later steps take: tracing,
transforming, lowering and compiling; *warm* the same with the cache that it left. `~` means noisy,
`!` that other programs took the processors. `examples` is no step but the gradients of the loss of
each of 64 examples, `vmap` of `grad`; the mean is without it (goal {EXAMPLES_GOAL} of JAX).

PyTorch's optimisers are its fused ones; `torch-compile` compiles the loss, and an LSTM stays as it
is there (inductor makes a program that fails). ONNX Runtime has no gradients: its line is the step
of the perceptron written out by hand. OpenVINO has none either; `make bench` measures that
written-out step there (`mlp_train_b64`)."""


@dataclass
class Trained:
    """What a peer did with a task."""

    outcome: Outcome
    cold: float = 0.0
    warm: float = 0.0
    memory: float = 0.0


@dataclass
class Line:
    """A task, and what each peer did."""

    workload: str
    trained: dict[str, Trained]

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """Times and problems, as of any workload."""
        return {name: t.outcome for name, t in self.trained.items()}

    @property
    def peer(self) -> Outcome | None:
        """The fastest of the others."""
        return best(o for name, o in self.outcomes.items() if name != OURS)

    @property
    def ratio(self) -> float | None:
        """Our time to the best peer's."""
        ours, peer = self.outcomes.get(OURS), self.peer
        if ours is None or not ours.counts or peer is None:
            return None
        return ours.seconds / peer.seconds

    @property
    def least(self) -> str:
        """The peer that needs the least memory."""
        there = [n for n, t in self.trained.items() if n != OURS and t.outcome.counts]
        return min(there, key=lambda name: self.trained[name].memory, default="")


@dataclass
class Bench:
    """What is asked of a run."""

    peers: tuple[str, ...]
    rounds: int
    batch: float
    patience: float
    least: bool
    niceness: int
    folder: Path
    versions: dict[str, str] = field(default_factory=dict[str, str])

    def measure(self, threads: int, tasks: Sequence[Task]) -> list[Line]:
        """Return a line for each task."""
        self._references(tasks)
        lines: list[Line] = []
        for task in tasks:
            lines.append(Line(task.name, self._task(threads, task)))
            say(f"{task.name}, {threads}: {', '.join(_said(lines[-1]))}")
        return lines

    def _references(self, tasks: Sequence[Task]) -> None:
        missing = [t for t in tasks if not t.reference(state() / "references").exists()]
        if not missing or not interpreter("torch").exists():
            return
        process = self._process("torch", len(os.sched_getaffinity(0)), missing[0])
        for task in missing:
            said = self._ask(process, do="reference", task=task.name)
            if "failed" in said:
                say(f"no reference for {task.name}: {said['failed']}")
        process.stop()

    def _process(self, peer: str, threads: int, task: Task) -> Process:
        """Return a process with what earlier ones for the same task left in their caches."""
        folder = self.folder / f"{task.name}-{peer}-{threads}"
        variables = {"PYTHONDONTWRITEBYTECODE": ""}  # what users run has its bytecode
        return Process(peer, threads, folder, variables, script=SCRIPT)

    def _task(self, threads: int, task: Task) -> dict[str, Trained]:
        said: dict[str, dict[str, Any]] = {}
        processes: dict[str, Process] = {}
        for peer in self.peers:
            processes[peer] = process = self._process(peer, threads, task)
            said[peer] = self._prepared(process, task)
            self.versions[peer] = process.version
        running = [p for p in self.peers if "memory" in said[p]]
        batches: dict[str, list[Batch]] = {p: [] for p in running}
        for _ in range(self.rounds):
            for peer in list(running):
                answer = self._ask(processes[peer], do="batch", seconds=self.batch)
                if "seconds" in answer:
                    seconds = answer["least" if self.least else "seconds"]
                    batches[peer].append(Batch(**{**answer, "seconds": seconds}))
                else:
                    said[peer] |= answer
                    running.remove(peer)
        found: dict[str, Trained] = {}
        for peer, process in processes.items():
            process.stop()
            outcome = outcome_of(process, said[peer], batches.get(peer, []))
            if self.least and batches.get(peer):
                first = min(batches[peer], key=lambda b: b.seconds)
                outcome = replace(outcome, batches=(first,))
            figures = (said[peer].get(each, 0.0) for each in ("cold", "warm", "memory"))
            found[peer] = Trained(outcome, *figures)
        return found

    def _prepared(self, process: Process, task: Task) -> dict[str, Any]:
        """Return the figures of the first steps in new processes; leave one that is warm."""
        found: dict[str, Any] = {}
        for name in ("cold", "warm"):
            said = self._ask(process, do="start", task=task.name)
            process.stop()
            if "first" not in said:
                return said
            found[name] = said["first"]
        said = self._ask(process, do="memory", task=task.name)
        if "memory" not in said:
            return said
        return found | said | self._ask(process, do="check")

    def _ask(self, process: Process, **request: Any) -> dict[str, Any]:
        try:
            if self.niceness and not process.running:
                process.start()
                process.prefer(self.niceness)
            return process.ask(self.patience, **request)
        except Gone as error:
            return {"failed": str(error).partition(", see ")[0]}


def _said(line: Line) -> Iterator[str]:
    for name, trained in line.trained.items():
        yield f"{name} {shown(trained.outcome)}"
        if trained.outcome.counts:
            yield f"{trained.memory:.0f} MB, {trained.cold:.1f} s cold, {trained.warm:.2f} s warm"
        elif trained.outcome.problem:
            yield trained.outcome.problem[:150]


def page(lines: Mapping[int, Sequence[Line]], peers: Sequence[str], about: str) -> str:
    """Return the page as Markdown."""
    text = ["# Steps of training", "", about, "", LEGEND, ""]
    others = [p for p in peers if p != OURS]
    for threads, found in lines.items():
        text += [f"## {threads} thread{'s' if threads > 1 else ''}", "", *_comparison(found), ""]
        for title, cell in (
            ("time of a step", lambda t: spell_seconds(t.outcome.seconds) + t.outcome.mark),
            ("memory, MB", lambda t: f"{t.memory:.0f}"),
            ("cold, s", lambda t: f"{t.cold:.2f}"),
            ("warm, s", lambda t: f"{t.warm:.2f}"),
        ):
            text += [f"| {title} | {' | '.join(others)} |", f"|---|{'---:|' * len(others)}"]
            for line in found:
                there = (line.trained[p] for p in others)
                cells = (cell(t) if t.outcome.counts else shown(t.outcome) for t in there)
                text.append(f"| {line.workload} | {' | '.join(cells)} |")
            text.append("")
        text += problems(found)
    return "\n".join(text).rstrip() + "\n"


def _comparison(lines: Sequence[Line]) -> Iterator[str]:
    titles = "ours | best peer | its time | ratio | memory | least peer's | cold | warm"
    yield f"| step | optimiser | {titles} |"
    yield "|---|---|---:|---|---:|---:|---:|---:|---:|---:|"
    for line in lines:
        ours, peer, ratio = line.trained[OURS], line.peer, line.ratio
        cells = [line.workload, TASKS[line.workload].optimiser, shown(ours.outcome)]
        cells += [peer.peer, shown(peer)] if peer else ["", ""]
        cells.append("" if ratio is None else f"{ratio:.2f}")
        cells.append(f"{ours.memory:.0f} MB" if ours.outcome.counts else "")
        name = line.least
        cells.append(f"{line.trained[name].memory:.0f} MB ({name})" if name else "")
        cells += [f"{ours.cold:.2f} s", f"{ours.warm:.2f} s"] if ours.outcome.counts else ["", ""]
        yield f"| {' | '.join(cells)} |"
    ratios = [
        line.ratio
        for line in lines
        if line.ratio is not None and TASKS[line.workload].optimiser != "examples"
    ]
    if ratios:
        mean = f"{geometric_mean(ratios):.2f}"
        yield f"| geometric mean of {len(ratios)} | | | | | {mean} | | | | |"


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tasks", default="*", metavar="PATTERNS", help="as in 'mlp*,lstm*' (default all)")
    add("--peers", metavar="NAMES", help=f"of {', '.join(OTHERS)} (default: those installed)")
    add("--threads", default="1,2", help="default 1,2")
    add("--rounds", type=int, default=7, help="batches of each peer (default 7)")
    add("--batch", type=float, default=0.2, help="seconds of a batch (default 0.2)")
    add("--patience", type=float, default=200, help="seconds a peer has for an answer")
    add("--least", action="store_true", help="the fastest step of all: on a busy machine")
    add(
        "--nice",
        type=int,
        default=0,
        help="of all that is measured: below 0 on a busy machine, as root",
    )
    add("--page", help=f"where to write the page (default {PAGE} for all tasks, else print)")
    add("--list", action="store_true", help="list the tasks")
    return parser


def main() -> None:
    """Measure what is asked."""
    parser = arguments()
    options = parser.parse_args()
    if options.list:
        print(*TASKS, sep="\n")
        return
    if options.peers is None:
        peers = tuple(p for p in OTHERS if interpreter(p).exists())
    else:
        peers = tuple(p for p in options.peers.split(",") if p)
    if unknown := [p for p in peers if p not in OTHERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there is {', '.join(OTHERS)}")
    tasks = chosen(options.tasks)
    cores = len(os.sched_getaffinity(0))
    threads = sorted({int(t) for t in options.threads.split(",") if 0 < int(t) <= cores})
    if not tasks or not threads:
        parser.error("nothing to measure")
    state().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="stepwell-training-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bench = Bench(
        (OURS, *peers),
        max(options.rounds, 1),
        options.batch,
        options.patience,
        options.least,
        options.nice,
        folder,
    )
    with alone():
        write_models(peers, [WORKLOADS["mlp_train_b64"]], interpreter("onnxruntime"))
        lines = {t: bench.measure(t, tasks) for t in threads}
    versions = ", ".join(f"{k} {v}" for k, v in bench.versions.items())
    about = (
        f"`make bench-training` measured these: {date.today()}, {processor()}, {cores} cores, "
        f"Python {platform.python_version()}, {find_compiler().version}, {versions}; "
        f"{bench.rounds} rounds of {bench.batch:g} s."
        + (" The fastest step of all rounds counts: others used the machine." * bench.least)
        + (f" All ran with niceness {bench.niceness}." if bench.niceness else "")
    )
    text = page(lines, bench.peers, about)
    if options.page or len(tasks) == len(TASKS):
        Path(options.page or PAGE).write_text(text)
        say(f"written: {options.page or PAGE}")
    else:
        print(text, end="")


if __name__ == "__main__":
    sys.exit(main())
