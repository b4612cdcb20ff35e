"""Find better schedules by timing: kernel by kernel, varying each choice in turn.

Every kernel becomes a program of its own, run on random data. One choice is varied at a time
(register tile, blocks, vectors in flight, grain) and the best kept, until none improves or the time
is up; the result must then beat the cost model's choice once more, timed alternately.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    ModuleOp,
    StringAttr,
    TensorType,
    i8,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.constness import constants_of, entries
from stepwell.analysis.costs import Cost, kernel_costs
from stepwell.analysis.launch_sizes import Launches
from stepwell.analysis.levels import KernelLevels, schedule_of, write_schedule
from stepwell.analysis.sizes import Sizes as FunctionSizes
from stepwell.analysis.sizes import static_shape
from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.host_schedule import in_call
from stepwell.core.locks import Lock, Tuned, machine_key
from stepwell.core.machine import Machine
from stepwell.core.shapes import DYNAMIC
from stepwell.core.source import Source
from stepwell.core.targets import Target, target_of
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule
from stepwell.dialects.kernel.versions import VERSIONS
from stepwell.driver.lowering import Lowering
from stepwell.driver.pipeline import STAGE_NAMES
from stepwell.runtime.device_arrays import put
from stepwell.runtime.entry import numpy_dtype
from stepwell.runtime.program import Program, load_program, write_program
from stepwell.runtime.timing import Timed
from stepwell.runtime.toolchain import find_compiler
from stepwell.transforms.kernels.kernel_signature import launches_of
from stepwell.transforms.kernels.schedule.locked import is_untouched, kernel_key, operands_of
from stepwell.transforms.kernels.schedule.on_machines import schedule_for
from stepwell.transforms.kernels.schedule.tails import other_tails, with_best_tails
from stepwell.transforms.kernels.schedule.variants import variants

LOG = logging.getLogger("stepwell")
BUDGET = 60.0
"""The default time limit of a search, in seconds."""
SAMPLE = 0.02
"""The seconds of calls over which a schedule is timed."""
BETTER = 0.97
"""The fraction of the original time that a schedule must beat to be written to a lock file."""
ROUNDS = 7
MIN_SECONDS = 0.3
"""Seconds to compile and measure one or two schedules: with less left, a kernel is not tuned."""
LONGEST = 1 << 28
"""The largest number computed by the host that is used as a size; larger ones are no sizes."""

Sizes: TypeAlias = tuple[int, ...]
Run = Callable[[], float]
"""Runs a program once, and returns its time in seconds."""


@dataclass(frozen=True)
class Candidate:
    """A kernel to tune: before any schedule, with the cost model's choice."""

    function: kernel.FuncOp
    key: str
    schedule: Schedule
    constant: tuple[bool, ...]
    """Whether each input is the same in every call."""
    sizes: tuple[tuple[Sizes, ...], ...] | None
    """The arguments to time it on, for each run: an array's shape, or a number that the host
    computes. None if unknown."""

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.function.sym_name.data

    weight: float
    """The estimated time of all its launches, in any unit."""
    versions: Attribute | None = None
    """Its versions for dynamic sizes, which are not tuned."""


def _check_host(target: Target, device: str) -> None:
    """Raise `CompileError` if there is no working compiler or device: nothing could be timed."""
    if target.native:
        find_compiler()
    target.device_named(device)


def tune(
    source: Source,
    budget: float = BUDGET,
    size: int | Sequence[int] | None = None,
    say: Callable[[str], None] = lambda _: None,
    target: str = "c",
    device: str = "",
) -> Lock:
    """Return better schedules for the kernels of a module, found in ``budget`` seconds.

    size : the value of each `?` of the arguments during timing; with several numbers each is used
        in turn, and the geometric mean of the times counts
    say : is called with the result for each kernel
    target, device : the target and device to time on; ``source`` has the machine of it
    """
    if not budget > 0:
        help = "give the seconds a search may take"
        raise CompileError(Diagnostic("error", f"no schedule is found in {budget:g} s", help=help))
    _check_host(target_of(target), device)
    tried = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    found = candidates_of(source, tried)
    candidates = [each for each in found if each.sizes is not None]
    if len(candidates) < len(found):
        _tell_unsized([each.name for each in found if each.sizes is None], tried)
    end = time.monotonic() + budget
    better: dict[str, Tuned] = {}
    left: list[str] = []
    for k, candidate in enumerate(candidates):
        rest = sum(c.weight for c in candidates[k:])
        share = (end - time.monotonic()) * candidate.weight / max(rest, 1e-9)
        if share < MIN_SECONDS:
            left.append(candidate.name)
            continue
        with TemporaryDirectory(prefix="stepwell-tune-") as folder:
            search = Search(candidate, source, Path(folder), target_of(target), device)
            tuned = search.run(time.monotonic() + share)
        if tuned is None:
            say(f"{candidate.name}: {search.tried} tried, none better")
            continue
        better[candidate.key] = tuned
        say(f"{candidate.name}: {tuned.before:.3g} s -> {tuned.seconds:.3g} s, {tuned.tried} tried")
    if left:
        say(f"not worth their part of {budget:g} s: {', '.join(left)}")
    return Lock(machine_key(source.machine), better)


