"""Find better schedules by timing: kernel by kernel, each choice varied in turn.

Every kernel becomes a program of its own, run on random data. One choice is varied at a time
(register tile, blocks, vectors in flight, grain), the best kept, until none is better or the time
is up; what was found must then beat the cost model's choice once more, side by side with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Block, Region

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.locks import Lock, Tuned, machine_key
from stepwell.core.machine import Machine
from stepwell.core.shapes import DYNAMIC
from stepwell.core.signature import Tensor
from stepwell.dialects import kernel
from stepwell.lowering.emit import emit_c
from stepwell.lowering.schedule import Schedule as SchedulePass
from stepwell.lowering.schedule.locked import (
    is_untouched,
    kernel_key,
    operands_of,
    schedule_of,
    write_schedule,
)
from stepwell.lowering.schedule.variants import variants
from stepwell.modules import ModuleText
from stepwell.pipeline import Descent, Source
from stepwell.runtime.entry import numpy_dtype
from stepwell.runtime.program import load_program, write_program
from stepwell.runtime.toolchain import Compiler, find_compiler
from stepwell.transforms.constness import constants_of, entries
from stepwell.transforms.costs import kernel_costs

BUDGET = 60.0
"""Seconds a search takes at most where nobody says."""
SAMPLE = 0.02
"""Seconds of calls that a schedule is timed for."""
BETTER = 0.97
"""A schedule must take less than this part of the time to be worth a line in a file."""
ROUNDS = 7

Schedule = Mapping[str, Any]
Run = Callable[[], object]


@dataclass(frozen=True)
class Candidate:
    """A kernel to be tuned: as it is before any schedule, and what the cost model chose."""

    function: kernel.FuncOp
    key: str
    schedule: Schedule
    constant: tuple[bool, ...]
    """Which inputs are the same in every call."""
    weight: float
    """About how long all its launches take, in any unit."""


def tune(
    module: ModuleText,
    entry: str,
    machine: Machine,
    budget: float = BUDGET,
    say: Callable[[str], None] = lambda _: None,
) -> Lock:
    """Return better schedules for the kernels of a module, found in ``budget`` seconds."""
    if not budget > 0:
        help = "give the seconds a search may take"
        raise CompileError(Diagnostic("error", f"no schedule is found in {budget:g} s", help=help))
    source = Source(module.text, module.name, entry, machine)
    candidates = candidates_of(source)
    end = time.monotonic() + budget
    found: dict[str, Tuned] = {}
    for k, candidate in enumerate(candidates):
        rest = sum(c.weight for c in candidates[k:])
        share = (end - time.monotonic()) * candidate.weight / max(rest, 1e-9)
        with TemporaryDirectory(prefix="stepwell-tune-") as folder:
            search = Search(candidate, source, find_compiler(), Path(folder))
            tuned = search.run(time.monotonic() + share)
        name = candidate.function.sym_name.data
        if tuned is None:
            say(f"{name}: {search.tried} tried, none better")
            continue
        found[candidate.key] = tuned
        say(f"{name}: {tuned.before:.3g} s -> {tuned.seconds:.3g} s, {tuned.tried} tried")
    return Lock(machine_key(machine), found)


def candidates_of(source: Source) -> list[Candidate]:
    """Return the kernels that can be tuned, those with most to do first."""
    bare = Descent.of(source)
    bare.kernels_outlined()
    launches: dict[str, list[kernel.LaunchOp]] = {}
    for op in bare.module.walk():
        if isinstance(op, kernel.LaunchOp):
            launches.setdefault(op.callee.string_value(), []).append(op)
    constants = {v for f in entries(bare.module) for v in constants_of(f)}
    costs = kernel_costs(bare.module)
    found: dict[str, Candidate] = {}
    for function in bare.module.ops:
        if not isinstance(function, kernel.FuncOp) or not _is_tunable(function):
            continue
        name = function.sym_name.data
        uses = launches.get(name, [])
        cost = costs[name].known
        inputs, _ = operands_of(function)
        constant = tuple(
            bool(uses) and all(use.operands[k] in constants for use in uses)
            for k in range(len(inputs))
        )
        weight = len(uses) * ((cost.flops or 0) / 64 + (cost.bytes or 0) / 16)
        schedule = _as_chosen(function, constant, source.machine)
        found[name] = Candidate(function, kernel_key(function), schedule, constant, weight)
    return sorted(found.values(), key=lambda c: -c.weight)


def _as_chosen(function: kernel.FuncOp, constant: Sequence[bool], machine: Machine) -> Schedule:
    """Return what the cost model chooses for a kernel."""
    module = _alone(function, constant)
    options = {f.name: getattr(machine, f.name, None) for f in fields(SchedulePass)}
    known = {name: value for name, value in options.items() if value is not None}
    SchedulePass(**known).apply(Context(), module)
    return schedule_of(_kernel_of(module))


def _is_tunable(function: kernel.FuncOp) -> bool:
    """Whether a kernel can be run alone: all arrays of known size, nothing scheduled by hand."""
    types = [argument.type for argument in function.body.block.args]
    known = all(isinstance(t, TensorType) and DYNAMIC not in t.get_shape() for t in types)
    return known and is_untouched(function)


@dataclass
class Search:
    """The search for one kernel's schedule."""

    candidate: Candidate
    source: Source
    compiler: Compiler
    folder: Path
    tried: int = 0
    runs: dict[str, Run | None] = field(default_factory=dict[str, Run | None])

    def run(self, until: float) -> Tuned | None:
        """Return the best that is found before ``until``, or None where nothing is better."""
        first = self.candidate.schedule
        if not variants(first, self.source.machine) or (before := self._run(first)) is None:
            return None
        best, least = first, seconds_of(before)
        better = True
        while better and time.monotonic() < until:
            better = False
            for choices in variants(best, self.source.machine):
                for schedule in choices:
                    if time.monotonic() > until:
                        break
                    seconds = self._time(schedule)
                    if seconds < least * 0.99:
                        best, least, better = schedule, seconds, True
        if best is first or (after := self._run(best)) is None:
            return None
        old, new = _side_by_side(before, after)
        if new > old * BETTER:
            return None
        name = self.candidate.function.sym_name.data
        return Tuned(name, best, float(f"{new:.3g}"), float(f"{old:.3g}"), self.tried)

    def _time(self, schedule: Schedule) -> float:
        """Return the seconds of a launch; for ever where it cannot be compiled, or was tried."""
        if repr(schedule) in self.runs or (run := self._run(schedule)) is None:
            return float("inf")
        return seconds_of(run)

    def _run(self, schedule: Schedule) -> Run | None:
        """Return what runs the kernel once as scheduled; None where that is not possible."""
        key = repr(schedule)
        if key not in self.runs:
            self.tried += 1
            try:
                self.runs[key] = self.compiled(schedule)
            except CompileError:
                self.runs[key] = None
        return self.runs[key]

    def compiled(self, schedule: Schedule) -> Run:
        """Compile the kernel alone, so scheduled, and load it."""
        descent = Descent.alone(self.source, program_of(self.candidate, schedule))
        descent.after_scheduling()
        emitted = emit_c(descent.module, "main")
        folder = self.folder / str(self.tried)
        build = self.compiler.build_program
        signature = replace(emitted.signature, machine=self.source.machine.features)
        write_program(folder, emitted.source, emitted.header, signature, build)
        random = np.random.default_rng(0)
        resources = {f"w{k}": _array(random, c) for k, c in self._constants()}
        program = load_program(folder, resources)
        arguments = [_array(random, a) for a in signature.arguments]
        results = program.call(*arguments)
        return lambda: program.call(*arguments, out=results)

    def _constants(self) -> Iterator[tuple[int, Tensor]]:
        """Yield the number and type of each constant input."""
        inputs, _ = operands_of(self.candidate.function)
        for k, (value, constant) in enumerate(zip(inputs, self.candidate.constant, strict=True)):
            if constant:
                assert isinstance(value.type, TensorType)
                yield k, Tensor(f"w{k}", _dtype(value.type), value.type.get_shape())


