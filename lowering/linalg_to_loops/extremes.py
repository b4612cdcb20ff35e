"""Maximum and minimum of floats: NaN is tracked beside the accumulators.

NaN must propagate, so `maximumf` of vectors takes three instructions where one instruction orders
zeros. A loop with several vectors of accumulators uses `maxnumf`, which ignores NaN, and
marks the lanes that met a NaN; marked lanes become NaN after the loop. The reduction of vectors,
and then of lanes, works likewise: one comparison finds the NaN of two vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.analysis.combiners import Combiner
from stepwell.lowering.linalg_to_loops.builder import lanes_of
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Writer

_WITHOUT_NAN: dict[type[Operation], type[Operation]] = {
    arith.MaximumfOp: arith.MaxnumfOp,
    arith.MinimumfOp: arith.MinnumfOp,
}
_VECTOR_BITS = 512
"""Bits of a vector for which an instruction orders zeros; no shorter vector has one."""


@dataclass
class Watch:
    """Tracks NaN for the running extremes of one vectorised loop.

    The loop carries, for each of ``points``, for each of ``vectors``, one accumulator for every
    reduced output of ``op``; after them come the marks, one for each tracked output and point.
    """

    writer: Writer
    op: Structured
    points: int
    vectors: int

    def __post_init__(self) -> None:
        self.count = len(self.op.carried)
        self.watched: list[int] = []

    def start(self, state: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the marks before the loop, none where nothing is tracked.

        An accumulator of an enclosing loop is NaN already where an earlier iteration met one.
        """
        for i, k in enumerate(self.op.carried):
            combiner = self.op.combiner(k)
            if self.vectors > 1 and combiner is not None and is_watched(combiner, state[i].type):
                self.watched.append(i)
        each = self.vectors * self.count
        return [self._begun(state[p * each + i]) for p in range(self.points) for i in self.watched]

    def _begun(self, running: SSAValue) -> SSAValue:
        """Return which lanes of an accumulator are NaN before the loop."""
        if isinstance(running.owner, arith.ConstantOp):
            return self.writer.splat(IntegerAttr(0, i1), lanes_of(running))
        return self.writer.result(arith.CmpfOp(running, running, "une"), "met_nan")

    def step(self, before: Sequence[SSAValue], values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the next accumulators and marks.

        ``before`` are the present ones, ``values`` the results of the body.
        """
        count = len(before) - self.points * len(self.watched)
        after, left = list(values[:count]), list(before[count:])
        done: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}  # points may share results
        for p in range(self.points):
            for m, i in enumerate(self.watched):
                mark = p * len(self.watched) + m
                for v in range(self.vectors):
                    at = (p * self.vectors + v) * self.count + i
                    if (value := values[at]) not in done:
                        done[value] = self._split(before[at], value)
                    after[at], met = done[value]
                    left[mark] = self.writer.binary(arith.OrIOp, left[mark], met)
        return [*after, *left]

    def _split(self, running: SSAValue, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Return the extreme that ignores NaN, and which lanes of the new operand are NaN."""
        old = value.owner
        assert isinstance(old, arith.MaximumfOp | arith.MinimumfOp)
        new = old.rhs if old.lhs is running else old.lhs
        outer, self.writer.location = self.writer.location, old.location
        quick = _quick(self.writer, type(old), running, new, value.name_hint)
        met = self.writer.result(arith.CmpfOp(new, new, "une"), "met_nan")
        self.writer.location = outer
        old.detach()
        old.erase()
        return quick, met

    def finish(self, state: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the accumulators after the loop, with NaN in the marked lanes."""
        count = len(state) - self.points * len(self.watched)
        after, marks = list(state[:count]), state[count:]
        for p in range(self.points):
            for m, i in enumerate(self.watched):
                at = p * self.vectors * self.count + i
                type = after[at].type
                assert isinstance(type, VectorType)
                nan = self.writer.splat(_nan(type.element_type), lanes_of(after[at]))
                new = arith.SelectOp(marks[p * len(self.watched) + m], nan, after[at])
                after[at] = self.writer.result(new, after[at].name_hint)
        return after


def is_watched(combiner: Combiner, type: Attribute) -> bool:
    """Whether accumulators of ``type`` are combined faster with NaN tracked beside them."""
    return (
        combiner.op in _WITHOUT_NAN
        and isinstance(type, VectorType)
        and isinstance(element := type.element_type, AnyFloat)
        and element.bitwidth * type.get_shape()[0] == _VECTOR_BITS
        and element.bitwidth >= 32
    )


def joined(writer: Writer, combiner: Combiner, parts: Sequence[SSAValue]) -> SSAValue:
    """Return the extreme of all lanes of ``parts``, which are tracked; NaN if one is."""
    hint, met = parts[0].name_hint, None
    for i in range(0, len(parts), 2):
        new = writer.result(arith.CmpfOp(parts[i], parts[min(i + 1, len(parts) - 1)], "uno"))
        met = new if met is None else writer.binary(arith.OrIOp, met, new)
    assert met is not None
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        some = [_quick(writer, combiner.op, a, b, hint) for a, b in pairs]
        parts = [*some, *parts[len(some) * 2 :]]
    found = writer.across(combiner.kind.replace("imum", "num"), parts[0], hint)
    nan = writer.splat(_nan(found.type), 0)
    return writer.result(arith.SelectOp(writer.across("or", met, "met_nan"), nan, found), hint)


def _quick(
    writer: Writer, op: type[Operation], a: SSAValue, b: SSAValue, hint: str | None
) -> SSAValue:
    """Return the extreme of ``a`` and ``b`` that ignores NaN."""
    found = writer.binary(_WITHOUT_NAN[op], a, b, hint)
    found.owner.properties["fastmath"] = arith.FastMathFlagsAttr("none")  # pyright: ignore
    return found


def _nan(type: Attribute) -> FloatAttr:
    assert isinstance(type, AnyFloat)
    return FloatAttr(float("nan"), type)
