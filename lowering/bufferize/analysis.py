"""Decide for every tensor of a host function which memory it takes, so that few copies remain.

Each tensor first gets a buffer of its own. Wherever the program says "this tensor goes on as that
one" (a destination and its result, a piece and the whole it is inserted in, what a loop hands on,
what a function returns) there is a *tie*; a tie is kept by uniting the two buffers, and broken by
a copy. Buffers may be united where no tensor in one is still wanted when the other is written,
see `liveness`. Ties inside loops come first, ties to the function's results last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.edges import surrounded
from stepwell.lowering.bufferize.exchanges import Exchanges
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.liveness import Liveness, Query
from stepwell.lowering.bufferize.places import Places, Storage, slice_of, step_of
from stepwell.lowering.bufferize.ties import Edges, Loop, Tie, What
from stepwell.lowering.bufferize.views import (
    Part,
    Slice,
    Step,
    Steps,
    buffer_of,
    disjoint,
    inverse,
    join,
    part,
)
from stepwell.transforms.passes import fail
from stepwell.transforms.sizes import Shape, Sizes


class Refused(Exception):
    """An optimistic assumption about a loop failed: the analysis begins again without it."""

    def __init__(self, op: Operation) -> None:
        super().__init__()
        self.op = op


def analysis_of(function: func.FuncOp, facts: Callable[[kernel.LaunchOp], Facts]) -> Analysis:
    """Return the places of the tensors of ``function``."""
    refused: frozenset[Operation] = frozenset()
    while True:
        try:
            return Analysis(function, facts, refused)
        except Refused as refusal:
            refused |= {refusal.op}


class _Member(NamedTuple):
    """A tensor of a buffer under examination: where in it, and what writes it there."""

    value: SSAValue
    steps: Steps
    part: Part
    writes: list[Query]


class Analysis:
    """The places of all tensors of one host function, and the ties between them."""

    def __init__(
        self,
        function: func.FuncOp,
        facts: Callable[[kernel.LaunchOp], Facts],
        refused: frozenset[Operation],
    ) -> None:
        block = function.body.block
        self.refused = refused
        """Insertions that are not to be taken for the new part of what a loop exchanges, and loops
        whose results are copied, for they may be in a buffer that is written while they are read.
        """
        self.ended: list[tuple[Loop, int, Storage]] = []
        """Results in one of the buffers that a loop exchanges, with what the slot's was first."""
        self.there: set[Operation] = set()
        """Insertions whose destination is in place around them."""
        self.sizes = Sizes(block.args)
        self.places = Places(self.sizes)
        self.facts = facts
        self.liveness = Liveness(block, facts)
        self.ties: list[Tie] = []
        self.broken: dict[tuple[Operation, SSAValue, SSAValue], str] = {}
        self.loops: dict[Operation, Loop] = {}
        self.exchanges = Exchanges(self.sizes, self.places, self.liveness, self.broken)
        self.extras: dict[Operation, list[Storage]] = {}
        self.outputs: list[Storage] = []
        self.returned: list[str] = []
        """For each result why it is copied, "" where it is not."""
        for number, argument in enumerate(block.args):
            if isinstance(argument.type, TensorType):
                resource = _has_resource(function, number)
                self.places.new(argument, "constant" if resource else "input")
        self._visit(block)
        self._settle()
        self._return(block)
        self._check_ended()

    # -- what there is

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            if (rule := _VISIT.get(type(op))) is not None:
                rule(self, op)
            elif any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                first = {"func.call": "inline-calls", "linalg.generic": "outline-kernels"}.get(
                    op.name
                )
                help = f"run {first} first" if first else ""
                fail(op, f"bufferize does not know {op.name} on the host", help)

    def _written(self, value: SSAValue, op: Operation, step: Step | None = None) -> None:
        self.places.writes.setdefault(value, []).append((op, step))

    def _tie(self, what: What, at: Operation, value: SSAValue, into: SSAValue) -> Tie:
        tie = Tie(what, at, value, into, None, self.liveness.start(at))
        self.ties.append(tie)
        if self._copies(tie):
            self._written(into, at)
        elif what == "update":
            self.places.begun.add(into)
        return tie

    def _copies(self, tie: Tie) -> bool:
        """Whether breaking the tie writes more than its op does anyway."""
        launched = tie.what == "update" and isinstance(tie.at, kernel.LaunchOp)
        return tie.what != "exit" and not launched

    def empty(self, op: tensor.EmptyOp) -> None:
        """An empty tensor: memory that nobody has set."""
        self.places.new(op.tensor)
        self.places.undefined.add(op.tensor)

    def constant(self, op: arith.ConstantOp) -> None:
        """A dense constant: a global of the module."""
        if isinstance(op.result.type, TensorType):
            self.places.new(op.result, "constant")

    def view(self, op: Operation) -> None:
        """A slice or reshape: a view, or a copy where the elements do not lie as they must."""
        source, result = op.operands[0], op.results[0]
        step = step_of(self.sizes, op)
        if not self.places.view(result, source, step):
            self.places.copied.add(op)
            self.places.put(result, self.places.storage(source), (step,))
            self._written(result, op)

    def launch(self, op: kernel.LaunchOp) -> None:
        """A launch: each result is written, where the kernel wishes over its destination."""
        facts = self.facts(op)
        for number, (into, result) in enumerate(zip(op.outputs, op.results, strict=True)):
            self.places.new(result)
            self._written(result, op)
            if facts.reads_destination[number]:
                self._tie("update", op, into, result)
        self.extras[op] = [
            Storage("local", buffer_of(c.type), _outside(self.sizes, op, facts, shape), beside=op)
            for c, shape in zip(facts.extras, facts.extra_shapes, strict=True)
        ]

    def insert_slice(self, op: tensor.InsertSliceOp) -> None:
        """An insertion: the destination goes on as the result, the source as a slice of it."""
        self.places.new(op.result)
        self._tie("update", op, op.dest, op.result)
        tie = Tie("insert", op, op.source, op.result, slice_of(self.sizes, op))
        tie.position = self.liveness.start(op)
        self.ties.append(tie)
        self._written(op.result, op, tie.step)

    def insert(self, op: tensor.InsertOp) -> None:
        """One element replaced: the destination goes on as the result."""
        self.places.new(op.result)
        self._tie("update", op, op.dest, op.result)
        self._written(op.result, op)

    def made(self, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
        """A tensor made of scalars."""
        self.places.new(op.result)
        self._written(op.result, op)

    def branch(self, op: scf.IfOp) -> None:
        """A branch: what either side yields goes on as the result."""
        for result in op.output:
            if isinstance(result.type, TensorType):
                self.places.new(result)
        for region in op.regions:
            self._visit(region.block)
            last = region.block.last_op
            assert last is not None
            for value, result in zip(last.operands, op.output, strict=True):
                if isinstance(result.type, TensorType):
                    self._tie("branch", last, value, result)

    def for_loop(self, op: scf.ForOp) -> None:
        """A loop: what it carries begins as its operand and ends as its result."""
        block = op.body.block
        last = block.last_op
        assert isinstance(last, scf.YieldOp)
        loop = self.loops[op] = Loop(op, block.args[1:], last)
        self._slots(loop, op.iter_args)
        self._visit(block)
        self._nexts(loop)
        for slot, result in zip(loop.slots, op.res, strict=True):
            if isinstance(result.type, TensorType):
                self.places.new(result)
                self._tie("exit", op, result, slot).position = self.liveness.defined(result)

    def while_loop(self, op: scf.WhileOp) -> None:
        """A while: its first region hands to its second, which hands to the next iteration."""
        before, after = op.before_region.block, op.after_region.block
        condition, last = before.last_op, after.last_op
        assert isinstance(condition, scf.ConditionOp) and isinstance(last, scf.YieldOp)
        loop = self.loops[op] = Loop(op, before.args, last)
        self._slots(loop, op.arguments)
        self._visit(before)
        for value, argument, result in zip(condition.args, after.args, op.res, strict=True):
            if not isinstance(value.type, TensorType):
                continue
            self.places.new(result)
            if value in loop.slots:
                self.places.put(argument, *self.places.of(value))
                self._tie("exit", op, result, value).position = self.liveness.defined(result)
            else:
                self.places.new(argument)
                self._tie("hand", condition, value, argument)
                tie = self._tie("exit", op, result, argument)
                tie.position = self.liveness.defined(result)
        self._visit(after)
        self._nexts(loop)

    def _slots(self, loop: Loop, inits: Sequence[SSAValue]) -> None:
        for init, slot in zip(inits, loop.slots, strict=True):
            if isinstance(slot.type, TensorType):
                self.places.new(slot)
                self._tie("init", loop.op, init, slot)

    def _nexts(self, loop: Loop) -> None:
        for value, slot in zip(loop.yields.operands, loop.slots, strict=True):
            if isinstance(slot.type, TensorType):
                if self.sizes.shape(value) != self.sizes.shape(slot):
                    fail(loop.op, "a tensor changes its size from one iteration to the next")
                tie = Tie("next", loop.yields, value, slot)
                tie.position = self.liveness.start(loop.yields)
                self._written(slot, loop.yields)
                loop.ties.append(tie)
                self._surrounded(loop, value, slot)

    def _surrounded(self, loop: Loop, value: SSAValue, slot: BlockArgument) -> None:
        """Note where a loop only inserts into what it carries."""
        block = loop.yields.parent_block()
        assert block is not None
        place = self.places.of(slot)
        stops = {a for a in (slot, *block.args) if a in self.places and self.places.of(a) == place}
        found = surrounded(self.sizes, value, slot, stops)
        if not found or found[0].parent is not block or found[0] in self.refused:
            return
        tie = next(t for t in self.ties if t.at is found[0] and t.what == "update")
        boxes = [slice_of(self.sizes, op) for op in found]
        tie.edges = Edges(loop, slot, value, boxes)
        self.places.writes[tie.into].remove(tie.write)

    # -- which ties can be kept

    def _settle(self) -> None:
        depth = self.liveness.depth
        rows = [
            (-depth(t.at), self.liveness.start(t.edges.loop.yields), 2, n)
            if t.edges is not None
            else (-depth(t.at), t.position, 0, n)
            for n, t in enumerate(self.ties)
        ]
        loops = list(self.loops.values())
        rows += [
            (-depth(each.yields), self.liveness.start(each.yields), 1, n)
            for n, each in enumerate(loops)
        ]
        for _, _, kind, number in sorted(rows):
            if kind == 1:
                self._close(loops[number])
            elif (edges := self.ties[number].edges) is None:
                self._keep(self.ties[number])
            elif self.exchanges.keeps_edges(self.ties[number], edges):
                self.there.add(self.ties[number].at)
            else:
                raise Refused(self.ties[number].at)

    def _keep(self, tie: Tie) -> None:
        """Unite what the tie joins, or note why not."""
        if tie.what == "exit" and self._exit(tie):
            return
        writes = self.places.writes.get(tie.into, [])
        pending = tie.write
        removed = self._copies(tie) and pending in writes
        if removed:
            writes.remove(pending)
        self.places.begun.discard(tie.into)
        tie.broken = self._unite(tie)
        if tie.broken:
            if tie.what == "update" and tie.value not in self.places.undefined:
                self.places.begun.add(tie.into)
            self.broken[tie.at, tie.value, tie.into] = tie.broken
            if tie.what == "exit":
                self._written(tie.value, tie.at)
            if removed and tie.value not in self.places.undefined:
                writes.append(pending)

    def _target(self, tie: Tie) -> tuple[Storage, Steps]:
        if tie.what == "init":
            loop = self.loops[tie.at]
            if (number := loop.number.get(tie.into)) is not None:
                return self.places.root(loop.outside[number], ())
        return self.places.of(tie.into)

    def _unite(self, tie: Tie) -> str:
        target, steps = self._target(tie)
        if tie.step is not None:
            steps = join(steps, (tie.step,))
        source, path = self.places.of(tie.value)
        if (source, path) == (target, steps):
            return ""
        if source is target:
            return "it would overlap with itself"
        tries = [(source, target, steps, path), (target, source, path, steps)]
        if tie.what == "update":
            tries.reverse()
        why = ""
        for inner, outer, to, way in tries:
            back = inverse(way)
            if inner.kind != "local" or outer.kind in ("input", "constant") or back is None:
                why = why or _why_not(inner, outer)
                continue
            view = join(to, back)
            if not self.places.fits(inner, outer, view) or not self._in_time(inner, outer, view):
                why = "its place is not known early enough, or is not contiguous"
                continue
            if clash := self._clash(inner, outer, view):
                return clash
            self.places.unite(inner, outer, view)
            return ""
        return why

    def _in_time(self, inner: Storage, outer: Storage, view: Steps) -> bool:
        """Whether where ``view`` lies is known when ``inner`` is first written."""
        sizes = chain.from_iterable(
            (*s.offsets, *s.sizes, *s.strides) for s in view if isinstance(s, Slice)
        )
        late = [v for n in sizes for v in self.sizes.unknowns(n)]
        writers = [op for v, _ in inner.members for op, _ in self.places.writes.get(v, ())]
        if outer.kind == "result":
            late.append(outer.members[0][0])
        return all(self.liveness.dominates(v, op) for v in late for op in writers)

    def _clash(self, inner: Storage, outer: Storage, view: Steps) -> str:
        """Return why the two cannot be one, "" where they can."""
        if any(loop.exchanges(inner, outer, self.places) for loop in self.loops.values()):
            return "a loop exchanges them"
        self.places.pending = (inner, outer, view)
        try:
            theirs = [self._member(b, path) for b, path in outer.members]
            for a, path in inner.members:
                mine = self._member(a, join(view, path))
                for other in theirs:
                    for x, y in ((mine, other), (other, mine)):
                        if self._overwrites(x, y):
                            return (
                                f"{_name(y.value)} is still read after {_name(x.value)} is written"
                            )
        finally:
            self.places.pending = None
        return ""

    def _member(self, value: SSAValue, steps: Steps) -> _Member:
        writes = self.places.parts_written(value, steps)
        queries = [Query(self.places, op, over, value) for op, over in writes]
        return _Member(value, steps, part(steps), queries)

    def _overwrites(self, x: _Member, y: _Member) -> bool:
        """Whether writing ``x`` destroys what is still wanted of ``y``."""
        for query in x.writes:
            if not disjoint(self.sizes, query.over, y.part) and self.liveness.wanted(
                query, y.value, y.steps
            ):
                return True
        return False

    # -- loops that exchange buffers

    def _close(self, loop: Loop) -> None:
        for tie in loop.ties:
            self._keep(tie)
        self.exchanges.close(loop)

    def _exit(self, tie: Tie) -> bool:
        """Settle where the result of an exchanging loop is; False where the loop does not."""
        loop = self.loops[tie.at]
        if (number := loop.number.get(tie.into)) is None:
            return False
        inner, _ = self.places.of(tie.value)
        ends = self.exchanges.ends(loop, number)
        if len(ends) == 1:
            outer, steps = ends[0]
            tie.broken = self._clash(inner, outer, steps)
            if not tie.broken:
                self.places.unite(inner, outer, steps)
        elif tie.at in self.refused:
            tie.broken = "which buffer the loop ends in is not known, and one is written too early"
        else:
            inner.kind = "result"
            self.ended.append((loop, number, inner))
        if tie.broken:
            self.broken[tie.at, tie.value, tie.into] = tie.broken
            self._written(tie.value, tie.at)
        return True

    def _check_ended(self) -> None:
        """Check that no buffer in which a loop may have ended is written while that is read."""
        for loop, number, inner in self.ended:
            if any(self._clash(inner, *end) for end in self.exchanges.ends(loop, number)):
                raise Refused(loop.op)

    # -- results

    def _return(self, block: Block) -> None:
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        for value in last.operands:
            storage = self.places.storage(value, "output")
            self.outputs.append(storage)
        for value, output in zip(last.operands, self.outputs, strict=True):
            storage, path = self.places.of(value)
            back = inverse(path)
            if storage.kind == "output":
                why = "it is also, or is part of, another result"
            elif storage.kind != "local" or back is None:
                why = _why_not(storage, output)
            elif not self.places.fits(storage, output, back):
                why = "its elements do not lie in order"
            elif not (why := self._clash(storage, output, back)):
                self.places.unite(storage, output, back)
            self.returned.append(why)


def _has_resource(function: func.FuncOp, number: int) -> bool:
    return function.arg_attrs is not None and "nd.resource" in function.arg_attrs.data[number].data


def _why_not(inner: Storage, outer: Storage) -> str:
    for storage in (outer, inner):
        if storage.kind == "input":
            return "an argument is never written"
        if storage.kind == "constant":
            return "a constant is never written"
        if storage.kind == "result":
            return "which buffer a loop ends in depends on its number of iterations"
    return "it is part of another buffer"


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"


def _outside(sizes: Sizes, op: kernel.LaunchOp, facts: Facts, shape: Shape) -> Shape:
    """Return sizes told by a kernel's arguments as sizes told by those of the host function."""
    return tuple(facts.sizes.told(n, op.operands, sizes) for n in shape)


def _nothing(analysis: Analysis, op: Operation) -> None:
    """An op that makes no tensor."""


_VISIT: dict[type[Operation], Callable[[Analysis, Any], None]] = {
    tensor.EmptyOp: Analysis.empty,
    arith.ConstantOp: Analysis.constant,
    tensor.ExtractSliceOp: Analysis.view,
    tensor.ExpandShapeOp: Analysis.view,
    tensor.CollapseShapeOp: Analysis.view,
    tensor.CastOp: Analysis.view,
    kernel.LaunchOp: Analysis.launch,
    tensor.InsertSliceOp: Analysis.insert_slice,
    tensor.InsertOp: Analysis.insert,
    tensor.FromElementsOp: Analysis.made,
    tensor.SplatOp: Analysis.made,
    scf.IfOp: Analysis.branch,
    scf.ForOp: Analysis.for_loop,
    scf.WhileOp: Analysis.while_loop,
    tensor.DimOp: _nothing,
    tensor.ExtractOp: _nothing,
    func.ReturnOp: _nothing,
    scf.YieldOp: _nothing,
    scf.ConditionOp: _nothing,
}
