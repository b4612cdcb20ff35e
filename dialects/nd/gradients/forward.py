"""Forward mode: tangents propagated along a list of ops by their rules.

The derivative of an elementwise op is diagonal, so the rule for its cotangents (`partials`) holds
for tangents. Other ops have a rule of their own (`tangent`), or their reverse-mode rule is
transposed: it is linear in the cotangent, so its reverse-mode derivative is the forward rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.compare import SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import IfOp, ScanOp, WhileOp, YieldOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.gradients.backward import bind, unpack
from stepwell.dialects.nd.gradients.branches import replace
from stepwell.dialects.nd.gradients.reverse import Reverse, has_rule, is_float, reads
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.nd.transformations import JvpOp
from stepwell.dialects.readings import decomposition, gradient, moves, partials, tangent
from stepwell.dialects.types import UNKNOWN, place_of


@dataclass(frozen=True)
class Forward(Composer):
    """The tangents of some values; `follow` computes those of values that depend on them."""

    tangents: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """The tangent of each value that has a nonzero one."""

    def given(self, value: SSAValue) -> SSAValue:
        """Return the tangent of ``value``, zeros if it has none."""
        found = self.tangents.get(value)
        return self.full(value, 0) if found is None else found

    def at(self, point: InsertPoint) -> Forward:
        """Return a copy that shares the tangents and inserts ops at ``point``."""
        return Forward(Builder(point), tangents=self.tangents)

    def learn(self, value: SSAValue, found: SSAValue | None) -> None:
        """Set the tangent of ``value``; None means zero."""
        if found is None or not is_float(value):
            return
        if found.type != value.type:
            found = Reverse(self.builder).fitted(found, value)
        if value.name_hint is not None and found.owner is not value.owner:
            found.name_hint = f"t_{value.name_hint}"
        self.tangents[value] = found

    def follow(self, first: Operation | None, end: Operation | None) -> None:
        """Write the tangents of the ops from ``first`` up to ``end``, each after its op."""
        op = first
        while op is not None and op is not end:
            if not any(v in self.tangents for v in reads(op)):
                op = op.next_op
            elif self.lacks_rule(op):
                op = expand(op)
            else:
                op = self.through(op)

    def lacks_rule(self, op: Operation) -> bool:
        """Whether the decomposition of ``op`` is differentiated instead of it."""
        kind = type(op)
        return not (has_rule(op) or tangent.covers(kind)) and decomposition.covers(kind)

    def through(self, op: Operation) -> Operation | None:
        """Write the tangents of the results of ``op``; return the next op to visit."""
        after = op.next_op
        block = op.parent
        assert block is not None
        point = InsertPoint.at_end(block) if after is None else InsertPoint.before(after)
        here = self.at(point)
        if isinstance(op, IfOp):
            here.if_(op)
        elif isinstance(op, ScanOp):
            here.scan(op)
        elif isinstance(op, WhileOp):
            here.while_(op)
        elif any(is_float(r) for r in op.results):
            for result, found in zip(op.results, here.of_results(op), strict=True):
                here.learn(result, found)
            new = op.next_op
            while new is not None and new is not after:
                if new.location == UNKNOWN:
                    new.location = op.location
                new = new.next_op
        return after

    def of_results(self, op: Operation) -> Sequence[SSAValue | None]:
        """Return the tangents of the results of ``op``."""
        kind = type(op)
        given = [self.tangents.get(v) for v in op.operands]
        if (rule := tangent.get(kind)) is not None:
            return rule(self, op, given)
        if isinstance(op, SelectOp):
            a, b = self.given(op.a), self.given(op.b)
            return [self.of(SelectOp(op.condition, a, b))]
        if (factors := partials.get(kind)) is not None:
            return [self.summed(op, factors(self, op), given)]
        if moves.covers(kind) or gradient.get(kind) is not None:
            return self.transposed(op)
        said = f"{op.name} has no derivative"
        help = gradient.why_none(kind) or f"register a rule beside {kind.__name__}"
        raise CompileError(Diagnostic("error", said, place_of(op), help=help))

    def summed(
        self, op: Operation, factors: Sequence[object], given: Sequence[SSAValue | None]
    ) -> SSAValue | None:
        """Return the sum of the products of tangents and derivatives."""
        parts = [f(t) for f, t in zip(factors, given, strict=True) if f and t is not None]  # pyright: ignore
        if not parts:
            return None
        total = cast(SSAValue, parts[0])
        for part in parts[1:]:
            total = self.add(total, cast(SSAValue, part))
        return total

    def transposed(self, op: Operation) -> Sequence[SSAValue | None]:
        """Return the tangents by transposing the reverse-mode rule, which is linear."""
        sources = [v for v in dict.fromkeys(op.operands) if v in self.tangents]
        results = [r for r in op.results if is_float(r)]
        unknown = Block(arg_types=[r.type for r in results]).args
        border = self.builder.insert(YieldOp([]))
        backward = Reverse(self.builder, active=set(sources))
        cotangents = iter(unknown)
        backward.through_plain(op, [next(cotangents) if is_float(r) else None for r in op.results])
        found = [(v, backward.found_plain(v)) for v in sources]
        end = self.builder.insert(YieldOp([]))
        again = Reverse(self.builder, active=set(unknown))
        ops = again.follow(border.next_op, end)
        for value, cotangent in found:
            if cotangent is not None:
                again.accumulate(cotangent, self.tangents[value])
        again.run(ops)
        ends = {r: again.found_plain(u) for r, u in zip(results, unknown, strict=True)}
        end.detach()
        end.erase()
        drop_dead(border, self.builder.insertion_point, set(ends.values()))
        border.detach()
        border.erase()
        for result, placeholder in zip(results, unknown, strict=True):
            placeholder.replace_all_uses_with(result)  # used only for sizes, which are equal
        return [ends.get(r) for r in op.results]

    # -- regions

    def inside(self, block: Block) -> Forward:
        """Write the tangents of a region's ops; return the object that has them."""
        last = block.last_op
        assert last is not None
        inner = self.at(InsertPoint.before(last))
        inner.follow(block.first_op, last)
        return inner

    def if_(self, op: IfOp) -> None:
        """Make the branches yield tangents too."""
        blocks = [op.then.block, op.otherwise.block]
        inner = [self.inside(block) for block in blocks]
        ends = [list(_last(block).operands) for block in blocks]
        number = len(op.results)
        some = [k for k in range(number) if any(vs[k] in self.tangents for vs in ends)]
        for forward, block, values in zip(inner, blocks, ends, strict=True):
            _end(block, [*values, *(forward.given(values[k]) for k in some)])
        types = [v.type for v in _last(blocks[0]).operands]
        new = IfOp(op.condition, types, op.detach_region(0), op.detach_region(0))
        self.put(op, new, some, number)

    def scan(self, op: ScanOp) -> None:
        """Carry the tangents of carried values, read those of slices and stack those of results."""
        n, block = len(op.carried), op.body.block
        arguments = list(block.args)
        xs = [k for k, x in enumerate(op.xs) if x in self.tangents]
        carried = self.carried(op, block, [arguments[n + k] for k in xs])
        begin = [*op.carried, *(self.before(op).given(op.carried[k]) for k in carried)]
        for k in carried:
            self.argument(block, n + carried.index(k), arguments[k])
        for k in xs:
            self.argument(block, len(block.args), arguments[n + k])
        inner = self.inside(block)
        values = list(_last(block).operands)
        stacked = [k for k in range(n, len(values)) if values[k] in self.tangents]
        ends = [*values[:n], *(inner.given(values[k]) for k in carried), *values[n:]]
        _end(block, [*ends, *(inner.given(values[k]) for k in stacked)])
        sizes = [*op.sizes, *(s for k in stacked for s in _sizes_of(op, k - n))]
        new = ScanOp(
            begin,
            [*op.xs, *(self.tangents[op.xs[k]] for k in xs)],
            op.detach_region(0),
            length=op.steps or (None if op.length is None else op.length.value.data),
            sizes=sizes,
            reverse=op.reverse is not None,
        )
        results = len(op.results)
        order = [*range(n), *range(n + len(carried), results + len(carried))]
        more = [
            *range(n, n + len(carried)),
            *range(results + len(carried), results + len(carried) + len(stacked)),
        ]
        self.put(op, new, [*carried, *stacked], results, order, more)

    def while_(self, op: WhileOp) -> None:
        """Carry the tangents of carried values."""
        block, test = op.body.block, op.test.block
        arguments, n = list(block.args), len(op.carried)
        carried = self.carried(op, block, [])
        begin = [*op.carried, *(self.before(op).given(op.carried[k]) for k in carried)]
        for k in carried:
            self.argument(block, len(block.args), arguments[k])
            test.insert_arg(arguments[k].type, len(test.args))
        inner = self.inside(block)
        values = list(_last(block).operands)
        _end(block, [*values, *(inner.given(values[k]) for k in carried)])
        new = WhileOp(begin, op.detach_region(0), op.detach_region(0))
        self.put(op, new, carried, n)

    def before(self, op: Operation) -> Forward:
        """Return a copy that inserts ops before ``op``."""
        return self.at(InsertPoint.before(op))

    def argument(self, block: Block, place: int, value: SSAValue) -> None:
        """Add an argument to ``block`` for the tangent of ``value``."""
        added = block.insert_arg(value.type, place)
        if value.name_hint is not None:
            added.name_hint = f"t_{value.name_hint}"
        self.tangents[value] = added

    def carried(self, op: ScanOp | WhileOp, block: Block, more: Iterable[SSAValue]) -> list[int]:
        """Return which carried values have tangents before or after some step."""
        trial = Reverse(self.builder, active={*self.tangents, *more})
        n = len(op.carried)
        arguments = block.args[:n]
        found = {k for k, v in enumerate(op.carried) if v in self.tangents and is_float(v)}
        while True:
            trial.active.update(arguments[k] for k in found)
            trial.follow(block.first_op, block.last_op)
            ends = _last(block).operands[:n]
            new = {k for k, v in enumerate(ends) if v in trial.active and is_float(v)} - found
            if not new:
                return sorted(found)
            found |= new

    def put(
        self,
        op: Operation,
        new: Operation,
        of: Sequence[int],
        number: int,
        order: Sequence[int] | None = None,
        more: Sequence[int] | None = None,
    ) -> None:
        """Replace ``op`` by ``new``, which has its results and the tangents of some of them."""
        new.attributes = dict(op.attributes)
        new.location = op.location
        self.builder.insert(new)
        same = [new.results[k] for k in order or range(number)]
        tangents = [new.results[k] for k in more or range(number, len(new.results))]
        replace(op, same)
        for k, found in zip(of, tangents, strict=True):
            self.learn(same[k], found)
            found.name_hint = None if same[k].name_hint is None else f"t_{same[k].name_hint}"


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


