"""Serve one library for the programs: `python programs_worker.py PEER THREADS ANSWERS`.

As `worker.py`, with requests: prepare a program (compile every form of it, compare what comes out
with NumPy's), run a batch of its fastest form, forget it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from programs import Expected, Program, flat, fresh, outcome, program
from timing import batch, pacemaker, quick

Form = Callable[..., Any]


class Numpy:
    """The program itself."""

    strict = True

    def __init__(self, threads: int) -> None:
        self.version = np.__version__

    def forms(self, program: Program, arguments: Sequence[Any]) -> Mapping[str, Form]:
        """Return ways to run it: functions of its arguments."""
        return {"": program.function}

    def values(self, arguments: Sequence[Any], expected: Expected, result: Any) -> tuple[Any, ...]:
        """Return what a call came to."""
        return outcome(arguments, expected, result)

    def load(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments as the library keeps them, to be written to."""
        return fresh(arguments)


class Stepwell(Numpy):
    """The program under `sw.jit`."""

    def __init__(self, threads: int) -> None:
        self.stepwell = import_module("stepwell")
        self.version = self.stepwell.__version__

    def forms(self, program: Program, arguments: Sequence[Any]) -> Mapping[str, Form]:
        return {"": self.stepwell.jit(program.function, static_argnames=program.static)}


class Numba(Numpy):
    """The program under `njit`, and its loops alone and in parallel."""

    strict = False

    def __init__(self, threads: int) -> None:
        self.numba = import_module("numba")
        self.version = self.numba.__version__
        self.numba.set_num_threads(threads)

    def forms(self, program: Program, arguments: Sequence[Any]) -> Mapping[str, Form]:
        njit = self.numba.njit
        found = {
            "njit": njit(cache=True)(program.function),
            "parallel njit": njit(cache=True, parallel=True)(program.function),
        }
        if program.loops is not program.function:
            found["loops"] = njit(cache=True)(program.loops)
            found["prange"] = njit(cache=True, parallel=True)(program.loops)
        return found


class Jax(Numpy):
    """The program as a user of JAX writes it."""

    strict = False

    def __init__(self, threads: int) -> None:
        self.jax = import_module("jax")
        self.version = self.jax.__version__

    def forms(self, program: Program, arguments: Sequence[Any]) -> Mapping[str, Form]:
        if program.port is None:
            return {}
        static = [i for i, a in enumerate(arguments) if type(a) in (int, bool)]
        jitted = self.jax.jit(program.port, static_argnums=static)
        return {"": lambda *a: self.jax.block_until_ready(jitted(*a))}

    def values(self, arguments: Sequence[Any], expected: Expected, result: Any) -> tuple[Any, ...]:
        return flat(result)

    def load(self, arguments: Sequence[Any]) -> list[Any]:
        return [self.jax.device_put(a) if isinstance(a, np.ndarray) else a for a in arguments]


LIBRARIES: Mapping[str, type[Numpy]] = {
    "stepwell": Stepwell,
    "numpy": Numpy,
    "numba": Numba,
    "jax": Jax,
}


@dataclass
class Worker:
    """A library and the form that is being measured."""

    library: Numpy
    pace: Callable[[], float]
    call: Callable[[], Any] | None = None
    restore: Callable[[], Any] | None = None

    def prepare(self, name: str, tiny: bool, form: str | None = None) -> dict[str, Any]:
        """Compile every form, or the one named, and keep the fastest of those that are right."""
        self.call = None
        asked = program(name)
        expected = asked.expected(tiny)
        arguments = asked.inputs(tiny)
        said: dict[str, Any] = {"problems": {}}
        best = float("inf")
        for way, function in self.library.forms(asked, arguments).items():
            if form is not None and way != form:
                continue
            try:
                seconds, problem = self._first(asked, function, arguments, expected)
            except Exception as error:
                traceback.print_exc()
                text = str(error).strip().replace("\n", " ")
                said["problems"][way] = f"{type(error).__name__}: {text}"[:400]
                continue
            if problem:
                said["problems"][way] = f"wrong: {problem}"
                continue
            call, restore = self._kept(function, arguments, expected)
            if (took := quick(call, restore)) < best:
                best = took
                self.call, self.restore = call, restore
                said |= {"way": way, "compile": seconds}
        if self.call is None and not said["problems"]:
            said["problems"][""] = "not written"
        return said

    def _first(
        self, asked: Program, form: Form, arguments: Sequence[Any], expected: Expected
    ) -> tuple[float, str]:
        """Return how long the first call took, and what is wrong with what came out."""
        given = self.library.load(arguments)
        start = time.perf_counter()
        result = form(*given)
        seconds = time.perf_counter() - start
        values = self.library.values(given, expected, result)
        if problem := asked.mistake(values, expected, self.library.strict):
            return seconds, problem
        given = self.library.load(arguments)
        values = self.library.values(given, expected, form(*given))
        problem = asked.mistake(values, expected, self.library.strict)
        return seconds, problem and f"in the second call, {problem}"

    def _kept(
        self, form: Form, arguments: Sequence[Any], expected: Expected
    ) -> tuple[Callable[[], Any], Callable[[], Any] | None]:
        """Return a call, and what brings back the arguments that it changes."""
        given = self.library.load(arguments)
        changed = [(given[i], arguments[i]) for i in expected.changed]
        if not changed or not isinstance(changed[0][0], np.ndarray):
            return lambda: form(*given), None

        def restore() -> None:
            for array, before in changed:
                array[...] = before

        return lambda: form(*given), restore

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked."""
        if request["do"] == "prepare":
            return self.prepare(request["program"], request["tiny"], request.get("form"))
        if request["do"] == "batch":
            assert self.call is not None
            gc.collect()
            gc.disable()
            try:
                return batch(self.call, request["seconds"], self.pace, self.restore)
            finally:
                gc.enable()
        self.call = self.restore = None
        gc.collect()
        return {}


def main(peer: str, threads: int, answers: int) -> None:
    """Answer until standard input ends."""
    out = os.fdopen(answers, "w")

    def say(answer: Mapping[str, Any]) -> None:
        print(json.dumps(answer), file=out, flush=True)

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    library = LIBRARIES[peer](threads)
    worker = Worker(library, pacemaker(os.environ.get("STEPWELL_BENCH_PACE", "")))
    say({"version": library.version})
    for line in sys.stdin:
        try:
            said = worker.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            said = {"failed": f"{type(error).__name__}: {error}"[:300]}
        say(said)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
