"""Derivatives of windowed reductions: of equal extremes, the first in a window gets the cotangent.

If windows are small and sizes known, each element of x gathers the cotangents of the windows that
chose it, and nothing is accumulated in memory. Elements with the same position relative to window
starts (phase) are computed together. Windows that do not overlap become axes. Otherwise each window
position is a slice of x, and its cotangents are transposed as those of slices are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.compare import EqOp, GtOp, LtOp, SelectOp
from stepwell.dialects.nd.composing import Composer, others
from stepwell.dialects.nd.creation import FullOp, IotaOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.indexing import DynamicUpdateSliceOp
from stepwell.dialects.nd.reduction import (
    ReduceMinOp,
    WindowMaxOp,
    WindowMinOp,
    WindowOp,
    WindowSumOp,
)
from stepwell.dialects.nd.shape import BroadcastOp, PadOp, ReshapeOp, SliceOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import gradient, moves
from stepwell.dialects.types import element_type

Cotangents = Sequence[SSAValue | None]

MAX_UNROLLED_PLACES = 16
"""Windows with at most this many positions, and strides with at most this product, are unrolled."""
NUMBER = element_type("i32")
"""The element type of position numbers in a window."""


@gradient(WindowSumOp)
def _window_sum(r: Reverse, op: WindowSumOp, cotangents: Cotangents) -> None:
    """Sum the cotangents of all windows that contain an element."""
    (g,) = cotangents
    assert g is not None
    if r.wants(op.x):
        windows, g = _Windows(r, op), r.wide(g)
        r.accumulate(op.x, r.cast(_summed(windows, g), element(op.x)))


def _summed(windows: _Windows, g: SSAValue) -> SSAValue:
    if windows.empty:
        return windows.zeros(g)
    if windows.written_out():
        return windows.asked(g, lambda place: windows.part(g, place, 0))
    if windows.apart():
        return windows.joined(windows.spread(g))
    return windows.from_slices(lambda place: g)


@gradient(WindowMaxOp, WindowMinOp)
def _window_extreme(r: Reverse, op: WindowMaxOp | WindowMinOp, cotangents: Cotangents) -> None:
    (g,) = cotangents
    assert g is not None
    if r.wants(op.x):
        windows, g = _Windows(r, op), r.wide(g)
        r.accumulate(op.x, r.cast(_chosen(windows, g), element(op.x)))


def _chosen(windows: _Windows, g: SSAValue) -> SSAValue:
    c = windows.c
    if windows.empty:
        return windows.zeros(g)
    if windows.apart() and not windows.written_out():
        return windows.joined(_of_blocks(windows, g))
    first = windows.first()

    def share(chosen: SSAValue, part: SSAValue, place: Shape) -> SSAValue:
        mine = c.of(EqOp(chosen, c.full(chosen, windows.number(place))))
        return c.of(SelectOp(mine, part, c.full(part, 0)))

    if not windows.written_out():
        return windows.from_slices(lambda place: share(first, g, place))
    return windows.asked(
        g, lambda at: share(windows.part(first, at, -1), windows.part(g, at, 0), at)
    )


def _of_blocks(windows: _Windows, g: SSAValue) -> SSAValue:
    """Return the cotangents of x for windows that do not overlap, as axes of a reshaped x."""
    c, op = windows.c, windows.op
    rank = len(windows.sizes)
    limits = [
        n - n % w if w > 1 else END for n, w in zip(windows.sizes, windows.window, strict=True)
    ]
    x = c.of(SliceOp(op.x, [0] * rank, limits))
    shape, outer = windows.blocks()
    x = c.of(ReshapeOp(x, shape, c.sizes(x)))
    inner = others(x, outer)
    number: SSAValue | None = None
    for axis in inner:
        one = c.of(IotaOp(TensorType(NUMBER, shape), axis, c.sizes(x)))
        if number is not None:
            one = c.add(c.mul(number, c.full(number, shape[axis])), one)
        number = one
    assert number is not None
    same = c.of(EqOp(x, c.along(op.y, x, outer)))
    beyond = c.full(number, prod(windows.window))
    first = c.of(ReduceMinOp(c.of(SelectOp(same, number, beyond)), inner))
    mine = c.of(EqOp(number, c.along(first, x, outer)))
    spread = windows.spread(g)
    return c.of(SelectOp(mine, spread, c.full(spread, 0)))


@dataclass(frozen=True)
class _Windows:
    """The windows of one op, in the coordinates of x with its padding."""

    c: Composer
    op: WindowOp
    around: dict[tuple[SSAValue, int], tuple[SSAValue, Shape]] = field(
        default_factory=dict[tuple[SSAValue, int], tuple[SSAValue, Shape]]
    )
    """Per-window values padded with further windows, and the number of those before the first."""

    @property
    def sizes(self) -> Shape:
        """The shape of x."""
        return shape_of(self.op.x)

    @property
    def window(self) -> Shape:
        """The size of the window along each axis."""
        return self.op.geometry[0]

    @property
    def empty(self) -> bool:
        """Whether there are no elements or no windows."""
        return 0 in self.sizes or 0 in shape_of(self.op.y)

    def moving(self) -> list[int]:
        """Return the axes along which the windows are not the single elements."""
        window, strides, low, high, _ = self.op.geometry
        plain = (1, 1, 0, 0)
        entries = enumerate(zip(window, strides, low, high, strict=True))
        return [axis for axis, each in entries if each != plain]

    def written_out(self) -> bool:
        """Whether window and strides are small enough to unroll, and all sizes known."""
        window, strides, _, _, dilation = self.op.geometry
        dense = all(w == 1 or d == 1 for w, d in zip(window, dilation, strict=True))
        known = all(self.sizes[axis] != DYNAMIC for axis in self.moving())
        return (
            dense
            and known
            and prod(window) <= MAX_UNROLLED_PLACES
            and prod(strides) <= MAX_UNROLLED_PLACES
        )

    def apart(self) -> bool:
        """Whether the windows tile x: each begins where the previous one ends."""
        window, strides, low, high, dilation = self.op.geometry
        dense = all(w == 1 or d == 1 for w, d in zip(window, dilation, strict=True))
        known = all(self.sizes[axis] != DYNAMIC for axis in self.moving())
        return dense and known and window == strides and not any((*low, *high))

    def zeros(self, g: SSAValue) -> SSAValue:
        """Return zeros in the shape of x."""
        x = self.op.x
        return self.c.of(FullOp.of(0, TensorType(element(g), shape_of(x)), self.c.sizes(x)))

    def number(self, place: Shape) -> int:
        """Return the number of a position in a window, in row-major order."""
        total = 0
        for at, size in zip(place, self.window, strict=True):
            total = total * size + at
        return total

    def _padded(self) -> SSAValue:
        """Return x with its padding, filled so that no padding element is chosen."""
        _, _, low, high, _ = self.op.geometry
        x = self.op.x
        if not any((*low, *high)):
            return x
        least = float("-inf" if isinstance(self.op, WindowMaxOp) else "inf")
        value = FullOp.of(least, TensorType(element(x), []))
        return self.c.of(PadOp(x, self.c.of(value), low, high))

    def _slice(self, padded: SSAValue, place: Shape) -> SliceOp:
        """Return the elements at position ``place`` of all windows."""
        window, strides, _, _, dilation = self.op.geometry
        starts = [at * d for at, d in zip(place, dilation, strict=True)]
        after = [(w - 1 - at) * d for w, at, d in zip(window, place, dilation, strict=True)]
        return SliceOp(padded, starts, [-n or END for n in after], strides)

    def first(self) -> SSAValue:
        """Return for each window the position of its first largest or smallest element."""
        c, padded = self.c, self._padded()
        better = GtOp if isinstance(self.op, WindowMaxOp) else LtOp
        best = found = None
        for place in product(*map(range, self.window)):
            part = c.of(self._slice(padded, place))
            if best is None or found is None:
                type = TensorType(NUMBER, shape_of(part))
                best, found = part, c.of(FullOp.of(0, type, c.sizes(part)))
                continue
            more = c.of(better(part, best))
            best = c.of(SelectOp(more, part, best))
            found = c.of(SelectOp(more, c.full(found, self.number(place)), found))
        assert found is not None
        return found

    def from_slices(self, share: Callable[[Shape], SSAValue]) -> SSAValue:
        """Return the sum over the window positions of ``share``, moved to the elements of x."""
        c, padded = self.c, self._padded()
        back = moves.get(SliceOp)
        assert back is not None
        total: SSAValue | None = None
        for place in product(*map(range, self.window)):
            part = self._slice(padded, place)
            c.of(part)
            moved = back(c, part, share(place))
            total = moved if total is None else c.add(total, moved)
        assert total is not None
        _, _, low, high, _ = self.op.geometry
        return c.of(SliceOp(total, low, [-n or END for n in high]))

    def asked(self, g: SSAValue, share: Callable[[Shape], SSAValue]) -> SSAValue:
        """Return for each element the sum of ``share`` over its positions in windows."""
        c, strides, axes = self.c, self.op.geometry[1], self.moving()
        found: SSAValue | None = None
        for phase in product(*map(range, strides)):
            places = [
                place
                for place in product(*map(range, self.window))
                if all(at % s == p for at, s, p in zip(place, strides, phase, strict=True))
            ]
            spans = [self._span(axis, phase[axis]) for axis in axes]
            if not places or any(low > high for low, high in spans):
                continue
            total = share(places[0])
            for place in places[1:]:
                total = c.add(total, share(place))
            if all(s == 1 for s in strides):
                return total
            starts = [
                c.index(strides[axis] * span[0] + phase[axis] - self.op.geometry[2][axis])
                for axis, span in zip(axes, spans, strict=True)
            ]
            by = [strides[axis] for axis in axes]
            zeros = self.zeros(g) if found is None else found
            found = c.of(DynamicUpdateSliceOp(zeros, total, starts, axes, by))
        return self.zeros(g) if found is None else found

    def _span(self, axis: int, phase: int) -> tuple[int, int]:
        """Return the first and the last window that begins ``phase`` before an element of x."""
        _, strides, lows, _, _ = self.op.geometry
        stride, low = strides[axis], lows[axis]
        return -((phase - low) // stride), (low + self.sizes[axis] - 1 - phase) // stride

    def part(self, z: SSAValue, place: Shape, beyond: int) -> SSAValue:
        """Return the values ``z`` of the windows that have elements of x at ``place``."""
        around, before = self._around(z, beyond)
        rank = len(self.sizes)
        starts, limits = [0] * rank, [END] * rank
        for axis in self.moving():
            stride = self.op.geometry[1][axis]
            low, high = self._span(axis, place[axis] % stride)
            shift = before[axis] - place[axis] // stride
            starts[axis], limits[axis] = low + shift, high + shift + 1
        return self.c.of(SliceOp(around, starts, limits))

    def _around(self, z: SSAValue, beyond: int) -> tuple[SSAValue, Shape]:
        """Return ``z`` padded with ``beyond``, large enough for all slices of it."""
        if (z, beyond) not in self.around:
            c, rank = self.c, len(self.sizes)
            low, high = [0] * rank, [0] * rank
            for axis in self.moving():
                stride, n = self.op.geometry[1][axis], shape_of(z)[axis]
                for at in range(self.window[axis]):
                    first, last = self._span(axis, at % stride)
                    low[axis] = max(low[axis], at // stride - first)
                    high[axis] = max(high[axis], last - at // stride - (n - 1))
            around = z
            if any((*low, *high)):
                value = c.of(FullOp.of(beyond, TensorType(element(z), [])))
                around = c.of(PadOp(z, value, low, high))
            self.around[z, beyond] = around, tuple(low)
        return self.around[z, beyond]

    def blocks(self) -> tuple[list[int], list[int]]:
        """Return the shape of x with moving axes split in two, and the position of outer axes."""
        shape: list[int] = []
        outer: list[int] = []
        for n, w in zip(self.sizes, self.window, strict=True):
            outer.append(len(shape))
            shape += [n] if w == 1 else [n // w, w]
        return shape, outer

    def spread(self, g: SSAValue) -> SSAValue:
        """Return the windows' values broadcast to their positions."""
        shape, outer = self.blocks()
        return self.c.of(BroadcastOp(g, outer, shape, []))

    def joined(self, blocks: SSAValue) -> SSAValue:
        """Return blocks in the shape of x, with zeros outside of all windows."""
        c = self.c
        kept = [n if w == 1 else n - n % w for n, w in zip(self.sizes, self.window, strict=True)]
        x = c.of(ReshapeOp(blocks, kept, c.sizes(self.op.x)))
        rest = [n - k for n, k in zip(self.sizes, kept, strict=True)]
        if not any(rest):
            return x
        zero = c.of(FullOp.of(0, TensorType(element(x), [])))
        return c.of(PadOp(x, zero, [0] * len(rest), rest))
