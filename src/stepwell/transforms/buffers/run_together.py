"""Run independent parts of a host function concurrently.

Before:  kernel.launch @k ins(%x) outs(%a)       After:  kernel.concurrent {
         kernel.launch @k ins(%y) outs(%b)                 kernel.launch @k ins(%x) outs(%a)
         kernel.launch @k ins(%a) outs(%c)                 kernel.launch @k ins(%a) outs(%c)
         kernel.launch @k ins(%b) outs(%d)               } and {
                                                           kernel.launch @k ins(%y) outs(%b)
                                                           kernel.launch @k ins(%b) outs(%d)
                                                         }

A large kernel is faster with all threads; chains of small ones, each of which ends in a barrier of
the threads, are faster side by side. The cost model decides; each launch computes the same either
way, so no result depends on the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from stepwell.analysis.cost import predict
from stepwell.analysis.levels import schedule_of
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule
from stepwell.dialects.types import dtype, fuse_locations
from stepwell.transforms.buffers.bands_in_parallel import bands_in_parallel
from stepwell.transforms.passes import Pass, remark

MIN_GAIN_NS = 2000
"""The least gain in nanoseconds; a tenth of the total time is required too."""
WINDOW = 64
"""The most consecutive launches that are considered as one group."""
MAX_BESIDE_BYTES = 1 << 20
"""The most bytes of memory that temporaries of concurrent branches may take in addition."""

LOOPED = (linalg.GenericOp, linalg.FillOp)
_PURE = (
    memref.AllocOp,
    memref.CastOp,
    memref.CollapseShapeOp,
    memref.DimOp,
    memref.ExpandShapeOp,
    memref.GetGlobalOp,
    memref.SubviewOp,
)
_VIEWS = (memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.SubviewOp)


@dataclass(frozen=True)
class RunTogether(Pass):
    """Group launches into branches of kernel.concurrent where that is expected to be faster.

    machine : the machine as NAME=VALUE with commas, or its name before them

    Before:  consecutive launches, some of which are independent
    After:   kernel.concurrent { ... } and { ... }

    Afterwards the order of dependent launches is unchanged.
    """

    name = "run-together"
    one_block = True
    expects_work = False

    machine: str = "threads=2,cores=2"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Group the launches of each host function."""
        machine = Machine().override(self.machine, self.name)
        if machine.threads < 2:
            return
        machine = replace(machine, cores=max(machine.cores, machine.threads))
        kernels = {k.sym_name.data: k for k in op.ops if isinstance(k, kernel.FuncOp)}
        times = _Times(machine)
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                bands_in_parallel(function.body.block, machine.threads)
                for block in _blocks(function.body.block):
                    for units in _runs(block, kernels):
                        _group(units, times)


@dataclass
class _Unit:
    """A launch: its kernel, and the buffers it accesses."""

    op: kernel.LaunchOp
    kernel: kernel.FuncOp
    reads: set[SSAValue]
    writes: set[SSAValue]
    room: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def waits_for(self, before: _Unit) -> bool:
        """Whether the launch must follow ``before``."""
        return not (self.reads.isdisjoint(before.writes) and self.writes.isdisjoint(before.reads))


@dataclass
class _Times:
    """The predicted nanoseconds of kernels on one thread, and on all; each is predicted once."""

    machine: Machine
    known: dict[kernel.FuncOp, tuple[float, float]] = field(
        default_factory=dict[kernel.FuncOp, tuple[float, float]]
    )

    def of(self, unit: _Unit) -> tuple[float, float]:
        """Return the times of a launch."""
        if unit.kernel not in self.known:
            self.known[unit.kernel] = _time(unit.kernel, self.machine)
        return self.known[unit.kernel]


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        if not isinstance(op, kernel.ConcurrentOp | scf.ParallelOp):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _runs(block: Block, kernels: Mapping[str, kernel.FuncOp]) -> list[list[_Unit]]:
    """Return the runs of launches with only views, sizes and numbers between them."""
    runs: list[list[_Unit]] = [[]]
    for op in block.ops:
        if isinstance(op, kernel.LaunchOp) and not op.results:
            ends = "kernel.checks" in op.attributes
            unit = None if ends else _unit(op, kernels)
            if unit is None:
                runs.append([])
            if unit is not None:
                runs[-1].append(unit)
        elif not isinstance(op, _PURE) and not _is_arithmetic(op):
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _is_arithmetic(op: Operation) -> bool:
    return op.name.startswith("arith.") and not op.regions


def _unit(op: kernel.LaunchOp, kernels: Mapping[str, kernel.FuncOp]) -> _Unit | None:
    function = kernels.get(op.callee.string_value())
    if function is None or not _is_predictable(function):
        return None
    roots = [(v, _root(v)) for v in op.operands if isinstance(v.type, MemRefType)]
    written = {_root(v) for v in op.outputs}
    unit = _Unit(op, function, {root for _, root in roots}, written)
    for _, root in roots:
        if isinstance(root.owner, memref.AllocOp):
            assert isinstance(root.type, MemRefType)
            unit.room[root] = prod(root.type.get_shape()) * dtype(root.type.element_type).bytes
    return unit


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value, OpResult) and isinstance(value.op, _VIEWS):
        value = value.op.operands[0]
    return value