def _tell_unsized(names: Sequence[str], tried: Sequence[int]) -> None:
    """Report which kernels are not tuned, and why."""
    known = "only a call tells their sizes" if not tried else "their sizes are not told by `?`"
    help = "stepwell compile --tune --size N tunes them for `?` of N" if not tried else ""
    said = f"not tuned, for {known}: {', '.join(names)}"
    if not report(Diagnostic("warning", said, help=help)):
        LOG.warning("%s", said)


def candidates_of(source: Source, tried: Sequence[int] = ()) -> list[Candidate]:
    """Return the kernels without a schedule of the user's, those with the most work first.

    tried : the values of each `?` of the arguments, one number after the other
    """
    bare = Lowering.of(source)
    if bare.first > STAGE_NAMES.index("kernels"):
        message = "schedules are chosen before buffers, and the module has no tensors any more"
        raise CompileError(Diagnostic("error", message, help="tune the module of tensors"))
    bare.kernels_outlined()
    launches = launches_of(bare.module)
    constants = {v for f in entries(bare.module) for v in constants_of(f)}
    costs = kernel_costs(bare.module)
    placed = Launches(bare.module)
    dims = [[size] * _dynamic(bare.module, source.entry) for size in tried] or [None]
    found: dict[str, Candidate] = {}
    for function in bare.module.ops:
        if not isinstance(function, kernel.FuncOp) or not is_untouched(function):
            continue
        name = function.sym_name.data
        uses = launches.get(name, [])
        known = costs[name].known if dims[0] is None else costs[name].at(dims[0])
        cost = max([known, *(costs[name].at(d) for d in dims[1:] if d)], key=_predicted_time)
        inputs, _ = operands_of(function)
        constant = tuple(
            bool(uses) and all(use.operands[k] in constants for use in uses)
            for k in range(len(inputs))
        )
        weight = len(uses) * _predicted_time(cost)
        chosen = _as_chosen(function, constant, source.machine)
        schedule, versions = schedule_of(chosen), chosen.attributes.get(VERSIONS)
        key = kernel_key(function)
        each = [_sizes(function, placed, d) for d in dims]
        sizes = None if None in each else tuple(one for one in each if one is not None)
        found[name] = Candidate(
            function, key, schedule or Schedule(), constant, sizes, weight, versions
        )
    return sorted(found.values(), key=lambda c: -c.weight)


def _predicted_time(cost: Cost) -> float:
    """Return the estimated time of a launch, in any unit."""
    return (cost.flops or 0) / 64 + (cost.bytes or 0) / 16


def _dynamic(module: ModuleOp, entry: str) -> int:
    """Return the number of `?` in the arguments of the entry."""
    (function,) = (f for f in entries(module) if f.sym_name.data == entry)
    return len(FunctionSizes(function.args).dims)


def _sizes(
    function: kernel.FuncOp, placed: Launches, dims: Sequence[int] | None
) -> tuple[Sizes, ...] | None:
    """Return the shape or number of each argument of a kernel; None where one is unknown.

    dims : the value of each `?` of the program's arguments, where known
    """
    inner = FunctionSizes(function.body.block.args)
    found: list[Sizes] = []
    for argument in function.body.block.args:
        is_array = isinstance(argument.type, TensorType)
        if not is_array and not isinstance(argument.type, IndexType):
            return None
        wanted = inner.shape(argument) if is_array else (inner.of(argument),)
        shape: list[int] = []
        for each in wanted:
            tree = placed.tree(function, each, inner)
            if dims is None and not isinstance(tree, int):
                return None
            n = in_call(tree, dims or ())
            if n is None or not 0 <= n <= LONGEST:
                return None
            shape.append(n)
        found.append(tuple(shape))
    return tuple(found)


def _as_chosen(
    function: kernel.FuncOp, constant: Sequence[bool], machine: Machine
) -> kernel.FuncOp:
    """Return a kernel with the cost model's schedule."""
    module = _own_module(function, constant)
    schedule_for(machine).apply(Context(), module)
    return _kernel_of(module)


