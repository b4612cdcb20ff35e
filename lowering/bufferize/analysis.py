"""Decide for every tensor of a host function which memory it takes, so that few copies remain.

Each tensor first gets a buffer of its own. Wherever the program says "this tensor goes on as that
one" (a destination and its result, a piece and the whole it is inserted in, what a loop hands on,
what a function returns) there is a *tie*; a tie is kept by uniting the two buffers, and broken by
a copy. Buffers may be united where no tensor in one is still wanted when the other is written,
see `liveness`. Ties inside loops come first, ties to the function's results last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.edges import surrounded
from stepwell.lowering.bufferize.ends import Ends
from stepwell.lowering.bufferize.exchanges import Exchanges
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.liveness import Liveness
from stepwell.lowering.bufferize.places import Places, Storage, rows_of, slice_of, step_of
from stepwell.lowering.bufferize.returns import settle_results, updated_arguments
from stepwell.lowering.bufferize.ties import Edges, Loop, Tie, What
from stepwell.lowering.bufferize.unions import Unions
from stepwell.lowering.bufferize.views import Step, Steps, buffer_of, join
from stepwell.transforms.passes import fail

LIKELY = 256
"""What a size that only the run knows is taken to be, where costs are compared."""
ROUNDS = 8
"""How often views are taken out that keep something larger from being written in place."""


class Refused(Exception):
    """An optimistic assumption about a loop failed: the analysis begins again without it."""

    def __init__(self, op: Operation) -> None:
        super().__init__()
        self.op = op


def analysis_of(function: func.FuncOp, facts: Callable[[kernel.LaunchOp], Facts]) -> Analysis:
    """Return the places of the tensors of ``function``."""
    refused: frozenset[Operation] = frozenset()
    apart: frozenset[Operation] = frozenset()
    rounds, best = 0, None
    while True:
        try:
            found = Analysis(function, facts, refused, apart)
        except Refused as refusal:
            refused |= {refusal.op}
            continue
        rounds += 1
        if best is None or found.cost < best.cost:
            best = found
        if rounds > ROUNDS or found.wishes <= apart:
            return best
        apart |= found.wishes


class Analysis:
    """The places of all tensors of one host function, and the ties between them."""

    def __init__(
        self,
        function: func.FuncOp,
        facts: Callable[[kernel.LaunchOp], Facts],
        refused: frozenset[Operation],
        apart: frozenset[Operation] = frozenset(),
    ) -> None:
        block = function.body.block
        self.refused = refused
        """Insertions that are not to be taken for the new part of what a loop exchanges, and loops
        whose results are copied, for they may be in a buffer that is written while they are read.
        """
        self.apart = apart
        """Slices that are copied, so that what they are slices of can be written."""
        self.wishes: set[Operation] = set()
        """Those that should be."""
        self.taken: list[tuple[Operation, Loop, SSAValue]] = []
        """Ops that write what another slot of a loop takes over from a slot, with its buffer."""
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
        self.unions = Unions(self.sizes, self.places, self.liveness, self._exchanged, self._begins)
        self.ends = Ends(self.places, self.unions, self.exchanges)
        self.updated: dict[int, Storage] = {}
        """The memory of arguments that results replace, by number of the result."""
        updated = updated_arguments(function)
        for number, argument in enumerate(block.args):
            if isinstance(argument.type, TensorType):
                resource = _has_resource(function, number)
                kind = "constant" if resource else "updated" if number in updated else "input"
                storage = self.places.new(argument, kind)
                if kind == "updated":
                    self.updated[updated[number]] = storage
        self._visit(block)
        self._settle()
        last = block.last_op
        assert isinstance(last, func.ReturnOp)
        self.last = last
        self.returned = settle_results(last.operands, self.updated, self.places, self.unions)
        if (loop := self.ends.clash()) is not None:
            raise Refused(loop)

    @property
    def cost(self) -> int:
        """How many elements are copied, those in loops often."""
        copied = [(op, value) for op, value, _ in self.broken if value not in self.places.undefined]
        copied += [(op, op.results[0]) for op in self.apart]
        copied += [
            (self.last, v) for v, r in zip(self.last.operands, self.returned, strict=True) if r.why
        ]
        return sum(
            _count(self.sizes.shape(v)) * LIKELY ** self.liveness.depth(op) for op, v in copied
        )

    def _exchanged(self, a: Storage, b: Storage) -> bool:
        return any(loop.exchanges(a, b, self.places) for loop in self.loops.values())

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
        if op in self.apart:
            self.places.copied.add(op)
            self.places.new(result)
            self._written(result, op)
        elif not self.places.view(result, source, step):
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

    def stack(self, op: kernel.StackOp) -> None:
        """A stack: each part goes on as the beginning of a row."""
        self.places.new(op.result)
        for part, (row, seen) in zip(op.parts, rows_of(self.sizes, op.parts), strict=True):
            tie = Tie("insert", op, part, op.result, row, self.liveness.start(op), seen=seen)
            self.ties.append(tie)
            self._written(op.result, op, row)

    def insert(self, op: tensor.InsertOp) -> None:
        """One element replaced: the destination goes on as the result."""
        self.places.new(op.result)
        self._tie("update", op, op.dest, op.result)
        self._written(op.result, op)

    def made(self, op: tensor.FromElementsOp | tensor.SplatOp | kernel.CallbackOp) -> None:
        """A tensor made of scalars, or by a function of the host."""
        for result in op.results:
            self.places.new(result)
            self._written(result, op)

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
        tie.edges = Edges(loop, slot, value, boxes, [op.result for op in found])
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
        taken = self._taken_over(tie)
        ends = self.places.writes[taken[1]] if taken is not None else []
        self.places.writes.update({taken[1]: []} if taken is not None else {})
        tie.broken = self._unite(tie)
        if taken is not None:
            self.places.writes[taken[1]] = ends
            if not tie.broken:
                self.taken.append((tie.at, *taken))
        if tie.broken:
            self._wish(tie)
            if tie.what == "update" and tie.value not in self.places.undefined:
                self.places.begun.add(tie.into)
            self.broken[tie.at, tie.value, tie.into] = tie.broken
            if tie.what == "exit":
                self._written(tie.value, tie.at)
            if removed and tie.value not in self.places.undefined:
                writes.append(pending)

    def _taken_over(self, tie: Tie) -> tuple[Loop, SSAValue] | None:
        """Return the loop and slot whose buffer another slot takes over, with what is made in it.

        That is so where the loop exchanges its buffers in the end, as `_close` checks. What reads
        the slot itself is better written into another buffer.
        """
        if tie.what != "update" or tie.at in self.refused or not tie.value.has_one_use():
            return None
        storage, _ = self.places.of(tie.value)
        for loop in self.loops.values():
            if not loop.op.is_ancestor(tie.at):
                continue
            for slot, value in zip(loop.slots, loop.yields.operands, strict=True):
                is_here = slot in self.places and self.places.of(slot)[0] is storage
                if is_here and value is not tie.into and tie.into in loop.yields.operands:
                    return loop, slot
        return None

    def _wish(self, tie: Tie) -> None:
        """Note a slice that alone keeps something larger from being written in place."""
        view = self.unions.view
        if not isinstance(view, tensor.ExtractSliceOp):
            return
        times = 1 if tie.what == "update" else 2
        large = self.sizes.shape(tie.value)
        outer = self.liveness.depth(view) > self.liveness.depth(tie.at)
        if not outer and times * _count(self.sizes.shape(view.result)) <= _count(large):
            self.wishes.add(view)

    def _target(self, tie: Tie) -> tuple[Storage, Steps]:
        if tie.what == "init":
            loop = self.loops[tie.at]
            if (number := loop.number.get(tie.into)) is not None:
                return self.places.root(loop.outside[number], ())
        return self.places.of(tie.into)

    def _unite(self, tie: Tie) -> str:
        target, steps = self._target(tie)
        steps = join(steps, tie.steps)
        source, path = self.places.of(tie.value)
        if (source, path) == (target, steps):
            return ""
        if source is target:
            return "it would overlap with itself"
        tries = [(source, target, steps, path), (target, source, path, steps)]
        if tie.what == "update":
            tries.reverse()
        return self.unions.unite(tries)

    # -- loops that exchange buffers

    def _close(self, loop: Loop) -> None:
        for tie in loop.ties:
            self._keep(tie)
        self.exchanges.close(loop)
        broken = {t.into for t in loop.ties if t.broken}
        for op, other, slot in self.taken:
            if other is loop and slot in broken:
                raise Refused(op)

    def _begins(self, value: SSAValue, op: Operation) -> Storage | None:
        """Return the buffer in which ``value`` begins, where ``op`` exchanges buffers."""
        number = loop.begins.get(value) if (loop := self.loops.get(op)) is not None else None
        if loop is None or number is None:
            return None
        return self.places.root(loop.outside[number], ())[0]

    def _exit(self, tie: Tie) -> bool:
        """Settle where the result of an exchanging loop is; False where the loop does not."""
        if not self.ends.settle(tie, self.loops[tie.at], tie.at in self.refused):
            return False
        if tie.broken:
            self.broken[tie.at, tie.value, tie.into] = tie.broken
            self._written(tie.value, tie.at)
        return True


def _has_resource(function: func.FuncOp, number: int) -> bool:
    return function.arg_attrs is not None and "nd.resource" in function.arg_attrs.data[number].data


def _count(sizes: Shape) -> int:
    """Return how many elements there are, an unknown size taken to be large."""
    return prod(LIKELY if n.number is None else n.number for n in sizes)


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
    kernel.StackOp: Analysis.stack,
    tensor.InsertOp: Analysis.insert,
    tensor.FromElementsOp: Analysis.made,
    tensor.SplatOp: Analysis.made,
    kernel.CallbackOp: Analysis.made,
    scf.IfOp: Analysis.branch,
    scf.ForOp: Analysis.for_loop,
    scf.WhileOp: Analysis.while_loop,
    tensor.DimOp: _nothing,
    tensor.ExtractOp: _nothing,
    func.ReturnOp: _nothing,
    scf.YieldOp: _nothing,
    scf.ConditionOp: _nothing,
}
