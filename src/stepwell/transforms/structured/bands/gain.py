"""The time that a chain saves where it runs in bands, from the caches and rates of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.structured import contracts, cost, element, extents, is_parallel, shape
from stepwell.core.machine import Machine
from stepwell.dialects.types import dtype
from stepwell.transforms.structured.bands.chain import Chain, Step
from stepwell.transforms.structured.bands.needed_parts import Tile, size_of

GUESS = 64
"""The assumed size of an axis that is known at run time only: bands of such rows are written twice,
so they must pay where there are few."""
ROWS_OF_BLOCK = 192
"""The rows that share one reading of the weights where a product runs alone."""
CALL = 50e-9
"""Seconds to call a kernel, with its views, inside of a band (measured on a Zen 4)."""
ROOM = 0.9
"""The share of the L2 cache that a band may take."""
KEPT = 4
"""Bands pay where intermediate results take more than a fourth of the last-level cache. Programs
share the cache, and reads from it cost no time beside products (measured: chains with smaller
intermediate results gain nothing)."""
EFFICIENCY = 0.6
"""The share of the multiply-adds of a machine that kernels reach on average."""
SHORT = 5.2
"""The rows at which a product takes twice its time for each row; 3 % more at 32 (measured)."""


FAR = 24
"""The number of ops, up to the last one of a chain, whose results count as passed on by it."""
BORDERS = 0.2
"""The time to fill the borders of an image in a band, as a share of that to copy the image."""
MARGIN = 0.03
"""The share of the time alone that bands must save at least: the model is not more exact."""


def passes_enough(chain: Chain, machine: Machine) -> bool:
    """Whether the ops of a chain pass on more than the last cache keeps."""
    return _Model(chain, machine).total > machine.l3 // KEPT


def gain(chain: Chain, machine: Machine) -> float | None:
    """Return the seconds of one thread that bands save; None where they do not fit the cache."""
    model = _Model(chain, machine)
    return model.saved() if model.fits() else None


def worth_a_look(ops: Sequence[Operation], machine: Machine) -> set[Operation]:
    """Return the ops at which chains may end that pass on more than the last cache keeps.

    ops : the ops of a block, in order
    """
    most, found = machine.l3 // KEPT, set[Operation]()
    computing = [op for op in ops if isinstance(op, linalg.GenericOp)]
    passed = [_passed_on(op) for op in computing]
    total = 0
    for n, op in enumerate(computing):
        total += passed[n]
        if n >= FAR:
            total -= passed[n - FAR]
        if total > most:
            found.add(op)
    return found


def _passed_on(op: linalg.GenericOp) -> int:
    """Return the bytes of the results of an op that other kernels read."""
    users = [(r, use.operation) for r in op.results for use in r.uses]
    read = {r for r, user in users if not isinstance(user, linalg.GenericOp) or _sums(user)}
    return sum(_bytes(r, {}) for r in read)


def _sums(op: linalg.GenericOp) -> bool:
    return not all(is_parallel(op))


@dataclass
class _Model:
    chain: Chain
    machine: Machine

    def __post_init__(self) -> None:
        sizes = shape(self.chain.last.results[0])
        self.trips = prod(-(-_known(sizes[k]) // n) for k, n in self.chain.band.items())
        self.kernels: dict[SSAValue, int] = {}
        """The number of the kernel that computes each value, in order."""
        self.passed: set[SSAValue] = set()
        """The values that kernels pass to others: an image within its padding."""
        for step in reversed(self.chain.steps):
            self._place(step)

    def _place(self, step: Step) -> None:
        """Number the kernel of an op; row-wise ops share one, as `outline-kernels` decides."""
        before = [(v, self.kernels[v]) for v, _ in step.reads if v in self.kernels]
        number = max((n for _, n in before), default=0)
        if step.slides:
            number = 2 * (number // 2) + 2
        elif step.reduces and step.padded is None and number % 2 == 0:
            number += 1  # the first of the row-wise ops behind a product
        self.kernels.update(dict.fromkeys(step.op.results, number))
        if step.padded is None:
            self.passed.update(v for v, n in before if n != number)

    @property
    def total(self) -> int:
        """The bytes of the values that kernels pass to others."""
        return sum(_bytes(v, {}) for v in self.passed)

    def fits(self) -> bool:
        """Whether the L2 cache holds the data of an op in a band, and those that all bands read."""
        threads = max(self.machine.threads, 1)
        most = ROOM * self.machine.l2 - min(self._kept(), self.machine.l2 // 2)
        return self.trips >= threads and all(n <= most for n in self._rooms())

    def _kept(self) -> int:
        """Return the bytes of operands from outside that do not vary with the rows."""
        found = {
            (value, _bytes(value, tile))
            for step in self.chain.steps
            for value, tile in step.reads
            if value not in self.chain.tiles or value in self.chain.outside
            if not self._follows(tile)
        }
        return sum(bytes for _, bytes in found)

    def _follows(self, tile: Tile) -> bool:
        """Whether a tile varies with the rows of a band."""
        return any(part.begin.root == len(self.chain.band) - 1 for part in tile.values())

    def _rooms(self) -> Iterable[int]:
        """Return the bytes that each kernel of a band reads and writes."""
        touched: dict[int, dict[SSAValue, int]] = {}
        tiles = self.chain.tiles
        for step in self.chain.steps:
            number = self.kernels[step.op.results[0]]
            room = touched.setdefault(number, {})
            for value, tile in step.reads:
                outside = value not in self.kernels and step.padded is None
                outside = outside and not isinstance(value.owner, linalg.FillOp | tensor.EmptyOp)
                if (outside or value in self.passed) and self._follows(tile):
                    room[value] = _bytes(value, tile)
            for value in step.op.results:
                if value in self.passed or step.op is self.chain.last:
                    room[value] = _bytes(value, tiles[value])
        return [sum(room.values()) for room in touched.values()]

    def saved(self) -> float:
        """Return the seconds that are saved."""
        far, near = self._rate(self.total), self.machine.l2_rate * 1e6
        threads = max(self.machine.threads, 1)
        idle = -(-self.trips // threads) * threads / self.trips
        before = after = 0.0
        for step in self.chain.steps:
            moved = sum(_bytes(v, {}) for v, _ in step.reads if v in self.passed)
            moved += sum(_bytes(r, {}) for r in step.op.results if r in self.passed)
            alone, banded = self._work(step)
            before += alone + moved / far
            after += banded + moved / near + self._read_again(step)
        launches = len(self.passed) * self.machine.launch * 1e-9 * threads
        after = after * idle + self.trips * len(self.chain.steps) * CALL
        return before + launches - after - MARGIN * before

    def _rate(self, bytes: int) -> float:
        """Return the bytes per second of one thread for intermediate results of that size."""
        machine, threads = self.machine, max(self.machine.threads, 1)
        if bytes <= machine.l3 // KEPT:
            return machine.l2_rate * 1e6
        return min(machine.memory_rate, machine.memory_rate_all / threads) * 1e6

    def _work(self, step: Step) -> tuple[float, float]:
        """Return the seconds for which an op computes, alone and in bands."""
        machine, op = self.machine, step.op
        if not isinstance(op, linalg.GenericOp):
            return 0.0, self._padding(*step.reads[0])
        sizes, parallel = [_known(n) for n in extents(op)], is_parallel(op)
        band = [step.loops[d].size if d in step.loops else n for d, n in enumerate(sizes)]
        lanes = (machine.vector_unit or machine.vector_bits) // (8 * _width(op.outputs[0]))
        sums = not all(parallel)
        ports = machine.fma_ports if sums else machine.vector_ports
        each = 1 if sums else max(cost(op.body.block), 1)
        rate = machine.clock * 1e6 * ports * max(lanes, 1) * EFFICIENCY
        rows = prod([n for n, runs in zip(band, parallel, strict=True) if runs][:-1])
        short = 1 + (SHORT / rows) ** 2 if contracts(op) else 1.0
        return prod(sizes) * each / rate, self.trips * prod(band) * each / rate * short

    def _padding(self, image: SSAValue, tile: Tile) -> float:
        """Return the seconds in which bands fill borders, and copy an image from outside."""
        bytes, near = self.trips * _bytes(image, tile), self.machine.l2_rate * 1e6
        if image in self.chain.tiles:
            return BORDERS * 2 * bytes / near
        return bytes / self._rate(self.total) + bytes / near

    def _read_again(self, step: Step) -> float:
        """Return the seconds for operands that each band reads, beyond those of an op in blocks."""
        if not isinstance(step.op, linalg.GenericOp):
            return 0.0
        parallel = is_parallel(step.op)
        sizes = [_known(n) for d, n in enumerate(extents(step.op)) if parallel[d]]
        often = max(self.trips - max(prod(sizes[:-1]) // ROWS_OF_BLOCK, 1), 0)
        whole = sum(_bytes(v, {}) for v, tile in step.reads if not tile)
        if whole <= self.machine.l1 // 2:
            return 0.0
        rate = self.machine.l2_rate if whole <= self.machine.l2 // 2 else self.machine.l3_rate
        return often * whole / (rate * 1e6)


def _known(size: int) -> int:
    return GUESS if size == DYNAMIC_INDEX else size


def _width(value: SSAValue) -> int:
    return dtype(element(value)).bytes


def _bytes(value: SSAValue, tile: Tile) -> int:
    if not isinstance(value.type, TensorType):
        return 0
    return prod(_known(n) for n in size_of(shape(value), tile)) * _width(value)
