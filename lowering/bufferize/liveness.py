"""When the tensors of a host function are looked at, across its loops and branches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Operation, SSAValue, Use

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.places import Places, is_view, slice_of, step_of
from stepwell.lowering.bufferize.views import Part, Steps, covers, disjoint, join, part


@dataclass(frozen=True)
class Query:
    """A write under examination: ``point`` writes the part ``over`` as the tensor ``writing``."""

    places: Places
    point: Operation
    over: Part
    writing: SSAValue


class Liveness:
    """Answers whether what a tensor holds is still wanted when something is about to be written."""

    def __init__(self, block: Block, facts: Callable[[kernel.LaunchOp], Facts]) -> None:
        self.facts = facts
        self._span: dict[Operation, tuple[int, int]] = {}
        self._loops: dict[Operation, tuple[Operation, ...]] = {}
        self._branches: dict[Block, tuple[list[int], list[int]]] = {}
        self.seen_through: Operation | None = None
        """The view through which what was asked for last is still looked at, if it is one."""
        self._count = 0
        self._number(block, ())

    def _number(self, block: Block, loops: tuple[Operation, ...]) -> None:
        for op in block.ops:
            start = self._count
            self._count += 1
            self._loops[op] = loops
            inside = (*loops, op) if isinstance(op, scf.ForOp | scf.WhileOp) else loops
            if not isinstance(op, kernel.LaunchOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self._number(inner, inside)
            self._span[op] = (start, self._count)
            self._count += 1

    def start(self, op: Operation) -> int:
        """Return when ``op`` begins, in program order."""
        return self._span[op][0]

    def end(self, op: Operation) -> int:
        """Return when ``op`` is done."""
        return self._span[op][1]

    def dominates(self, value: SSAValue, op: Operation) -> bool:
        """Whether ``value`` is known at ``op``."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        block = op.parent_block()
        while block is not None and block is not home:
            block = block.parent_block()
        return block is home and self.defined(value) < self.start(op)

    def depth(self, op: Operation) -> int:
        """Return how many loops are around ``op``."""
        return len(self._loops[op])

    def defined(self, value: SSAValue) -> int:
        """Return when ``value`` comes to be; what a block is given, when its op begins."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return self._span[parent][0] if parent is not None and parent in self._span else -1
        return self._span[owner][1] if owner.regions else self._span[owner][0]

    def _comes_after(self, use: Operation, point: Operation, value: SSAValue) -> bool:
        """Whether ``use`` of ``value`` may run after ``point``, without ``value`` made anew."""
        made, at = self.defined(value), self._span[point][0]
        for loop in self._loops[use]:
            start, end = self._span[loop]
            if start < at < end and not start <= made < end:
                return True
        return self._span[use][0] > at and not self._exclusive(use, point)

    def _exclusive(self, use: Operation, point: Operation) -> bool:
        """Whether ``use``, which stands behind ``point``, lies in another branch of an scf.if."""
        starts, ends = self._elses(point.parent_block())
        at = self._span[use][0]
        number = bisect_right(starts, at)
        return number > 0 and at <= ends[number - 1]

    def _elses(self, block: Block | None) -> tuple[list[int], list[int]]:
        """Return where the else-branches begin and end of all ifs that have ``block`` in "then"."""
        if block is None:
            return [], []
        if (known := self._branches.get(block)) is not None:
            return known
        parent = block.parent_op()
        if parent is None or parent not in self._span:
            return [], []
        starts, ends = self._elses(parent.parent_block())
        if isinstance(parent, scf.IfOp) and block.parent is parent.true_region:
            other = parent.false_region.first_block
            if other is not None and other.first_op is not None and other.last_op is not None:
                starts = [self.start(other.first_op), *starts]
                ends = [self.end(other.last_op), *ends]
        self._branches[block] = starts, ends
        return starts, ends

    def wanted(self, query: Query, value: SSAValue, steps: Steps) -> bool:
        """Whether ``value``, seen through ``steps``, is looked at when or after the write."""
        self.seen_through = None
        if value in query.places.undefined:
            return False
        if _ends_beside(query, value):
            return True
        if self.defined(value) > self.start(query.point):
            return False
        return self._wanted(query, value, value, steps)

    def _wanted(self, query: Query, value: SSAValue, through: SSAValue, steps: Steps) -> bool:
        """The same for ``through``, which shows what ``value`` holds."""
        places = query.places
        for use in through.uses:
            op = use.operation
            if op is query.point:
                if self._looks_while_writing(query, use, through, value):
                    return True
            elif is_view(op) and op not in places.copied:
                inner = join(steps, (step_of(places.sizes, op),))
                if not disjoint(places.sizes, part(inner), query.over) and self._wanted(
                    query, value, op.results[0], inner
                ):
                    self.seen_through = op
                    return True
            elif not self._comes_after(op, query.point, value):
                continue
            elif isinstance(op, tensor.InsertSliceOp) and use.index == 1:
                hole = part(join(steps, (slice_of(places.sizes, op),)))
                if not covers(places.sizes, hole, query.over) and self._wanted(
                    query, value, op.result, steps
                ):
                    return True
            elif self._reads(use):
                return True
        return False

    def _looks_while_writing(
        self, query: Query, use: Use, through: SSAValue, value: SSAValue
    ) -> bool:
        """Whether the op that writes looks at what it destroys, now or in a later iteration."""
        if not self._reads(use):
            return False
        op, made = use.operation, self.defined(value)
        for loop in self._loops[op]:
            if not self._span[loop][0] <= made < self._span[loop][1]:
                return True
        if not query.places.same_spot(through, query.writing):
            return True
        if isinstance(op, kernel.LaunchOp):
            facts, inputs = self.facts(op), len(op.inputs)
            number = next((n for n, r in enumerate(op.results) if r is query.writing), -1)
            if use.index < inputs:
                first_copied = query.writing in query.places.begun
                return first_copied or (use.index, number) not in facts.in_place
            return use.index - inputs != number
        if isinstance(op, tensor.InsertSliceOp) and use.index == 0:
            # what is inserted everywhere would be lost under a copy of the destination
            return (op, None) in query.places.writes.get(query.writing, ())
        if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
            return False
        others = (n for n, v in enumerate(op.operands) if v is through)
        return all(_goes_on_as(op, n) is not query.writing for n in others)

    def _reads(self, use: Use) -> bool:
        """Whether ``use`` looks at the elements and not only at the shape."""
        op = use.operation
        if isinstance(op, kernel.LaunchOp):
            facts, inputs = self.facts(op), len(op.inputs)
            if use.index < inputs:
                return facts.reads_input[use.index]
            return facts.reads_destination[use.index - inputs]
        return op.name != "tensor.dim"


def _ends_beside(query: Query, value: SSAValue) -> bool:
    """Whether the end of a branch or loop writes one result, and gives ``value``, another, else.

    Both are wanted from then on, though nothing of the branch or loop may look at them. So they are
    where a loop as a whole copies one of its results from where it ended.
    """
    end = query.point
    parent = end.parent_op()
    given: Sequence[SSAValue]
    match end, parent:
        case scf.YieldOp(), scf.IfOp():
            held, given, after = parent.results, end.operands, parent.results
        case scf.YieldOp(), scf.ForOp():
            held, given, after = parent.body.block.args[1:], end.operands, parent.results
        case scf.YieldOp(), scf.WhileOp():
            held = after = parent.before_region.block.args
            given = end.operands
        case scf.ConditionOp(), scf.WhileOp():
            held, given, after = parent.after_region.block.args, end.args, parent.results
        case ((scf.ForOp() | scf.WhileOp()), _) if query.writing in end.results:
            results = end.results
            beside = value in results and value is not query.writing
            return beside and value.first_use is not None
        case scf.ForOp(), _:
            held, given, after = end.body.block.args[1:], end.iter_args, end.results
        case scf.WhileOp(), _:
            held, given = end.before_region.block.args, end.arguments
            after = held
        case _:
            return False
    if value.owner is not query.writing.owner or value not in held or query.writing not in held:
        return False
    other, this = held.index(value), held.index(query.writing)
    used = value.first_use is not None or after[other].first_use is not None
    defined = given[other] not in query.places.undefined
    return given[other] is not given[this] and used and defined


def _goes_on_as(op: Operation, index: int) -> SSAValue | None:
    """Return what a loop or branch calls the operand that it is handed."""
    parent = op.parent_op()
    match op:
        case scf.ForOp():
            return op.body.block.args[index - 2] if index >= 3 else None
        case scf.WhileOp():
            return op.before_region.block.args[index]
        case scf.ConditionOp() if isinstance(parent, scf.WhileOp):
            return parent.after_region.block.args[index - 1] if index else None
        case scf.YieldOp() if isinstance(parent, scf.ForOp):
            return parent.body.block.args[index + 1]
        case scf.YieldOp() if isinstance(parent, scf.WhileOp):
            return parent.before_region.block.args[index]
        case scf.YieldOp() if isinstance(parent, scf.IfOp):
            return parent.output[index]
        case _:
            return None
