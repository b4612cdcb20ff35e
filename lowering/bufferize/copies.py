"""The tensors of a host function, the copies between them, and the buffers that loops carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.analysis.sizes import Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import Assignment, Storage
from stepwell.lowering.bufferize.intervals import Holes, Positions, Variable
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.views import Slice, Steps, join, run_time_values
from stepwell.transforms.passes import fail

Kind: TypeAlias = Literal["update", "insert", "slice", "branch", "init", "next", "hand", "exit"]


@dataclass(eq=False)
class Copy:
    """A copy of ``value`` to a part of ``into``, at the op ``at``."""

    kind: Kind
    at: Operation
    value: SSAValue
    into: SSAValue
    steps: Steps = ()
    """The view of ``into`` that is written."""
    seen: Steps = ()
    """The view of ``value`` that is read."""
    why: str = ""
    """Why the copy could not be removed."""
    removed: bool = False
    """Whether it is known to write nothing: its ends are one place for ever, or a loop does without
    it, as it exchanges buffers, or made the copy before it began."""


@dataclass(eq=False)
class Loop:
    """The slots that a loop carries between iterations, and the buffers that it exchanges."""

    op: scf.ForOp | scf.WhileOp
    slots: Sequence[BlockArgument]
    yields: scf.YieldOp
    nexts: list[Copy] = field(default_factory=list[Copy])
    carried: list[Storage] = field(default_factory=list[Storage])
    """The exchanged buffers by their names in the body: those of slots, then the spare ones."""
    outside: list[Storage] = field(default_factory=list[Storage])
    """The buffer that each of them is in the first iteration."""
    following: list[int] = field(default_factory=list[int])
    """The permutation of the exchanged buffers from one iteration to the next, by number."""
    ends: list[list[Storage]] = field(default_factory=list[list[Storage]])
    """The buffers of `outside` that each of them may be after the last iteration."""
    results: dict[int, Storage] = field(default_factory=dict[int, Storage])
    """The buffer after the loop, by number, of each that has several possible ends."""
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The index in ``carried`` of the buffer of each slot that exchanges it, and of its value."""


class Copies:
    """The tensors of a host function and the copies between them, which ``rules`` insert."""

    def __init__(
        self,
        function: func.FuncOp,
        summary: Callable[[kernel.LaunchOp], KernelSummary],
        rules: Mapping[type[Operation], Callable[[Copies, Any], None]],
    ) -> None:
        self.summary, self._rules = summary, rules
        self.sizes = Sizes(function.body.block.args)
        self.positions = Positions(function.body.block)
        self.assigned = Assignment(self.sizes)
        self.of: dict[Operation, list[Copy]] = {}
        """The copies at each op."""
        self.loops: dict[Operation, Loop] = {}
        self.extras: dict[Operation, list[Storage]] = {}
        """The temporaries that each launch needs from the host."""
        self.chains: dict[Operation, tuple[list[tensor.InsertSliceOp], list[Slice]]] = {}
        """Maps an insertion to itself and those that follow it in a chain, and the slices that they
        replace."""
        self.variables: dict[SSAValue, Variable] = {}
        self._views: dict[SSAValue, tuple[SSAValue, Steps]] = {}
        self.undefined: set[SSAValue] = set()
        """Tensors without a defined element: nothing has written them."""
        self.updated: dict[int, Storage] = {}
        """The memory of each argument that a result replaces, by number of the result."""

    def visit(self, block: Block) -> None:
        """Insert the copies of all ops of ``block``."""
        for op in block.ops:
            if (rule := self._rules.get(type(op))) is not None:
                rule(self, op)
            elif any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                first = {"func.call": "inline-calls", "linalg.generic": "outline-kernels"}
                name = first.get(op.name)
                help = f"run {name} first" if name else ""
                fail(op, f"bufferize does not know {op.name} on the host", help)

    def new(
        self, value: SSAValue, made: int, storage: Storage | None = None, steps: Steps = ()
    ) -> Variable:
        """Return the variable of a tensor; its buffer is a new one if ``storage`` is None."""
        variable = self.variables[value] = Variable(value, made, made)
        self.assigned.assign(variable, storage or self.assigned.storage(value), steps)
        return variable

    def alias(self, value: SSAValue, source: SSAValue, steps: Steps) -> bool:
        """Make ``value`` a view of ``source``; return False if the layout permits none."""
        if not self.assigned.view(value, source, steps):
            return False
        root, path = self.seen(source)
        self._views[value] = root, join(path, steps)
        return True

    def seen(self, value: SSAValue) -> tuple[SSAValue, Steps]:
        """Return the tensor that ``value`` is a view of, and the view."""
        return self._views.get(value, (value, ()))

    def read(
        self,
        value: SSAValue,
        op: Operation,
        when: int,
        but: Sequence[Slice] = (),
        operand: int = -1,
    ) -> None:
        """Extend the live range of ``value`` to its read by ``op``, except the slices ``but``."""
        root, steps = self.seen(value)
        if root in self.undefined:
            return
        variable, position = self.variables[root], self.positions.start(op) + when
        made = variable.start
        if isinstance(root.owner, scf.IfOp):
            made = self.positions.end(root.owner)
        around = self.positions.outermost(made, op)
        kept = [box for box in but if around is None or self.is_invariant((box,), around)]
        holes = Holes(join(steps, (box,)) if steps else (box,) for box in kept) if kept else ()
        spans = self.positions.spans(made, op, position)
        reads = variable.live(spans, steps, holes)
        if operand >= 0:
            reads.operands.setdefault(position, []).append(operand)

    def is_invariant(self, steps: Steps, loop: Operation | None) -> bool:
        """Whether a view is loop-invariant: the same in all iterations of ``loop``."""
        return loop is None or all(
            self.positions.dominates(v, loop) for v in run_time_values(self.sizes, steps)
        )

    def copy(
        self,
        kind: Kind,
        at: Operation,
        value: SSAValue,
        into: SSAValue,
        position: int,
        steps: Steps = (),
        seen: Steps = (),
    ) -> Copy:
        """Insert a copy at an op; it writes at a position, unless its source is undefined."""
        copy = Copy(kind, at, value, into, steps, seen)
        self.of.setdefault(at, []).append(copy)
        if self.seen(value)[0] not in self.undefined:
            self.variables[into].write(position, steps, copy)
        return copy

    def remove(self, copy: Copy) -> None:
        """Record that the ends of a copy are one place for ever."""
        copy.removed = True
        if (variable := self.variables.get(copy.into)) is not None:
            variable.remove(copy)
