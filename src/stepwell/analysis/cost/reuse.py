"""Bytes that a program touches between two uses of the same memory by its launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, ShapedType
from xdsl.ir import OpResult, SSAValue

from stepwell.analysis.constness import entries
from stepwell.analysis.cost.accesses import VIEWS, assumed, strides_of
from stepwell.analysis.structured import bits_of, constant_of, element
from stepwell.dialects import kernel


@dataclass(frozen=True)
class Part:
    """A contiguous part of an argument of a call, of its arena, or of another array."""

    root: SSAValue
    begin: float
    bytes: float
    """Bytes that are touched."""
    reach: float
    """Bytes from the first to the last of them."""

    def overlaps(self, other: Part) -> bool:
        """Whether two parts of one root may have bytes in common."""
        return self.begin < other.begin + other.reach and other.begin < self.begin + self.reach


def reuse_distances(module: ModuleOp) -> Mapping[str, Mapping[int, float]]:
    """Return the bytes touched since the last use of each operand, by kernel and number.

    The last use may be in the previous call, which all launches separate from this one. Of several
    launches of a kernel the greatest distance counts.
    """
    found: dict[str, dict[int, float]] = {}
    for function in entries(module):
        for name, distances in _of_function(function):
            known = found.setdefault(name, {})
            for number, distance in enumerate(distances):
                known[number] = max(known.get(number, 0.0), distance)
    return found


def _of_function(function: func.FuncOp) -> Iterator[tuple[str, list[float]]]:
    launches = [op for op in function.walk() if isinstance(op, kernel.LaunchOp)]
    parts = [[_part(value) for value in op.operands] for op in launches]
    totals = [sum({part: part.bytes for part in each}.values()) for each in parts]
    before = [0.0]
    for total in totals:
        before.append(before[-1] + total)
    uses: dict[SSAValue, list[tuple[int, Part]]] = {}
    for number, each in enumerate(parts):
        for part in each:
            uses.setdefault(part.root, []).append((number, part))
    ends = {part.root: 0.0 for each in parts for part in each}
    for part in (part for each in parts for part in each):
        ends[part.root] = max(ends[part.root], part.begin + part.reach)
    all_bytes = sum(ends.values())
    for number, (op, each) in enumerate(zip(launches, parts, strict=True)):
        distances: list[float] = []
        for part in each:
            last = max(
                (n for n, use in uses[part.root] if n < number and use.overlaps(part)), default=-1
            )
            since = before[number] - before[last] if last >= 0 else before[-1]
            distances.append(min(since, all_bytes))
        yield op.callee.string_value(), distances


def _part(value: SSAValue) -> Part:
    """Return the part of an array that an operand of a launch is."""
    if not isinstance(value.type, ShapedType):
        return Part(value, 0.0, 0.0, 0.0)
    each, sizes = bits_of(element(value)) / 8, assumed(value)
    steps = zip(sizes, strides_of(value, sizes), strict=True)
    reach = each * (1 + sum((n - 1) * step for n, step in steps))
    begin, bytes = 0.0, each * prod(sizes)
    while isinstance(value, OpResult):
        op = value.op
        if isinstance(op, memref.ViewOp):
            return Part(op.source, begin + float(constant_of(op.byte_shift) or 0), bytes, reach)
        if isinstance(op, memref.SubviewOp):
            begin += each * _offset(op)
        if isinstance(op, VIEWS):
            value = op.operands[0]
        elif isinstance(op, kernel.LaunchOp):
            value = op.outputs[value.index]
        else:
            break
    return Part(value, begin, bytes, reach)


def _offset(op: memref.SubviewOp) -> int:
    """Return the elements before a view of a part, as far as they are known."""
    steps = strides_of(op.source, assumed(op.source))
    known = zip(op.static_offsets.get_values(), steps, strict=True)
    return sum(n * step for n, step in known if n != DYNAMIC_INDEX)
