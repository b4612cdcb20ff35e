"""Compute the live range of each temporary of a host function, and merge buffers in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices

_VIEWS = (
    memref.SubviewOp | memref.CastOp | memref.ExpandShapeOp | memref.CollapseShapeOp | memref.ViewOp
)
_LOOPS = scf.ForOp | scf.WhileOp | scf.ParallelOp


@dataclass(eq=False)
class Lifetime:
    """The live range of a buffer, from the beginning of one op to the end of another."""

    value: SSAValue
    start: int = -1
    stop: int = -1
    into: Lifetime | None = None
    """The buffer whose memory it shares."""

    def root(self) -> Lifetime:
        """Return the buffer whose memory this one takes."""
        return self if self.into is None else self.into.root()

    def add(self, start: int, stop: int) -> None:
        """Extend the live range to include a span of time."""
        self.start = start if self.start < 0 else min(self.start, start)
        self.stop = max(self.stop, stop)

    def meets(self, other: Lifetime) -> bool:
        """Whether the two live ranges overlap."""
        return self.start <= other.stop and other.start <= self.stop


class Lifetimes:
    """The lifetimes of the temporaries and outputs of one host function."""

    def __init__(
        self, block: Block, outputs: Sequence[SSAValue], kernels: Mapping[str, kernel.FuncOp]
    ) -> None:
        self.kernels = kernels
        self.time: dict[Operation, tuple[int, int]] = {}
        self.known: dict[SSAValue, Lifetime] = {v: Lifetime(v) for v in outputs}
        self._buffers: dict[SSAValue, tuple[Lifetime, ...]] = {
            v: (life,) for v, life in self.known.items()
        }
        self._count = 0
        self._walk(block)
        for op in self.time:
            for value in op.operands:
                for life in self._buffers.get(value, ()):
                    if not isinstance(op, _VIEWS):
                        life.add(*self._span(op, life))
        for op in self.time:
            if isinstance(op, kernel.LaunchOp):
                self._join(op)

    @property
    def temporaries(self) -> list[Lifetime]:
        """The buffers to place, in program order; unused ones have an empty live range."""
        return [
            life
            for life in self.known.values()
            if isinstance(life.value.owner, Operation) and life.into is None
        ]

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            start = self._count
            self._count += 1
            self.time[op] = (start, start)
            if isinstance(op, memref.AllocOp):
                life = self.known[op.memref] = Lifetime(op.memref)
                self._buffers[op.memref] = (life,)
            elif isinstance(op, _VIEWS):
                self._buffers[op.results[0]] = self._buffers.get(op.operands[0], ())
            elif isinstance(op, _LOOPS | scf.IfOp | kernel.ConcurrentOp):
                self._carry(op)
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner)
                self._count += 1
                self.time[op] = (start, self._count - 1)

    def _carry(self, op: Operation) -> None:
        """Let each buffer that a loop carries be any of the buffers passed to it."""
        given = dict.fromkeys(
            life for v in op.operands for life in self._buffers.get(v, ()) if _is_buffer(v)
        )
        inside = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*inside, *op.results):
            if _is_buffer(value):
                self._buffers[value] = tuple(given)

    def _span(self, op: Operation, life: Lifetime) -> tuple[int, int]:
        """Return when ``op`` uses a buffer; inside a loop or concurrent branch, all of its time."""
        block = _home(life)
        span, at = self.time[op], op
        if isinstance(op, _LOOPS):
            span = (self.time[op][0], self.time[op][0])
        while (around := at.parent_block()) is not block and around is not None:
            parent = around.parent_op()
            if parent is None or parent not in self.time:
                break
            if isinstance(parent, _LOOPS | kernel.ConcurrentOp):
                span = self.time[parent]
            at = parent
        return span

    def _join(self, op: kernel.LaunchOp) -> None:
        """Let destinations share the memory of inputs that die at ``op``, where it is allowed."""
        pairs = self._pairs(op)
        for i, j in pairs:
            old, new = self.known.get(op.operands[i]), self.known.get(op.operands[j])
            if old is None or new is None or not self._may_join(op, old.root(), new, j, pairs):
                continue
            root = old.root()
            first, second = (new, root) if _is_output(new) else (root, new)
            first.add(second.start, second.stop)
            second.into = first

    def _may_join(
        self,
        op: kernel.LaunchOp,
        root: Lifetime,
        new: Lifetime,
        j: int,
        pairs: Sequence[tuple[int, int]],
    ) -> bool:
        """Whether one buffer can serve all uses of the two buffers in ``op`` and elsewhere."""
        at, block = self.time[op][0], op.parent_block()
        if _is_output(root) or new.into is not None or root is new:
            return False
        used = [n for n, v in enumerate(op.operands) if _meets(self._buffers.get(v, ()), root)]
        written = [n for n, v in enumerate(op.operands) if _meets(self._buffers.get(v, ()), new)]
        return (
            root.stop == at == new.start
            and root.value.type == new.value.type
            and _home(root) is block
            and _home(new) is block
            and written == [j]
            and all((n, j) in pairs for n in used)
        )

    def _pairs(self, op: kernel.LaunchOp) -> list[tuple[int, int]]:
        """Return the arguments of a launch that may share memory: (read, written)."""
        callee = self.kernels.get(op.callee.root_reference.data)
        return choices.aliases(callee) if callee is not None else []


def _is_output(life: Lifetime) -> bool:
    return isinstance(life.value.owner, Block)


def _home(life: Lifetime) -> Block | None:
    owner = life.value.owner
    return owner if isinstance(owner, Block) else owner.parent_block()


def _meets(lives: Sequence[Lifetime], root: Lifetime) -> bool:
    return any(life.root() is root for life in lives)


def _is_buffer(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)
