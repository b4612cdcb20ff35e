"""Alias analysis of buffers, through views and values carried by loops.

The analysis checks modules with their own addresses. A loop that carries a caller's buffer or a
constant must not write to it, and a buffer allocated in a loop must not outlive an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, Region, SSAValue

from stepwell.lowering.emit.parameters import root
from stepwell.transforms.passes import fail


class Aliases:
    """Sets of buffers of one function that may alias, as a union-find structure."""

    def __init__(self, region: Region) -> None:
        self._leader: dict[SSAValue, SSAValue] = {}
        self._carrying: list[tuple[Operation, SSAValue]] = []
        for op in region.walk():
            for values in _carried(op):
                buffers = [v for v in values if isinstance(v.type, MemRefType)]
                self._carrying += [(op, v) for v in buffers[1:]]
                for value in buffers[1:]:
                    self._leader[self._of(value)] = self._of(buffers[0])
        self._allocated: dict[SSAValue, list[Operation]] = {}
        for op in region.walk():
            if isinstance(op, memref.AllocOp | memref.AllocaOp):
                self._allocated.setdefault(self._of(op.memref), []).append(op)

    def _of(self, value: SSAValue) -> SSAValue:
        value = root(value)
        while (other := self._leader.get(value)) is not None and other is not value:
            value = other
        return value

    def spread(self, written: set[SSAValue], values: Sequence[SSAValue]) -> set[SSAValue]:
        """Return those of ``values`` that may alias a buffer in ``written``."""
        groups = {self._of(value) for value in written}
        return {value for value in values if self._of(value) in groups}

    def check_kept(self) -> None:
        """Fail where a buffer that is allocated in a loop would escape it."""
        for op, value in self._carrying:
            for each in self._allocated.get(self._of(value), ()):
                if op is not each and op.is_ancestor(each):
                    said = "a buffer that is allocated in a loop or branch cannot leave it"
                    fail(each, said, help=f"allocate it before {op.name}")


def _carried(op: Operation) -> Iterator[Sequence[SSAValue]]:
    """Yield groups of values that are the same in some iteration."""
    if isinstance(op, scf.ForOp):
        last = op.body.block.last_op
        yielded = last.operands if last is not None else ()
        yield from zip(op.iter_args, op.body.block.args[1:], yielded, op.res, strict=False)
    elif isinstance(op, scf.WhileOp):
        before, after = op.before_region.block, op.after_region.block
        last, end = before.last_op, after.last_op
        forwarded = last.operands[1:] if last is not None else ()
        yielded = end.operands if end is not None else ()
        yield from zip(op.arguments, before.args, yielded, strict=False)
        yield from zip(forwarded, after.args, op.res, strict=False)
    elif isinstance(op, scf.IfOp):
        ends = [r.blocks.first.last_op for r in op.regions if r.blocks.first is not None]
        yield from zip(op.output, *(e.operands for e in ends if e is not None), strict=False)


def buffers_of(region: Region) -> list[SSAValue]:
    """Return every buffer that is used in a region."""
    found: list[SSAValue] = []
    for block in region.blocks:
        found += [a for a in block.args if isinstance(a.type, MemRefType)]
        for op in block.ops:
            found += [r for r in op.results if isinstance(r.type, MemRefType)]
            for inner in op.regions:
                found += buffers_of(inner)
    return found
