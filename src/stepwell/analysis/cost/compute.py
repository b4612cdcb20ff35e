"""Cycles for which an op occupies the ports of a core, or waits for its own accumulators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product as combinations
from math import ceil, gcd, log2, prod
from operator import add

from stepwell.analysis.cost.accesses import Access
from stepwell.analysis.cost.nest import Nest, divided
from stepwell.analysis.cost.work import Count
from stepwell.analysis.levels.tails import MIN_LANES
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import MASK, PEEL

STRIDES = (-1, 2, 3, 4)
"""Strides between lanes that are loaded as whole vectors and shuffled; stores are never so."""
MAX_PREDICTED_ITERATIONS = 8
"""Iterations of a loop below which its end is mostly predicted: predictors remember at least this
many branches of a kind (Agner Fog's guide to microarchitectures)."""
ALLOCATED = 16
"""Bytes that an array of a caller begins at a multiple of: C's ``malloc`` aligns to so many."""
LOOP_INSTRUCTIONS = 2
"""Instructions of loop control in each iteration: one counts, one compares and branches."""


@dataclass(frozen=True)
class Ports:
    """Cycles that each kind of port is busy, and cycles of waiting."""

    multiply_adds: float = 0.0
    vectors: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    instructions: float = 0.0
    divisions: float = 0.0
    waiting: float = 0.0
    """Cycles in which a sum waits for its previous addition."""
    starts: float = 0.0
    """Cycles to begin and end innermost loops."""
    points: float = 0.0
    """Iterations of the innermost levels."""
    others: float = 0.0
    """Cycles in which other ports are busiest than in the rest: a tile at an edge may wait for its
    sums where whole tiles keep the ports of multiply-adds busy."""

    def __add__(self, other: Ports) -> Ports:
        """Return the sum of code that runs one after the other."""
        *found, _ = map(add, self.all(), other.all())
        apart = self.busy + other.busy - max(found[:-2])
        return Ports(*found, others=max(apart, 0.0))

    def all(self) -> tuple[float, ...]:
        """Return all the cycles, in the order of the fields, and the iterations."""
        return tuple(vars(self).values())

    def ports(self) -> tuple[float, ...]:
        """Return the cycles of each port, and of waiting."""
        return self.all()[:-3]

    @property
    def busy(self) -> float:
        """Cycles of the busiest ports, or of waiting, of code that runs one after the other."""
        return max(self.ports()) + self.others

    @property
    def cycles(self) -> float:
        """Cycles of the busiest ports, or of waiting; starts are added."""
        return self.busy + self.starts

    @property
    def busiest(self) -> str:
        """The name of the field with the most cycles."""
        names = [field.name.replace("_", "-") for field in fields(self)]
        return max(zip(self.all()[:-2], names[:-2], strict=True))[1]


@dataclass(frozen=True)
class Point:
    """The unrolled code of the innermost levels: some iterations of each loop."""

    many: float
    """How often it runs."""
    sizes: dict[int, float]
    vectors: dict[int, float]
    """The sizes, with the iterations of a vector counted as one."""
    lanes: float

    @property
    def instructions(self) -> float:
        """How often each instruction of the body is repeated."""
        return prod(self.vectors.values(), start=1.0)


def ports_of(nest: Nest, machine: Machine) -> Ports:
    """Return the port cycles of all iterations of an op, on one core."""
    return sum((_of_point(nest, point, machine) for point in _points(nest)), Ports())


def _points(nest: Nest) -> Iterator[Point]:
    """Yield the shapes of the innermost levels: whole ones, and the tails of loops."""
    loops = sorted(nest.units)
    outside = prod((n for k, n in enumerate(nest.whole) if k not in nest.units), start=1.0)
    for chosen in combinations(*(list(_fragments(nest, k)) for k in loops)):
        many = outside * prod((n for n, _, _ in chosen), start=1.0)
        sizes = {k: size for k, (_, size, _) in zip(loops, chosen, strict=True)}
        vectors = {k: many for k, (_, _, many) in zip(loops, chosen, strict=True)}
        yield Point(many, sizes, vectors, sizes.get(nest.axis, 1) / vectors.get(nest.axis, 1))


def _fragments(nest: Nest, loop: int) -> Iterator[tuple[float, float, float]]:
    """Yield fragments of a loop: how often each runs, its iterations, its instructions."""
    blocks: Mapping[int, int] = {nest.sizes[loop]: 1}
    steps = [s.level.step for s in nest.steps if s.loop == loop and not s.level.parts]
    for by in (*steps, nest.units[loop]):
        blocks = divided(blocks, by)
    for part, many in blocks.items():
        if loop != nest.axis or (part % nest.width == 0 and not nest.in_panels):
            yield many, part, part / (nest.width if loop == nest.axis else 1)
        elif nest.in_panels:  # a panel is filled with zeros
            yield many, part, ceil(nest.units[loop] / nest.width)
        elif nest.tail != PEEL or _is_tiled(nest):
            yield many, part, ceil(part / nest.width)  # the last vector overlaps, or has a mask
        else:
            yield from _peeled(nest, part, many)


def _is_tiled(nest: Nest) -> bool:
    """Whether a vector at the end of a tile overlaps the one before."""
    return nest.axis not in nest.sums and bool(nest.sums or len(nest.units) > 1)


def _peeled(nest: Nest, part: int, many: float) -> Iterator[tuple[float, float, float]]:
    """Yield whole vectors, and what is left: single iterations.

    What is left of a loop of one op takes narrower vectors first.
    """
    left, width = part, nest.width
    own = all(step.loop != nest.axis for step in nest.steps[: nest.shared])
    while left and (width == nest.width or (own and width >= MIN_LANES)):
        if whole := left // width:
            yield many, whole * width, whole
        left, width = left % width, width // 2
    if left:
        yield many * left, 1, 1


def _of_point(nest: Nest, point: Point, machine: Machine) -> Ports:
    body = nest.reading.body
    wide = point.lanes > 1
    passes = max(nest.width * nest.reading.bytes * 8 / machine.unit_bits, 1.0) if wide else 1.0
    times = point.many * point.instructions
    loads, stores, shuffles, moved = _traffic(nest, point, machine)
    if wide and nest.axis in nest.sums:  # lanes are combined once the sum is complete
        inside = prod((s.trips for s in nest.steps if s.loop in nest.sums), start=1.0)
        shuffles += 2 * log2(nest.width) * point.many / inside
    looked_up = body.lookups * times * (nest.width if wide else 1)
    inner = nest.steps[-1].trips if nest.steps else 1.0
    alu = body.products + body.others
    instructions = (alu + body.divisions) * times
    vectors = (alu * times * passes + shuffles) / machine.vector_ports
    issued = instructions + moved + shuffles + looked_up + LOOP_INSTRUCTIONS * point.many
    return Ports(
        multiply_adds=body.products * times * passes / machine.fma_ports,
        vectors=max(vectors, shuffles / machine.shuffle_ports),
        loads=(loads + looked_up) / machine.load_ports,
        stores=stores / machine.store_ports,
        instructions=issued / machine.issue,
        divisions=body.divisions * times * passes * machine.divide,
        waiting=_waiting(nest, body, point, machine),
        points=point.many,
        starts=point.many / inner * machine.mispredict * min(inner / MAX_PREDICTED_ITERATIONS, 1.0),
    )


def _waiting(nest: Nest, body: Count, point: Point, machine: Machine) -> float:
    """Return the cycles in which instructions wait for their operands.

    A core executes the instructions in its window out of order: the latency of one is hidden as
    long as others in the window can run.
    """
    each = max((body.products + body.others + body.divisions) * point.instructions, 1.0)
    latency = body.chain * machine.fma_latency
    waiting = point.many * each * latency / machine.window
    inner = nest.steps[-1] if nest.steps else None
    if inner is None or inner.loop not in nest.sums:
        return waiting
    in_turn = [v for k, v in point.vectors.items() if k in nest.sums and k != nest.axis]
    chain = nest.reading.carried * machine.fma_latency * prod(in_turn, start=1.0)
    visible = min(each * inner.trips / machine.window, 1.0)  # else the next sum has begun
    return max(waiting, point.many * chain * visible)


def _traffic(nest: Nest, point: Point, machine: Machine) -> tuple[float, float, float, float]:
    """Return the passes of loads, of stores and of shuffles, and the number of moves."""
    loads = stores = shuffles = moved = 0.0
    for access in nest.accesses:
        if access.anywhere:
            continue
        vectors = prod((v for k, v in point.vectors.items() if k in access.loops), start=1.0)
        vectors *= _times(nest, access, point)
        passes, shuffled = _passes(nest, access, point, machine)
        shuffles += vectors * shuffled
        if access.written:
            again = _in_pieces(nest, access, point)
            stores += vectors * passes + again
            shuffles += again
            moved += vectors + again
        if not access.written or _goes_on(nest, access):
            loads += vectors * passes
            moved += vectors
    return loads, stores, shuffles, moved


def _in_pieces(nest: Nest, access: Access, point: Point) -> float:
    """Return the stores beyond one for each vector: the lanes before a mask, by halves."""
    if nest.tail != MASK or nest.axis not in access.loops:
        return 0.0
    left = int(point.sizes.get(nest.axis, 0)) % nest.width
    return point.many * max(left.bit_count() - 1, 0)


def _times(nest: Nest, access: Access, point: Point) -> float:
    """Return how often a point's part of an access is moved; inner loops may leave it unchanged."""
    times = point.many
    for step in reversed(nest.steps):
        if step.loop in access.loops:
            break
        times /= step.trips
    return times


def _goes_on(nest: Nest, access: Access) -> bool:
    """Whether a result is loaded again because loops that it varies with split its sum."""
    sums = [number for number, step in enumerate(nest.steps) if step.loop in nest.sums]
    varies = [number for number, step in enumerate(nest.steps) if step.loop in access.loops]
    return bool(sums and varies) and sums[0] < varies[-1]


def _passes(nest: Nest, access: Access, point: Point, machine: Machine) -> tuple[float, float]:
    """Return the passes of one vector through a load port, and its shuffles."""
    if point.lanes <= 1:
        return 1.0, 0.0
    passes = max(nest.width * access.bytes * 8 / machine.unit_bits, 1.0)
    if nest.axis not in access.loops:
        return (1.0 if access.written else machine.broadcast / 100), 0.0
    stride = access.stride(nest.axis)
    moved = passes * (1 + crossing(nest, access, machine))
    if stride == 1:
        return moved, 0.0
    if _is_transposed(nest, access, point):
        return passes, log2(nest.width) * passes
    if stride in STRIDES and not access.written:
        return moved * abs(stride), (abs(stride) - 1) * passes
    return nest.width * machine.gather * machine.load_ports, 0.0


def crossing(nest: Nest, access: Access, machine: Machine) -> float:
    """Return the part of loads or stores that cross the end of a line: each takes two passes.

    They begin at multiples of what all strides of the other loops have in common, and the array at
    a multiple of what allocators align to.
    """
    unit, line = machine.unit_bits // 8, machine.l1_line
    if access.is_copy:  # scratch is aligned
        return 0.0
    unit = min(unit, nest.width * access.bytes)
    others = (access.stride(loop) * access.bytes for loop in access.loops if loop != nest.axis)
    array = ALLOCATED if access.unaligned else line
    first = sum(axis.begin * axis.stride for axis in access.axes) * access.bytes
    begins = range(0, line, gcd(array, unit, first, *others))
    return sum(begin + unit > line for begin in begins) / len(begins)


def _is_transposed(nest: Nest, access: Access, point: Point) -> bool:
    """Whether lanes are transposed through registers instead of gathered."""
    if any(access.stride(k) == 1 and n >= nest.width for k, n in point.sizes.items()):
        return True
    inner = nest.steps[-1] if nest.steps else None
    if inner is None or access.stride(inner.loop) != 1 or inner.trips < nest.width:
        return False
    written = [axis for a in nest.accesses if a.written for axis in a.axes]
    return not any(axis.width and inner.loop in axis.steps for axis in written)
