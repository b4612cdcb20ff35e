"""Serve one library for steps of training: `python training_worker.py PEER THREADS ANSWERS`.

As `worker.py`, with requests: start (the first step in this process), memory, check (some steps
against the reference), reference (make that), and a batch of steps from the start.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from ops import Unsupported
from peers import PEERS, state
from timing import batch, pacemaker, resident_memory
from training import CHECKED, Library, Task
from training.tasks import TASKS, WARM_UP

STEPS = 3
"""How many steps the peak of memory is looked for in."""


@dataclass
class Worker:
    """A library and the step that is being measured."""

    module: Any
    library: Library
    pace: Callable[[], float]
    task: Task | None = None

    def start(self) -> dict[str, Any]:
        """Return the seconds that the first step takes more than later ones, and its loss."""
        assert self.task is not None
        self.library.prepare(self.task)
        step = self.library.restart()
        begin = time.perf_counter()
        loss = float(step())
        first = time.perf_counter() - begin
        later = min(_seconds(step) for _ in range(2))
        return {"first": first - later, "step": later, "loss": loss}

    def memory(self) -> dict[str, Any]:
        """Return by how much memory rises in steps, above imports and data.

        A tiny network is trained first: modules that are imported when they are first needed, and
        threads, are there then. What a step keeps counts, the first step's program included.
        """
        assert self.task is not None
        with suppress(Unsupported):
            self.library.prepare(WARM_UP)
            step = self.library.restart()
            for _ in range(STEPS):
                step()
        self.library.prepare(self.task)
        step = self.library.restart()
        _tidy()
        before = resident_memory()
        Path("/proc/self/clear_refs").write_text("5")
        for _ in range(STEPS):
            step()
        return {"memory": resident_memory(peak=True) - before, "before": before}

    def check(self) -> dict[str, Any]:
        """Return how far some steps lead from where they ought to."""
        assert self.task is not None
        path = self.task.reference(state() / "references")
        if not path.exists():
            return {"error": 0.0, "correct": True, "unchecked": True}
        step = self.library.restart()
        for _ in range(CHECKED):
            step()
        with np.load(path) as right:
            error = self.task.error(self.library.arrays(), right)
        return {"error": error, "correct": error < self.task.tolerance}

    def reference(self) -> dict[str, Any]:
        """Write down where some steps in float64 lead."""
        assert self.task is not None
        path = self.task.reference(state() / "references")
        if not path.exists():
            library = self.module.Main(self.library.threads, "double")
            library.prepare(self.task)
            step = library.restart()
            for _ in range(CHECKED):
                step()
            path.parent.mkdir(parents=True, exist_ok=True)
            partly = path.with_suffix(".part.npz")
            np.savez(partly, **library.arrays())
            partly.rename(path)
        return {}

    def batch(self, seconds: float) -> dict[str, Any]:
        """Return what a batch of steps from the start takes."""
        step = self.library.restart()
        gc.collect()
        gc.disable()
        try:
            return batch(step, seconds, self.pace)
        finally:
            gc.enable()

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked."""
        if "task" in request:
            self.task = TASKS[request["task"]]
        match request["do"]:
            case "batch":
                return self.batch(request["seconds"])
            case "start" | "memory" | "check" | "reference" as what:
                return getattr(self, what)()
            case _:
                raise ValueError(request["do"])


def _seconds(step: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def _tidy() -> None:
    """Give back what is free, so that the next rise shows."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def main(peer: str, threads: int, answers: int) -> None:
    """Answer until standard input ends."""
    out = os.fdopen(answers, "w")

    def say(answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=out, flush=True)

    warnings.simplefilter("ignore")
    entry = PEERS[peer]
    module = import_module(entry.module.replace("peers.", "training."))
    library: Library = module.Main(threads, entry.variant)
    worker = Worker(module, library, pacemaker(os.environ.get("STEPWELL_BENCH_PACE", "")))
    say({"version": library.version})
    for line in sys.stdin:
        try:
            said = worker.answer(json.loads(line))
        except Unsupported as error:
            said = {"unsupported": str(error)}
        except Exception as error:
            traceback.print_exc()
            text = str(error).strip().replace("\n", " ")
            said = {"failed": f"{type(error).__name__}: {text}"[:300]}
        say(said)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
