"""Check a memory plan: no buffer is used after another one in its place was written.

It walks the function forwards, and knows of each buffer only whether something else was written to
its place since it was allocated: then its contents are lost, and any further use is a fault. It
does not read the live ranges from which the plan was made. A buffer lost in one iteration of a loop
is lost in the next; branches of `kernel.concurrent` may run in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.passes import fail

_VIEWS = memref.SubviewOp | memref.CastOp | memref.ExpandShapeOp | memref.CollapseShapeOp
_WRITES: dict[type[Operation], Callable[[Any], Sequence[SSAValue]]] = {
    kernel.LaunchOp: lambda op: op.outputs,
    kernel.CallbackOp: lambda op: op.outputs,
    memref.CopyOp: lambda op: [op.destination],
    memref.StoreOp: lambda op: [op.memref],
}
"""The buffers that each op writes."""


@dataclass
class PlanCheck:
    """The buffers of one host function, by the values of the function before the plan."""

    overlap: Callable[[SSAValue, SSAValue], bool]
    """Whether two buffers, allocations or outputs, have memory in common."""
    kernels: Mapping[str, kernel.FuncOp]
    buffers: dict[SSAValue, frozenset[SSAValue]] = field(
        default_factory=dict[SSAValue, frozenset[SSAValue]]
    )
    """For each memref the buffers that it may be, or be a view of."""
    placed: list[SSAValue] = field(default_factory=list[SSAValue])
    written: set[SSAValue] = field(default_factory=set[SSAValue])
    """The buffers with contents."""
    lost: set[SSAValue] = field(default_factory=set[SSAValue])

    def run(self, block: Block, outputs: Sequence[SSAValue]) -> None:
        """Check a function; `CompileError` at the first use of a buffer that is lost."""
        for value in outputs:
            self._place(value)
        self.block(block)
        assert block.last_op is not None
        self._use(block.last_op, outputs, ())

    def _place(self, value: SSAValue) -> None:
        self.buffers[value] = frozenset([value])
        self.written.discard(value)
        self.lost.discard(value)
        if value not in self.placed:
            self.placed.append(value)

    def block(self, block: Block) -> None:
        """Walk the ops of a block."""
        for op in block.ops:
            match op:
                case memref.AllocOp():
                    self._place(op.memref)
                case _ if isinstance(op, _VIEWS):
                    self.buffers[op.results[0]] = self._of(op.operands[0])
                case scf.ForOp() | scf.WhileOp():
                    self._use(op, op.operands, ())
                    self._carry(op)
                    self._regions(op, 2)  # the second walk uses buffers that the first one lost
                case kernel.ConcurrentOp():
                    self._regions(op, 2)
                case scf.IfOp():
                    self._branch(op)
                case _:
                    self._check_aliases(op)
                    writes = _WRITES.get(type(op))
                    self._use(op, op.operands, writes(op) if writes is not None else ())

    def _of(self, value: SSAValue) -> frozenset[SSAValue]:
        return self.buffers.get(value, frozenset())

    def _regions(self, op: Operation, times: int) -> None:
        for _ in range(times):
            for region in op.regions:
                self.block(region.block)

    def _branch(self, op: scf.IfOp) -> None:
        """Walk both sides; a buffer that either one writes or loses counts as written or lost."""
        written, lost = set(self.written), set(self.lost)
        after = set[SSAValue](), set[SSAValue]()
        for region in op.regions:
            self.written, self.lost = set(written), set(lost)
            for block in region.blocks:
                self.block(block)
            after[0].update(self.written)
            after[1].update(self.lost)
        self.written, self.lost = after

    def _carry(self, op: Operation) -> None:
        """Let each buffer that a loop carries be any of those passed to it."""
        given = frozenset[SSAValue]().union(*map(self._of, op.operands))
        for value in (*(a for r in op.regions for a in r.block.args), *op.results):
            if isinstance(value.type, MemRefType):
                self.buffers[value] = given

    def _use(self, op: Operation, uses: Sequence[SSAValue], writes: Sequence[SSAValue]) -> None:
        for value in uses:
            if lost := self._of(value) & self.lost:
                name = min(v.name_hint or "a buffer" for v in lost)
                fail(op, f"compiler bug: after plan-memory {op.name} uses {name}, which is lost")
        for value in writes:
            self.written |= self._of(value)
            for buffer in self._of(value):
                for other in self.placed:
                    known = other in self.written and other not in self._of(value)
                    if known and self.overlap(buffer, other):
                        self.lost.add(other)

    def _check_aliases(self, op: Operation) -> None:
        """Check that destinations share memory only with inputs that the kernel lets them."""
        if not isinstance(op, kernel.LaunchOp):
            return
        callee = self.kernels.get(op.callee.root_reference.data)
        pairs = choices.aliases(callee) if callee is not None else ()
        for j in range(len(op.inputs), len(op.operands)):
            for i in range(j):
                one, other = self._of(op.operands[i]), self._of(op.operands[j])
                apart = one.isdisjoint(other)  # one buffer: bufferize has checked it
                meets = any(self.overlap(a, b) for a in one for b in other)
                used = callee is None or any(
                    not isinstance(use.operation, memref.DimOp)
                    for use in callee.body.block.args[i].uses
                )
                if apart and meets and used and (i, j) not in pairs:
                    fail(op, f"compiler bug: plan-memory puts operand {j} over operand {i}")
