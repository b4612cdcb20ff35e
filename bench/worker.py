"""Serve one peer: `python worker.py PEER THREADS ANSWERS`, run by the peer's own interpreter.

Reads requests, one JSON object a line, from standard input and answers each with a line on the
file descriptor ANSWERS; whatever a library prints goes where standard output goes. Requests:
prepare a workload, run a batch of what was prepared, forget it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ops import Unsupported
from peers import PEERS, Call, Peer, state
from timing import batch, pacemaker, quick, resident_memory
from workloads import WORKLOADS, Reference, Workload


@dataclass
class Worker:
    """A peer and the call that is being measured."""

    peer: Peer
    pace: Callable[[], float]
    call: Call | None = None

    def prepare(self, workload: Workload) -> dict[str, Any]:
        """Compile a workload, call it for the first time and compare the result."""
        right = workload.reference(state() / "references")
        data = self.peer.load(workload, *workload.data())
        start = time.perf_counter()
        calls = dict(self.peer.compile(workload, data))
        name, call = next(iter(calls.items()))
        result = call()
        seconds = time.perf_counter() - start
        errors = {name: right.error(self.peer.arrays(result))}
        for other in list(calls)[1:]:
            errors[other] = self._other(calls, other, right)
        name = _best(calls, errors, workload.tolerance)
        self.call = calls[name]
        return {
            "compile": seconds,
            "error": errors[name],
            "correct": errors[name] < workload.tolerance,
            "way": name,
            "memory": resident_memory(peak=True),
        }

    def _other(self, calls: Mapping[str, Call], name: str, right: Reference) -> float:
        """Return the error of a second way; where it fails, the first will do."""
        try:
            return right.error(self.peer.arrays(calls[name]()))
        except Exception:
            traceback.print_exc()
            return float("inf")

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked."""
        match request["do"]:
            case "prepare":
                return self.prepare(WORKLOADS[request["workload"]])
            case "batch":
                assert self.call is not None
                gc.collect()
                gc.disable()
                try:
                    return batch(self.call, request["seconds"], self.pace)
                finally:
                    gc.enable()
            case _:
                self.call = None
                gc.collect()
                return {}


def _best(calls: Mapping[str, Call], errors: Mapping[str, float], tolerance: float) -> str:
    """Return the fastest of the ways whose result is right."""
    good = [name for name in calls if errors[name] < tolerance] or list(calls)[:1]
    return good[0] if len(good) == 1 else min(good, key=lambda name: quick(calls[name]))


def main(peer: str, threads: int, answers: int) -> None:
    """Answer until standard input ends."""
    out = os.fdopen(answers, "w")

    def say(answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=out, flush=True)

    entry = PEERS[peer]
    served: Peer = import_module(entry.module).Main(threads, entry.variant)
    worker = Worker(served, pacemaker(os.environ.get("STEPWELL_BENCH_PACE", "")))
    say({"version": served.version})
    for line in sys.stdin:
        try:
            said = worker.answer(json.loads(line))
        except Unsupported as error:
            said = {"unsupported": str(error)}
        except (NotImplementedError, AttributeError) as error:  # it lacks an operation
            said = {"unsupported": f"{type(error).__name__}: {error}"[:300]}
        except Exception as error:
            traceback.print_exc()
            said = {"failed": f"{type(error).__name__}: {error}"[:300]}
        say(said)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
