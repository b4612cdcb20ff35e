"""The greatest or least of many floats: NaN is watched for beside the running values.

`maximumf` of vectors takes three instructions where zeros can be ordered by one, for NaN must win
over what has been found so far. So a loop that runs several vectors side by side takes `maxnumf`,
over which NaN loses, and marks the lanes that met a NaN; what is marked becomes NaN after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, VectorType, i1
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Writer

_WITHOUT_NAN: dict[type[Operation], type[Operation]] = {
    arith.MaximumfOp: arith.MaxnumfOp,
    arith.MinimumfOp: arith.MinnumfOp,
}
_REGISTER = 512
"""Vectors of so many bits have an instruction that orders zeros; shorter ones have not."""


@dataclass
class Watch:
    """Watches the running extremes of one vectorised loop.

    The loop's running values are, for each of ``points``, for each of ``vectors``, one for every
    reduced output of ``op``; after them come the marks, one for each watched output and point.
    """

    writer: Writer
    op: Structured
    points: int
    vectors: int

    def __post_init__(self) -> None:
        self.count = len(self.op.carried)
        self.watched: list[int] = []

    def start(self, state: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the marks before the loop: nothing is marked; none where nothing is watched."""
        for i, k in enumerate(self.op.carried):
            type, combiner = state[i].type, self.op.combiner(k)
            if (
                self.vectors > 1
                and combiner is not None
                and combiner.op in _WITHOUT_NAN
                and isinstance(type, VectorType)
                and isinstance(element := type.element_type, AnyFloat)
                and element.bitwidth * type.get_shape()[0] == _REGISTER
                and element.bitwidth >= 32
            ):
                self.watched.append(i)
        return [
            self.writer.splat(IntegerAttr(0, i1), _lanes(state[i]))
            for _ in range(self.points)
            for i in self.watched
        ]

    def step(self, before: Sequence[SSAValue], values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the next running values and marks.

        ``before`` are the present ones, ``values`` what the body made of them.
        """
        count = self.points * self.vectors * self.count
        after, left = list(values[:count]), list(before[count:])
        for p in range(self.points):
            for m, i in enumerate(self.watched):
                mark = p * len(self.watched) + m
                for v in range(self.vectors):
                    at = (p * self.vectors + v) * self.count + i
                    after[at], met = self._split(before[at], values[at])
                    left[mark] = self.writer.binary(arith.OrIOp, left[mark], met)
        return [*after, *left]

    def _split(self, running: SSAValue, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Return the extreme without regard to NaN, and which lanes of what is new are NaN."""
        old = value.owner
        assert isinstance(old, arith.MaximumfOp | arith.MinimumfOp)
        new = old.rhs if old.lhs is running else old.lhs
        outer, self.writer.location = self.writer.location, old.location
        quick = self.writer.binary(_WITHOUT_NAN[type(old)], running, new, value.name_hint)
        quick.owner.properties["fastmath"] = arith.FastMathFlagsAttr("none")  # pyright: ignore
        met = self.writer.result(arith.CmpfOp(new, new, "une"), "met_nan")
        self.writer.location = outer
        old.detach()
        old.erase()
        return quick, met

    def finish(self, state: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the running values after the loop, with NaN in the lanes that are marked."""
        count = self.points * self.vectors * self.count
        after, marks = list(state[:count]), state[count:]
        for p in range(self.points):
            for m, i in enumerate(self.watched):
                at = p * self.vectors * self.count + i
                type = after[at].type
                assert isinstance(type, VectorType)
                nan = FloatAttr(float("nan"), type.element_type)
                new = arith.SelectOp(
                    marks[p * len(self.watched) + m],
                    self.writer.splat(nan, _lanes(after[at])),
                    after[at],
                )
                after[at] = self.writer.result(new, after[at].name_hint)
        return after


def _lanes(value: SSAValue) -> int:
    assert isinstance(value.type, VectorType)
    return value.type.get_shape()[0]