def _end(block: Block, values: Sequence[SSAValue]) -> None:
    """Make ``block`` yield ``values``."""
    last = _last(block)
    last.detach()
    last.erase()
    block.add_op(YieldOp(values))


def _sizes_of(op: ScanOp, number: int) -> Sequence[SSAValue]:
    """Return the size operands of the stacked result ``number``."""
    counts = [shape_of(y)[1:].count(DYNAMIC) for y in op.stacked]
    return op.sizes[sum(counts[:number]) : sum(counts[: number + 1])]


def drop_dead(border: Operation, point: InsertPoint, kept: set[SSAValue | None]) -> None:
    """Erase the unused ops after ``border``."""
    block = border.parent
    assert block is not None
    op = block.last_op if point.insert_before is None else point.insert_before.prev_op
    while op is not None and op is not border:
        before = op.prev_op
        unused = all(r.first_use is None and r not in kept for r in op.results)
        if unused and is_side_effect_free(op):
            op.detach()
            op.erase()
        op = before


@tangent(CastOp)
def _cast(f: Forward, op: CastOp, tangents: Sequence[SSAValue | None]) -> Sequence[SSAValue | None]:
    (given,) = tangents
    return [None if given is None else f.cast(given, element(op.y))]


def expanded(builder: Builder, op: JvpOp) -> Sequence[SSAValue]:
    """Inline the region, with the tangents after each op."""
    forward = Forward(builder)
    for source, given in zip(op.sources, op.tangents, strict=True):
        forward.tangents[source] = given
    first = unpack(builder, op.body.block)
    if first is not None:
        forward.follow(first, op)
    results = [*op.yields, *(forward.given(v) for v in op.targets)]
    arguments = dict(zip(op.body.block.args, op.inputs, strict=True))
    bind(op)
    return [arguments.get(value, value) for value in results]  # pyright: ignore
