"""Choose which forward values a backward pass keeps and which it recomputes, by bytes.

Forward values that the backward pass needs are recomputed by cheap ops from kept ones. The kept set
is a minimum cut: among all sets from which cheap ops compute the rest, the one of the fewest bytes,
and among these the one with the least recomputation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import inf, prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import ConstantLike, is_side_effect_free

from stepwell.core.diagnostics import Diagnostic, report
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.nd.creation import Creation
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.indexing import DynamicSliceOp, GatherOp
from stepwell.dialects.nd.reduction import ReduceOp
from stepwell.dialects.nd.shape import BroadcastOp
from stepwell.dialects.nd.sizes import DimOp, FromIndexOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import moves
from stepwell.dialects.types import dtype, place_of

UNKNOWN_SIZE = 256
"""Elements assumed for an axis of unknown size: larger than accompanying scalars."""

_CHEAP = (
    Elementwise,
    CastOp,
    BitcastOp,
    Creation,
    BroadcastOp,
    DynamicSliceOp,
    GatherOp,
    DimOp,
    FromIndexOp,
)

_Node = tuple[SSAValue | None, int]
_SOURCE: _Node = (None, 0)
_SINK: _Node = (None, 1)


def bytes_of(value: SSAValue) -> int:
    """Return the size of ``value`` in bytes, estimated if unknown."""
    sizes = (UNKNOWN_SIZE if n == DYNAMIC else n for n in shape_of(value))
    return prod(sizes) * dtype(element(value)).numpy.itemsize


def is_cheap(op: Operation) -> bool:
    """Whether recomputing ``op`` costs less than keeping its result."""
    if op.has_trait(ConstantLike) or isinstance(op, _CHEAP):
        return True
    if op.name.startswith("arith."):
        return True
    return moves.covers(type(op)) and not isinstance(op, ReduceOp)


def is_repeatable(op: Operation) -> bool:
    """Whether ``op`` may be recomputed at all."""
    return is_side_effect_free(op)


def choose(
    needed: Iterable[SSAValue],
    free: Callable[[SSAValue], bool],
    keepable: Callable[[SSAValue], bool],
    again: Callable[[Operation], bool] = is_cheap,
) -> set[SSAValue] | None:
    """Return the values to keep so that all of ``needed`` can be computed; None if impossible.

    free : whether a value is available without being kept
    keepable : whether a value may be kept
    again : whether an op may be recomputed
    """
    graph = _Graph()
    waiting = [v for v in dict.fromkeys(needed) if not free(v)]
    for value in waiting:
        graph.edge((value, 1), _SINK, inf)
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        fits = isinstance(value.type, TensorType) and keepable(value)
        graph.edge((value, 0), (value, 1), bytes_of(value) + 1 if fits else inf)
        op = value.owner
        if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not again(op):
            graph.edge(_SOURCE, (value, 0), inf)
            continue
        for operand in op.operands:
            if not free(operand):
                graph.edge((operand, 1), (value, 0), inf)
                if operand not in seen:
                    seen.add(operand)
                    waiting.append(operand)
    return graph.cut()


MOST_TOLD = 8
"""Maximum number of values named in a remark."""


def tell_kept(
    op: Operation, forward: Sequence[Operation], backward: Sequence[Operation], ends: set[SSAValue]
) -> None:
    """Report in a remark at ``op`` which forward values its backward pass keeps.

    ends : the results of both passes
    """
    created = {r for each in forward for r in each.results}
    live, needed = set(ends), dict[SSAValue, None]()
    for each in reversed(backward):
        if any(r in live for r in each.results):
            for inner in each.walk():
                live.update(inner.operands)
                needed.update((v, None) for v in inner.operands if v in created)
    kept = choose(needed, lambda v: v not in created, lambda v: True)
    values = kept if kept is not None else needed
    said = f"the backward pass keeps {listed(values, ' of the forward pass')}"
    report(Diagnostic("remark", said, place_of(op)))


def listed(values: Iterable[SSAValue], of: str = "") -> str:
    """Return a text with the number of values, their bytes, and the largest of them."""
    values = sorted(values, key=bytes_of, reverse=True)
    if not values:
        return f"nothing{of}"
    names = [f"%{v.name_hint or 'value'} {v.type}" for v in values[:MOST_TOLD]]
    more = f" and {len(values) - MOST_TOLD} more" if len(values) > MOST_TOLD else ""
    unknown = any(DYNAMIC in shape_of(v) for v in values)
    return (
        f"{len(values)} value{'s' * (len(values) > 1)}{of}, {sum(map(bytes_of, values))} bytes"
        f"{f' with {UNKNOWN_SIZE} for each ?' if unknown else ''}: {', '.join(names)}{more}"
    )


class _Graph:
    """A flow network whose minimum cut is computed."""

    def __init__(self) -> None:
        self.room: dict[_Node, dict[_Node, float]] = {}

    def edge(self, start: _Node, end: _Node, room: float) -> None:
        """Add an edge with a capacity, and its reverse edge without capacity."""
        self.room.setdefault(start, {})[end] = room
        self.room.setdefault(end, {}).setdefault(start, 0)

    def cut(self) -> set[SSAValue] | None:
        """Return the values of the minimum cut nearest to the sink."""
        while (path := self._path()) is not None:
            least = min(self.room[a][b] for a, b in path)
            if least == inf:
                return None
            for a, b in path:
                self.room[a][b] -= least
                self.room[b][a] += least
        near = {_SINK}
        waiting = [_SINK]
        while waiting:
            node = waiting.pop()
            for before in self.room.get(node, {}):
                if before not in near and self.room[before][node] > 0:
                    near.add(before)
                    waiting.append(before)
        return {v for v, side in near if side == 1 and v is not None and (v, 0) not in near}

    def _path(self) -> list[tuple[_Node, _Node]] | None:
        """Return the edges of a shortest augmenting path."""
        came: dict[_Node, _Node] = {_SOURCE: _SOURCE}
        waiting = deque([_SOURCE])
        while waiting:
            node = waiting.popleft()
            for after, room in self.room.get(node, {}).items():
                if room > 0 and after not in came:
                    came[after] = node
                    if after == _SINK:
                        path = [(node, after)]
                        while node != _SOURCE:
                            path.append((came[node], node))
                            node = came[node]
                        return path
                    waiting.append(after)
        return None