@dataclass
class Search:
    """The search for one kernel's schedule."""

    candidate: Candidate
    source: Source
    folder: Path
    target: Target = field(default_factory=lambda: target_of("c"))
    device: str = ""
    tried: int = 0
    runs: dict[str, Run | None] = field(default_factory=dict[str, Run | None])

    def run(self, until: float) -> Tuned | None:
        """Return the best schedule found before ``until``, None if none is better."""
        first = self.candidate.schedule
        if not self._near(first) or (before := self._run(first)) is None:
            return None
        best, least = first, seconds_of(before)
        better = True
        while better and time.monotonic() < until:
            better = False
            for choices in self._near(best):
                for schedule in choices:
                    if time.monotonic() > until:
                        break
                    seconds = self._time(schedule)
                    if seconds < least * 0.99:
                        best, least, better = schedule, seconds, True
        if best is first or (after := self._run(best)) is None:
            return None
        rounds = _timed_alternately(before, after)
        old, new = (median(times) for times in zip(*rounds, strict=True))
        if new > old * BETTER or sum(b < a for a, b in rounds) < ROUNDS - 1:
            return None  # a measurement on a busy machine may look better than it is
        name = self.candidate.name
        return Tuned(name, str(best), float(f"{new:.3g}"), float(f"{old:.3g}"), self.tried)

    def _near(self, schedule: Schedule) -> list[list[Schedule]]:
        """Return, for each choice of a schedule, those that differ in it."""
        function = self.candidate.function
        levels = KernelLevels(function, schedule)
        found = [
            [with_best_tails(KernelLevels(function, each)) for each in choices]
            for choices in variants(levels, self.source.machine)
        ]
        tails = other_tails(levels)
        return [*found, tails] if tails else found

    def _time(self, schedule: Schedule) -> float:
        """Return the seconds of a launch; infinity if it does not compile or was timed before."""
        if str(schedule) in self.runs or (run := self._run(schedule)) is None:
            return float("inf")
        return seconds_of(run)

    def _run(self, schedule: Schedule) -> Run | None:
        """Return a function that runs the scheduled kernel once; None if it does not compile."""
        key = str(schedule)
        if key not in self.runs:
            self.tried += 1
            try:
                self.runs[key] = self.compiled(schedule)
            except (CompileError, VerifyException):
                self.runs[key] = None
        return self.runs[key]

    def compiled(self, schedule: Schedule) -> Launched:
        """Compile the kernel alone with this schedule, and load it."""
        lowering = Lowering.of_lower_floor(self.source, program_of(self.candidate, schedule))
        lowering.after_scheduling()
        emitted = self.target.emitted(lowering.module, "main")
        folder = self.folder / str(self.tried)
        build = find_compiler().build_program if self.target.native else None
        signature = replace(emitted.signature, machine=self.source.machine.features)
        write_program(folder, emitted.source, emitted.header, signature, build)
        random = np.random.default_rng(0)
        resources = _weights(random, self.candidate)
        program = load_program(folder, resources, device=self.device)
        return Launched(
            program,
            [
                [
                    _array(random, argument.dtype, shape)
                    for argument, shape in zip(signature.arguments, shapes, strict=True)
                ]
                for shapes in _shapes(self.candidate)
            ],
        )


@dataclass
class Launched:
    """A program and arguments: a call runs it once on each, and returns the mean time.

    On a device the time is that of the kernels alone, by the device's clock.
    """

    program: Program
    arguments: Sequence[Sequence[Any]]
    results: Sequence[Any] = ()
    timed: Timed | None = None

    def __post_init__(self) -> None:
        self.results = [self.program.call(*each) for each in self.arguments]
        if self.program.device is not None:
            self.timed = self.program.target.timed_program(self.program, False)
            device = self.program.device
            self.arguments = [[put(array, device) for array in each] for each in self.arguments]

    def __call__(self) -> float:
        """Run it once on each; return the geometric mean of the seconds."""
        numbers = range(len(self.arguments))
        return exp(sum(log(max(self._seconds(n), 1e-9)) for n in numbers) / len(numbers))

    def _seconds(self, number: int) -> float:
        arguments = self.arguments[number]
        if self.timed is not None:
            return self.timed.run(arguments).busy
        start = time.perf_counter()
        self.program.call(*arguments, out=self.results[number])
        return time.perf_counter() - start


def program_of(candidate: Candidate, schedule: Schedule) -> ModuleOp:
    """Return a module with the scheduled kernel, and a function that launches it."""
    module = _own_module(candidate.function, candidate.constant)
    function = _kernel_of(module)
    write_schedule(function, schedule)
    if candidate.versions is not None:
        function.attributes[VERSIONS] = candidate.versions
    return module


