"""Measure Stepwell beside the peers that are installed, and write docs/benchmarks.md: `make bench`.

All processes stay alive. For each workload every peer compiles and is checked against float64
NumPy; then they are asked in turn for one batch after another, the others stopped, so that what
the machine does meanwhile hits all alike. A crash or a time-out costs one workload.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from limits import processor, spell_limits
from measuring import Batch, Outcome
from peers import OURS, PEERS, interpreter, model_file, state
from processes import Gone, Process
from report import Line, page, shown
from workloads import WORKLOADS, Workload, chosen

import stepwell as sw
from stepwell.core.machine import thread_count
from stepwell.runtime.limits import Limits, limits_library, measure_again
from stepwell.runtime.toolchain import find_compiler

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
FEWEST_ROUNDS = 5


@dataclass
class Bench:
    """What is asked of a run."""

    ours: tuple[str, ...]
    peers: tuple[str, ...]
    pythons: Mapping[str, str]
    rounds: int
    batch: float
    patience: float
    folder: Path
    records: Path
    versions: dict[str, str] = field(default_factory=dict[str, str])
    """Of the peers that were started."""

    def measure(self, threads: int, workloads: Sequence[Workload], limits: Limits) -> list[Line]:
        """Return a line for each workload."""
        variables = {"STEPWELL_BENCH_PACE": str(limits_library())}
        processes = [
            Process(peer, threads, self.folder, variables, self.pythons)
            for peer in (*self.ours, *self.peers)
        ]
        started = [p for p in processes if _starts(p)]
        self.versions |= {p.peer: p.version for p in started}
        lines: list[Line] = []
        try:
            for workload in workloads:
                outcomes = self._workload(started, workload)
                lines.append(Line(workload.name, outcomes, _least(workload, limits)))
                self._note(lines[-1], threads)
        finally:
            for process in started:
                process.stop()
        return lines

    def _workload(self, processes: Sequence[Process], workload: Workload) -> dict[str, Outcome]:
        """Return what every process did."""
        prepared = {p: self._ask(p, do="prepare", workload=workload.name) for p in processes}
        running = [p for p in processes if "compile" in prepared[p]]
        batches: dict[Process, list[Batch]] = {p: [] for p in running}
        for _ in range(self.rounds):
            for process in list(running):
                said = self._ask(process, do="batch", seconds=self.batch)
                if "seconds" in said:
                    batches[process].append(Batch(**said))
                else:
                    prepared[process] |= said
                    running.remove(process)
        for process in running:
            self._ask(process, do="forget")
        return {p.peer: outcome_of(p, prepared[p], batches.get(p, [])) for p in processes}

    def _ask(self, process: Process, **request: Any) -> dict[str, Any]:
        try:
            return process.ask(self.patience, **request)
        except Gone as error:
            return {"failed": str(error)}

    def _note(self, line: Line, threads: int) -> None:
        """Tell how it went, and keep every round for whoever wants to know more."""
        with self.records.open("a") as file:
            for outcome in line.outcomes.values():
                about = {
                    "workload": line.workload,
                    "when": time.strftime("%F %T"),
                    **asdict(outcome),
                }
                file.write(json.dumps(about) + "\n")
        said = (f"{name} {shown(outcome)}" for name, outcome in line.outcomes.items())
        say(f"{line.workload}, {threads}: {', '.join(said)}")


def outcome_of(process: Process, said: Mapping[str, Any], batches: Sequence[Batch]) -> Outcome:
    """Return what a process did: what it said at first, and its batches."""
    problem = next((f"{k}: {said[k]}" for k in ("unsupported", "failed") if k in said), "")
    return Outcome(
        process.peer,
        tuple(batches),
        process.threads,
        said.get("compile", 0.0),
        said.get("error", 0.0),
        said.get("correct", True),
        said.get("way", ""),
        problem,
    )


def _starts(process: Process) -> bool:
    """Start a peer; say why where it cannot be."""
    try:
        process.start()
    except Gone as error:
        say(f"{process.peer} is left out: {error}")
        return False
    return True


def _least(workload: Workload, limits: Limits) -> float:
    """Return the least time a workload takes on this machine; 0 where no limit tells."""
    if workload.small:
        return 0.0
    work = workload.reference(state() / "references")
    return limits.seconds(work.flops, work.bytes)


def write_models(peers: Sequence[str], workloads: Sequence[Workload], python: Path) -> None:
    """Write the ONNX files that are not there, one process each: one may fail."""
    if not {"onnxruntime", "openvino", "iree"} & set(peers):
        return
    if not python.exists():
        say("no environment onnxruntime, so no ONNX files: make bench-peers PEERS=onnxruntime")
        return
    for workload in workloads:
        if not model_file(workload).exists():
            command = [str(python), "-m", "peers.onnx_model", workload.name]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
            if done.returncode:
                say(f"no ONNX file for {workload.name}: {done.stderr.strip().splitlines()[-1]}")


@contextmanager
def alone() -> Generator[None]:
    """One benchmark at a time on this machine."""
    with (state() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(what: str) -> None:
    """Tell how it goes."""
    print(what, file=sys.stderr, flush=True)


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--workloads", default="*", metavar="PATTERNS", help="as in 'gemm*,mlp*' (default all)")
    add("--peers", metavar="NAMES", help="default: the usual ones that are installed; all; none")
    add("--vs", metavar="NAME", help="compare this peer with the others instead of Stepwell")
    add("--threads", default="1,2", help="default 1,2")
    add("--rounds", type=int, default=7, help=f"batches of each peer, at least {FEWEST_ROUNDS}")
    add("--batch", type=float, default=0.1, help="seconds of a batch (default 0.1)")
    add("--patience", type=float, default=150, help="seconds a peer has for a workload")
    add(
        "--peer-python",
        action="append",
        default=[],
        metavar="ENVIRONMENT=PATH",
        help="an interpreter that has a peer already, as in torch=/opt/torch/bin/python",
    )
    add("--page", help=f"where to write the page (default {PAGE} for all workloads, else print)")
    add("--list", action="store_true", help="list workloads and peers")
    return parser


def main() -> None:
    """Measure what is asked."""
    parser = arguments()
    options = parser.parse_args()
    pythons = dict(each.split("=", 1) for each in options.peer_python)
    there = [p for p in PEERS if interpreter(p, pythons).exists()]
    if options.list:
        _list(there)
        return
    peers = usual_peers(options.peers, there)
    ours = (options.vs,) if options.vs else OURS
    if unknown := [p for p in (*peers, *ours) if p not in PEERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there is {', '.join(PEERS)}")
    workloads = chosen(options.workloads)
    cores = len(os.sched_getaffinity(0))
    threads = sorted({int(t) for t in options.threads.split(",") if 0 < int(t) <= cores})
    if not workloads or not threads:
        parser.error("nothing to measure")
    if not peers:
        say("no peer is installed (make bench-peers does that): measuring Stepwell alone")
    state().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="stepwell-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    bench = Bench(
        ours,
        tuple(p for p in peers if p not in ours),
        pythons,
        max(options.rounds, FEWEST_ROUNDS),
        options.batch,
        options.patience,
        folder,
        state() / "records.jsonl",
    )
    with alone():
        write_models(peers, workloads, interpreter("onnxruntime", pythons))
        text = _run(bench, threads, workloads)
    if options.page or len(workloads) == len(WORKLOADS):
        Path(options.page or PAGE).write_text(text)
        say(f"written: {options.page or PAGE}")
    else:
        print(text, end="")


def _run(bench: Bench, threads: Sequence[int], workloads: Sequence[Workload]) -> str:
    """Measure and return the page."""
    limits = {t: measure_again(t) for t in threads}
    lines = {t: bench.measure(t, workloads, limits[t]) for t in threads}
    about = (
        f"`make bench` measured these: {date.today()}, {processor()}, {thread_count()} cores, "
        f"Stepwell {sw.__version__}, Python {platform.python_version()}, "
        f"{find_compiler().version}; {bench.rounds} rounds of {bench.batch:g} s."
    )
    versions = {k: v for k, v in bench.versions.items() if k not in OURS}
    return page(
        lines, bench.ours, about, [spell_limits(each) for each in limits.values()], versions
    )


def usual_peers(asked: str | None, there: Sequence[str]) -> tuple[str, ...]:
    """Return the peers to measure."""
    if asked is None:
        return tuple(p for p in there if PEERS[p].usual and p not in OURS)
    if asked in ("all", "none"):
        return tuple(p for p in there if p not in OURS) if asked == "all" else ()
    return tuple(asked.split(","))


def _list(there: Sequence[str]) -> None:
    print("workloads:", *WORKLOADS, sep="\n  ")
    print("peers:", *(p if p in there else f"{p} (not installed)" for p in PEERS), sep="\n  ")


if __name__ == "__main__":
    main()