def program_of(candidate: Candidate, schedule: Schedule) -> ModuleOp:
    """Return a module with the kernel, scheduled, and a function that launches it."""
    module = _alone(candidate.function, candidate.constant)
    write_schedule(_kernel_of(module), schedule)
    return module


def _alone(kernel_function: kernel.FuncOp, constant: Sequence[bool]) -> ModuleOp:
    """Return a module with a copy of a kernel and a function that launches it."""
    function = kernel_function.clone()
    inputs, outputs = operands_of(function)
    order = [k for k, c in enumerate(constant) if not c]
    order += [k for k, c in enumerate(constant) if c]
    block = Block(arg_types=[inputs[k].type for k in order])
    given = {k: argument for k, argument in zip(order, block.args, strict=True)}
    empty = [tensor.EmptyOp([], value.type) for value in outputs]  # pyright: ignore
    launch = kernel.LaunchOp(
        function.sym_name.data,
        [given[k] for k in range(len(inputs))],
        [each.results[0] for each in empty],
    )
    block.add_ops([*empty, launch, func.ReturnOp(*launch.results)])
    type = FunctionType.from_lists([a.type for a in block.args], [r.type for r in launch.results])
    main = func.FuncOp("main", type, Region(block))
    main.arg_attrs = _resources(order, constant)
    return ModuleOp([function, main])


def _kernel_of(module: ModuleOp) -> kernel.FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, kernel.FuncOp))
    return function


def _resources(order: Sequence[int], constant: Sequence[bool]) -> Any:
    named = [
        DictionaryAttr({"nd.resource": StringAttr(f"w{k}")} if constant[k] else {}) for k in order
    ]
    return ArrayAttr(named)


def _dtype(type: TensorType[Any]) -> str:
    return str(type.element_type)


def _array(random: np.random.Generator, spec: Tensor) -> NDArray[Any]:
    """Return random numbers near 1, or 0 and 1 where they are no floats."""
    dtype = numpy_dtype(spec.dtype)
    if dtype.kind == "f" or spec.dtype == "bf16":
        return random.uniform(0.5, 1.5, spec.shape).astype(dtype)
    return random.integers(0, 2, spec.shape).astype(dtype)


def seconds_of(run: Run) -> float:
    """Return the median time of a call."""
    run()
    times: list[float] = []
    end = time.perf_counter() + SAMPLE
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def _side_by_side(old: Run, new: Run) -> tuple[float, float]:
    """Return the times of two programs, measured in turn."""
    rounds = [(seconds_of(old), seconds_of(new)) for _ in range(ROUNDS)]
    return median(r[0] for r in rounds), median(r[1] for r in rounds)