def _own_module(kernel_function: kernel.FuncOp, constant: Sequence[bool]) -> ModuleOp:
    """Return a module with a copy of a kernel and a function that launches it.

    Its arguments are the kernel's arrays, then, for each number the kernel takes and each `?` of
    its results, an array of bytes with that length, then the kernel's constants.
    """
    function = kernel_function.clone()
    inputs, outputs = operands_of(function)
    arrays = [k for k, c in enumerate(constant) if not c and _is_array(inputs[k])]
    numbers = [k for k, _ in enumerate(inputs) if not _is_array(inputs[k])]
    weights = [k for k, c in enumerate(constant) if c]
    lengths = [TensorType(i8, [DYNAMIC])] * (len(numbers) + _unknown(outputs))
    types = [inputs[k].type for k in arrays], lengths, [inputs[k].type for k in weights]
    block = Block(arg_types=[type for each in types for type in each])
    first = len(arrays)
    zero = arith.ConstantOp.from_int_and_width(0, IndexType())
    sizes = [tensor.DimOp(a, zero) for a in block.args[first : first + len(lengths)]]
    block.add_ops([zero, *sizes] if sizes else [])
    given: dict[int, SSAValue] = dict(zip(arrays, block.args, strict=False))
    given |= dict(zip(weights, block.args[first + len(lengths) :], strict=True))
    given |= {k: size.result for k, size in zip(numbers, sizes, strict=False)}
    rest = iter(size.result for size in sizes[len(numbers) :])
    empty = [
        tensor.EmptyOp([next(rest) for _ in range(_unknown([value]))], value.type)  # pyright: ignore
        for value in outputs
    ]
    launch = kernel.LaunchOp(
        function.sym_name.data,
        [given[k] for k in range(len(inputs))],
        [each.results[0] for each in empty],
    )
    block.add_ops([*empty, launch, func.ReturnOp(*launch.results)])
    type = FunctionType.from_lists([a.type for a in block.args], [r.type for r in launch.results])
    main = func.FuncOp("main", type, Region(block))
    plain = [DictionaryAttr({})] * (first + len(lengths))
    named = [DictionaryAttr({"nd.resource": StringAttr(f"w{k}")}) for k in weights]
    main.arg_attrs = ArrayAttr([*plain, *named])
    return ModuleOp([function, main])


def _weights(random: np.random.Generator, candidate: Candidate) -> dict[str, NDArray[Any]]:
    """Return random values for the inputs that are the same in every call."""
    inputs, _ = operands_of(candidate.function)
    found: dict[str, NDArray[Any]] = {}
    for k, (value, constant) in enumerate(zip(inputs, candidate.constant, strict=True)):
        if constant:
            found[f"w{k}"] = _array(random, _dtype(value.type), static_shape(value.type))
    return found


def _shapes(candidate: Candidate) -> list[list[Sizes]]:
    """Return the shapes of the arguments, without weights, of a kernel's own module.

    There is one list for each run.
    """
    return [_shapes_of(candidate, sizes) for sizes in candidate.sizes or ()]


def _shapes_of(candidate: Candidate, sizes: Sequence[Sizes]) -> list[Sizes]:
    inputs, outputs = operands_of(candidate.function)
    constant = candidate.constant
    arrays = [sizes[k] for k, c in enumerate(constant) if not c and _is_array(inputs[k])]
    numbers = [sizes[k] for k, value in enumerate(inputs) if not _is_array(value)]
    results = [
        (size,)
        for value, shape in zip(outputs, sizes[len(inputs) :], strict=True)
        for size, n in zip(shape, static_shape(value.type), strict=True)
        if n == DYNAMIC
    ]
    return [*arrays, *numbers, *results]


def _is_array(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def _unknown(values: Sequence[SSAValue]) -> int:
    """Return the total number of `?` in the shapes of some arrays."""
    return sum(static_shape(value.type).count(DYNAMIC) for value in values)


def _kernel_of(module: ModuleOp) -> kernel.FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, kernel.FuncOp))
    return function


def _dtype(type: Attribute) -> str:
    assert isinstance(type, TensorType)
    return str(type.element_type)


def _array(random: np.random.Generator, kind: str, shape: Sizes) -> NDArray[Any]:
    """Return random numbers near 1, for other types than floats 0 and 1."""
    dtype = numpy_dtype(kind)
    if dtype.kind == "f" or kind == "bf16":
        return random.uniform(0.5, 1.5, shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def seconds_of(run: Run) -> float:
    """Return the median time of a call."""
    run()
    times: list[float] = []
    end = time.perf_counter() + SAMPLE
    while len(times) < 3 or time.perf_counter() < end:
        times.append(run())
    return median(times)


def _timed_alternately(old: Run, new: Run) -> list[tuple[float, float]]:
    """Return the times of two programs, measured alternately."""
    return [(seconds_of(old), seconds_of(new)) for _ in range(ROUNDS)]
