"""Bytes that a program touches between two uses of the same memory by its launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType
from xdsl.ir import Operation, OpResult, SSAValue

from stepwell.analysis.constness import entries
from stepwell.analysis.cost.accesses import VIEWS, assumed, strides_of
from stepwell.analysis.structured import bits_of, constant_of, element
from stepwell.core.intervals import Intervals
from stepwell.dialects import kernel


@dataclass(frozen=True)
class Part:
    """A box of an argument of a call, of its arena, or of another array."""

    root: SSAValue
    begin: float
    bytes: float
    """Bytes that are touched."""
    reach: float
    """Bytes from the first to the last of them."""
    axes: tuple[tuple[int, float], ...]
    """Size of each axis, and bytes between neighbours along it, the longest steps first."""
    moves: bool = False
    """Whether it begins where only the run knows: elsewhere in each iteration of a loop."""

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends: boxes that do not overlap there have no byte in common."""
        return self.begin, self.begin + self.reach

    def common(self, other: Part) -> float:
        """Return which part of the bytes, from 0 to 1, is also in another box of the root.

        Boxes with different steps are taken to fill their reach.
        """
        since = other.begin - self.begin
        if [step for _, step in self.axes] == [step for _, step in other.axes]:
            sizes = [(n, m) for (n, _), (m, _) in zip(self.axes, other.axes, strict=True)]
            return _common(since, [step for _, step in self.axes], sizes)
        both = min(self.reach, since + other.reach) - max(since, 0.0)
        return max(both, 0.0) / self.reach if self.reach else 0.0


def _common(since: float, steps: Sequence[float], sizes: Sequence[tuple[int, int]]) -> float:
    """Return which part of a box is also in one that begins ``since`` bytes later.

    The distance is a number of steps along each axis, or one more and less than nothing along the
    others: elements in common differ in one of these ways.
    """
    if not steps:
        return float(since == 0)
    (size, other), found = sizes[0], 0.0
    least = int(since // steps[0]) if steps[0] else 0
    for count in (least, least + 1):
        both = min(size, count + other) - max(count, 0)
        if both > 0:
            inside = _common(since - count * steps[0], steps[1:], sizes[1:])
            found += inside * both / size
    return found


WITH_ANOTHER = -1.0


def reuse_distances(module: ModuleOp) -> Mapping[str, Mapping[int, float]]:
    """Return the bytes touched since the last use of each operand, by kernel and number.

    The last use may be in the previous call, which all launches separate from this one, or in the
    previous iteration of the loop around the launch, if the operand does not move with it. Of
    several launches of a kernel the greatest distance counts. An operand that overlaps another,
    longer one of the same launch is `WITH_ANOTHER`: windows of one array come from memory once.
    """
    found: dict[str, dict[int, float]] = {}
    for function in entries(module):
        for name, distances in _of_function(function):
            known = found.setdefault(name, {})
            for number, distance in enumerate(distances):
                known[number] = max(known.get(number, distance), distance)
    return found


def _of_function(function: func.FuncOp) -> Iterator[tuple[str, list[float]]]:
    launches = [op for op in function.walk() if isinstance(op, kernel.LaunchOp)]
    parts = [[_part(value) for value in op.operands] for op in launches]
    totals = [sum({part: part.bytes for part in each}.values()) for each in parts]
    before = [0.0]
    for total in totals:
        before.append(before[-1] + total)
    last_use = dict[Part, int]()
    used: dict[SSAValue, Intervals[Part]] = {}
    ends = {part.root: 0.0 for each in parts for part in each}
    for part in (part for each in parts for part in each):
        ends[part.root] = max(ends[part.root], part.begin + part.reach)
    all_bytes = sum(ends.values())
    in_loop: dict[Operation | None, float] = {}
    for op, total in zip(launches, totals, strict=True):
        in_loop[_loop_of(op)] = in_loop.get(_loop_of(op), 0.0) + total
    for number, (op, each) in enumerate(zip(launches, parts, strict=True)):
        distances: list[float] = []
        for k, part in enumerate(each):
            found = used.setdefault(part.root, Intervals()).overlapping(*part.ends)
            last = max((last_use[other] for other in found if part.common(other)), default=-1)
            since = before[number] - before[last] if last >= 0 else before[-1]
            if not part.moves:
                since = min(since, in_loop[_loop_of(op)])
            distances.append(WITH_ANOTHER if _is_beside(k, each) else min(since, all_bytes))
        for part in each:
            if part not in last_use:
                used[part.root].add(*part.ends, part)
            last_use[part] = number
        yield op.callee.string_value(), distances


def _loop_of(op: Operation) -> Operation | None:
    """Return the innermost loop around a launch."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp | scf.WhileOp):
        parent = parent.parent_op()
    return parent


def _is_beside(number: int, operands: Sequence[Part]) -> bool:
    """Whether half of an operand or more is in a longer one of a launch, or an equal later one."""
    part = operands[number]
    return any(
        other.root is part.root
        and (other.bytes, k) > (part.bytes, number)
        and 2 * part.common(other) >= 1
        for k, other in enumerate(operands)
    )


def _part(value: SSAValue) -> Part:
    """Return the part of an array that an operand of a launch is."""
    if not isinstance(value.type, ShapedType):
        return Part(value, 0.0, 0.0, 0.0, ())
    each, sizes = bits_of(element(value)) / 8, assumed(value)
    steps = [each * step for step in strides_of(value, sizes)]
    reach = each + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    axes = tuple(sorted(zip(sizes, steps, strict=True), key=lambda axis: -axis[1]))
    begin, bytes, moves = 0.0, each * prod(sizes), False
    while isinstance(value, OpResult):
        op = value.op
        if isinstance(op, memref.ViewOp):
            begin += float(constant_of(op.byte_shift) or 0)
            return Part(op.source, begin, bytes, reach, axes, moves)
        if isinstance(op, memref.SubviewOp):
            begin += each * _offset(op)
            moves |= DYNAMIC_INDEX in op.static_offsets.get_values()
        if isinstance(op, VIEWS):
            value = op.operands[0]
        elif isinstance(op, kernel.LaunchOp):
            value = op.outputs[value.index]
        else:
            break
    return Part(value, begin, bytes, reach, axes, moves)


def _offset(op: memref.SubviewOp) -> int:
    """Return the elements before a view of a part, as far as they are known."""
    steps = strides_of(op.source, assumed(op.source))
    known = zip(op.static_offsets.get_values(), steps, strict=True)
    return sum(n * step for n, step in known if n != DYNAMIC_INDEX)
