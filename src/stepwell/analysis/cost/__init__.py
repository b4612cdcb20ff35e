"""Predict the seconds of a kernel under a schedule on a machine: one model.

Each term is a module: `compute` counts the cycles of each port of a core, `memory` the bytes read
from each cache level, and `packing`, `parallel` and `launch` count what their names say. All of
them read the loops, accesses and levels of a kernel from `nest`, and only properties of a
`Machine`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from stepwell.analysis.cost import launch, loops, memory, packing, parallel, rows
from stepwell.analysis.cost.accesses import Shapes, assumed
from stepwell.analysis.cost.compute import ports_of
from stepwell.analysis.cost.matrix_unit import on_unit
from stepwell.analysis.cost.nest import nests_of, readings_of
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule


@dataclass(frozen=True)
class Breakdown:
    """Seconds of one launch."""

    compute: float
    """Seconds of the ports of a core, of the busiest thread."""
    levels: tuple[tuple[str, float], ...]
    """Seconds of each level of memory beyond the L1 cache."""
    storing: float
    """Those of scattered stores beyond the L2 cache, which nothing hides."""
    packing: float
    launch: float
    threads: int
    busiest: str
    """The name of the busiest port."""

    @property
    def memory(self) -> float:
        """Seconds of transfers from beyond the L1 cache."""
        return sum(seconds for _, seconds in self.levels)

    @property
    def seconds(self) -> float:
        """The total seconds."""
        overlapped = memory.overlapped(self.compute, self.memory - self.storing)
        return overlapped + self.storing + self.packing + self.launch

    @property
    def bound(self) -> str:
        """The name of the largest term."""
        return max(self.parts(), key=lambda part: part[1])[0]

    def parts(self) -> Iterator[tuple[str, float]]:
        """Yield the terms by name."""
        yield self.busiest, self.compute
        yield from self.levels
        yield "packing", self.packing
        yield "launch", self.launch


NOT_IDLE: Mapping[int, float] = {}


class Predictor:
    """Predicts schedules of one kernel: its ops are read once.

    shapes : returns the shape of an array; a size that is known at run time only is `ASSUMED`
    idle : the bytes touched between two uses of an argument, by its number
    unaligned : the arguments that may begin within a cache line, by number
    """

    def __init__(
        self,
        function: kernel.FuncOp,
        machine: Machine,
        shapes: Shapes = assumed,
        idle: Mapping[int, float] = NOT_IDLE,
        unaligned: Collection[int] = (),
    ) -> None:
        self.machine, self.idle = machine, idle
        self.levels = machine.levels()
        self.readings = readings_of(function, machine.fma, shapes, unaligned)
        self.written_out = loops.ports_of(function, machine)

    def predict(self, schedule: Schedule) -> Breakdown:
        """Return the seconds of one launch under a schedule."""
        machine, nests = self.machine, nests_of(self.readings, schedule)
        clock = machine.clock * 1e6
        ports = [on_unit(nest, ports_of(nest, machine), machine) for nest in nests]
        whole = sum((*ports, rows.waits(nests, ports, machine)), self.written_out)
        cycles = sum(each.cycles for each in ports) + self.written_out.cycles
        cycles = max(cycles, whole.cycles)
        shares = parallel.shares_of(nests, machine)
        part = shares.longest * min((nest.computed for nest in nests), default=1.0)
        found = memory.sources(nests, machine, self.levels, self.idle, shares.threads)
        packed = sum(
            packing.cycles_of(nest, each, found, machine)
            for nest, each in zip(nests, ports, strict=True)
            if nest.packs
        )
        return Breakdown(
            cycles * part / clock,
            tuple((each.name, each.cycles(machine) * part / clock) for each in found),
            sum(each.storing(machine) for each in found[1:]) * part / clock,
            packed * part / clock,
            launch.seconds(shares.threads, machine),
            shares.threads,
            whole.busiest,
        )


def predict(
    function: kernel.FuncOp,
    schedule: Schedule,
    machine: Machine,
    shapes: Shapes = assumed,
    idle: Mapping[int, float] = NOT_IDLE,
    unaligned: Collection[int] = (),
) -> Breakdown:
    """Return the seconds of one launch of a kernel of tensors or buffers."""
    return Predictor(function, machine, shapes, idle, unaligned).predict(schedule)