def _is_predictable(function: kernel.FuncOp) -> bool:
    """Whether all sizes of a kernel are known, and it has no other loops than those of ops."""
    types = function.function_type.inputs.data
    return not any(
        isinstance(t, MemRefType) and DYNAMIC_INDEX in t.get_shape() for t in types
    ) and not any(op.regions and not isinstance(op, LOOPED) for op in function.body.block.ops)


def _time(function: kernel.FuncOp, machine: Machine) -> tuple[float, float]:
    """Return the predicted nanoseconds on one thread, and on all threads."""
    schedule = schedule_of(function) or Schedule()
    shared = predict(function, schedule, machine)
    one = shared if shared.threads == 1 else predict(function, schedule, _with_one(machine))
    return 1e9 * one.seconds, 1e9 * shared.seconds


@cache
def _with_one(machine: Machine) -> Machine:
    return replace(machine, threads=1)


@dataclass
class _Branches:
    """Consecutive launches in independent branches, as a union-find structure."""

    units: list[_Unit] = field(default_factory=list[_Unit])
    joined: list[int] = field(default_factory=list[int])
    """For each unit an earlier one of its branch, or itself if it is the branch's first."""
    times: dict[int, float] = field(default_factory=dict[int, float])
    """The time of each branch, keyed by its first unit."""
    readers: dict[SSAValue, list[int]] = field(default_factory=dict[SSAValue, list[int]])
    writer: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def first(self, unit: int) -> int:
        """Return the first unit of the branch of ``unit``."""
        while self.joined[unit] != unit:
            unit = self.joined[unit]
        return unit

    def add(self, unit: _Unit, time: float = 0.0) -> None:
        """Append a unit of this time on one thread, merging the branches that it depends on."""
        number = len(self.units)
        needed = {self.writer[root] for root in unit.reads if root in self.writer}
        needed.update(n for root in unit.writes for n in self.readers.get(root, ()))
        branches = sorted({self.first(n) for n in needed} | {number})
        self.units.append(unit)
        self.joined.append(number)
        for branch in branches:
            self.joined[branch] = branches[0]
        self.times[branches[0]] = time + sum(self.times.pop(b, 0.0) for b in branches)
        for root in unit.reads:
            self.readers.setdefault(root, []).append(number)
        for root in unit.writes:
            self.writer[root] = number

    def together(self, machine: Machine) -> float:
        """Return the total time with each branch on one thread."""
        busy = [0.0] * machine.threads
        for time in sorted(self.times.values(), reverse=True):
            busy[busy.index(min(busy))] += time
        return max(busy) + 2 * machine.launch

    def lists(self) -> list[list[_Unit]]:
        """Return the launches of each branch, in order."""
        found: dict[int, list[_Unit]] = {}
        for number, unit in enumerate(self.units):
            found.setdefault(self.first(number), []).append(unit)
        return list(found.values())


def _group(units: Sequence[_Unit], times: _Times) -> None:
    """Group the prefix of the units that gains most, then continue behind it."""
    first = 0
    while first < len(units) - 1:
        last, gain = first, 0.0
        window = units[first : _end(units, first)]
        chain = all(unit.waits_for(before) for before, unit in pairwise(window))
        if not chain and _gain_limit(window, times) > MIN_GAIN_NS:
            last, gain = _best(window, times)
            last += first
        if gain:
            _write(units[first : last + 1], gain)
        first = last + 1


def _end(units: Sequence[_Unit], first: int) -> int:
    """Return the end of the longest group from ``first`` whose temporaries may be concurrent."""
    room = dict[SSAValue, int]()
    for number in range(first, min(first + WINDOW, len(units))):
        room.update(units[number].room)
        if sum(room.values()) > MAX_BESIDE_BYTES:
            return number
    return min(first + WINDOW, len(units))


def _gain_limit(units: Sequence[_Unit], times: _Times) -> float:
    """Return the nanoseconds that cannot be exceeded by running the units concurrently."""
    found = map(times.of, units)
    threads = times.machine.threads
    return sum(alone - time / threads for time, alone in found) - times.machine.launch


def _best(units: Sequence[_Unit], times: _Times) -> tuple[int, float]:
    """Return the last unit of the best group that begins at the first, and its gain in ns."""
    branches, total = _Branches(), 0.0
    best = 0, 0.0
    for last, unit in enumerate(units):
        time, alone = times.of(unit)
        branches.add(unit, time)
        total += alone
        gain = total - branches.together(times.machine)
        if len(branches.times) > 1 and gain > max(MIN_GAIN_NS, total / 10, best[1]):
            best = last, gain
    return best


def _write(units: Sequence[_Unit], gain: float) -> None:
    """Move the launches into branches, at the position of the last launch."""
    found = _Branches()
    for unit in units:
        found.add(unit)
    branches, last = found.lists(), units[-1].op
    regions = [Region(Block()) for _ in branches]
    op = kernel.ConcurrentOp(regions)
    op.location = fuse_locations([unit.op.location for unit in units])
    block = last.parent_block()
    assert block is not None
    block.insert_op_after(op, last)
    for region, branch in zip(regions, branches, strict=True):
        for unit in branch:
            unit.op.detach()
            region.block.add_op(unit.op)
    remark(op, f"{len(branches)} branches run at the same time, about {gain / 1000:.0f} us faster")
