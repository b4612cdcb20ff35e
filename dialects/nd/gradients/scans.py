"""Derivatives of nd.scan: a scan in reverse over the values that each forward step kept."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import ScanOp, YieldOp
from stepwell.dialects.nd.gradients.branches import replace
from stepwell.dialects.nd.gradients.regions import Body, captured, last_of
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.gradients.sizes import Outside
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.readings import gradient


class _Backward:
    """The reverse scan during its construction."""

    def __init__(self, r: Reverse, op: ScanOp, cotangents: Sequence[SSAValue | None]) -> None:
        self.r, self.op, self.cotangents = r, op, cotangents
        self.n = len(op.carried)
        self.inputs = captured(r, op)
        self.body = Body(op.body.block)
        arguments = self.body.block.args
        pairs = zip(arguments, (*op.carried, *op.xs), strict=True)
        self.body.follow_loop([*self.inputs, *(a for a, v in pairs if r.wants(v))], self.n)
        yields, wants = self.body.yields, self.body.inner.wants
        ends = [*arguments[: self.n], *yields[self.n :]]
        seeded = [k for k, g in enumerate(cotangents) if g is not None and wants(ends[k])]
        self.useful = sorted(k for k in self.body.useful(set(seeded), self.n) if k < self.n)
        self.stacked = [k for k in seeded if k >= self.n]

    def block(self) -> tuple[Block, list[SSAValue], list[SSAValue]]:
        """Return the body, the forward values that it reads, and the xs with cotangents."""
        arguments, yields = self.body.block.args, self.body.yields
        into = Block()
        carried = [add_argument(into, arguments[k]) for k in self.useful]
        sums = [add_argument(into, v) for v in self.inputs]
        slices = [add_argument(into, yields[k]) for k in self.stacked]
        seeds = [yields[k] for k in (*self.useful, *self.stacked)]
        self.body.run(
            zip(seeds, (*carried, *slices), strict=True), zip(self.inputs, sums, strict=True)
        )
        inner = self.body.inner
        xs = list(zip(self.op.xs, arguments[self.n :], strict=True))
        of_xs = [(x, end) for x, a in xs if (end := self.body.found(a)) is not None]
        ends = [inner.result(arguments[k]) for k in self.useful]
        ends += [inner.result(v) for v in self.inputs]
        ends += [end for _, end in of_xs]
        self.outside = self._outside()
        at_hand = {*arguments[self.n :], *yields[self.n :]}
        ends, used = self.body.take_out(into, ends, self.outside, at_hand.__contains__)
        into.add_op(YieldOp(ends))
        return into, used, [x for x, _ in of_xs]

    def _outside(self) -> Outside:
        arguments, op = self.body.block.args, self.op
        first: dict[SSAValue, tuple[SSAValue, int]]
        first = {a: (v, 0) for a, v in zip(arguments, op.carried, strict=False)}
        first |= {a: (x, 1) for a, x in zip(arguments[self.n :], op.xs, strict=True)}
        composer = Composer(Builder(InsertPoint.before(op)))
        return Outside(composer, self.body.block, first)

    def write(self) -> None:
        """Write the reverse scan, and let the forward one stack the values it needs."""
        r = self.r
        into, used, of_xs = self.block()
        block = self.body.block
        known = {*block.args[self.n :], *self.body.yields[self.n :]}
        kept = [v for v in used if v not in known]
        self.op = op = _keeping(self.op, kept, self.outside) if kept else self.op
        block = op.body.block
        rows = dict(zip(last_of(block).operands[self.n :], op.stacked, strict=True))
        rows |= dict(zip(block.args[self.n :], op.xs, strict=True))
        begin = [
            r.full(op.carried[k], 0) if (g := self.cotangents[k]) is None else g
            for k in self.useful
        ]
        begin += [r.so_far(v) for v in self.inputs]
        over = [g for k in self.stacked if (g := self.cotangents[k]) is not None]
        over += [rows[v] for v in used]
        back = r.builder.insert(
            ScanOp(
                begin,
                over,
                Region(into),
                length=None if over else _steps(r, op),
                sizes=[size for x in of_xs for size in _slice_sizes(r, x)],
                reverse=op.reverse is None,
            )
        )
        targets = [*(op.carried[k] for k in self.useful), *self.inputs, *of_xs]
        for target, result in zip(targets, back.results, strict=True):
            r.accumulate(target, result)


@gradient(ScanOp)
def _scan(r: Reverse, op: ScanOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Propagate cotangents of carried and captured values backward, step by step."""
    scan_backward(r, op, cotangents)


def scan_backward(r: Reverse, op: ScanOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Write the backward pass of a scan."""
    _Backward(r, op, cotangents).write()


def add_argument(into: Block, value: SSAValue) -> SSAValue:
    """Add an argument to ``into`` for the cotangent of ``value``."""
    added = into.insert_arg(value.type, len(into.args))
    if value.name_hint is not None:
        added.name_hint = f"d_{value.name_hint}"
    return added


def _steps(r: Reverse, op: ScanOp) -> int | SSAValue:
    """Return the number of steps."""
    if op.steps is not None or op.count != DYNAMIC:
        return op.steps or op.count
    return r.size(op.xs[0], 0)


def _slice_sizes(r: Reverse, x: SSAValue) -> list[SSAValue]:
    return [r.size(x, a) for a, n in enumerate(shape_of(x)) if a and n == DYNAMIC]


def _keeping(op: ScanOp, kept: Sequence[SSAValue], outside: Outside) -> ScanOp:
    """Make ``op`` stack ``kept`` as well."""
    sizes = list(op.sizes)
    for value in kept:
        more = outside.sizes(value)
        assert more is not None
        sizes += more
    block = op.body.block
    last = last_of(block)
    values = [*last.operands, *kept]
    last.detach()
    last.erase()
    block.add_op(YieldOp(values))
    steps = op.steps or (None if op.length is None else op.length.value.data)
    new = ScanOp(
        op.carried,
        op.xs,
        op.detach_region(0),
        length=steps,
        sizes=sizes,
        reverse=op.reverse is not None,
    )
    new.attributes = dict(op.attributes)
    new.location = op.location
    outside.composer.builder.insert(new)
    for value, tape in zip(kept, new.results[len(op.results) :], strict=True):
        tape.name_hint = f"{value.name_hint or 'value'}s"
    replace(op, new.results[: len(op.results)])
    return new
