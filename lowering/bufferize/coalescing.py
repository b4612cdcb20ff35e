"""Copy coalescing on a host function: copies of inner loops first, returned results last.

`copy_insertion` makes every copy, `interference` decides which two buffers can be coalesced. A copy
that is left is written as `memref.copy`, or is part of a cycle of buffers that a loop exchanges
(`exchanges`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.copies import Copy
from stepwell.lowering.bufferize.copy_insertion import insert_copies
from stepwell.lowering.bufferize.exchanges import Exchanges
from stepwell.lowering.bufferize.interference import ENDS, Interference, why_not
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.views import inverse

_ENDS_MOVE = ("init", "next", "exit")
"""Copies whose ends change when a loop comes to exchange buffers."""


@dataclass(frozen=True)
class Returned:
    """The output buffer of a result, and why the result is copied into it ("": it is not)."""

    output: Storage
    why: str


class Coalescing:
    """The buffers of all tensors of one host function, and the copies between them."""

    def __init__(
        self, function: func.FuncOp, summary: Callable[[kernel.LaunchOp], KernelSummary]
    ) -> None:
        self.copies = copies = insert_copies(function, summary)
        self.summary, self.sizes, self.assigned = summary, copies.sizes, copies.assigned
        self.loops, self.extras, self.undefined = copies.loops, copies.extras, copies.undefined
        self.updated = copies.updated
        self.interference = Interference(copies)
        self.exchanges = Exchanges(copies, self.interference)
        positions = copies.positions
        loops = sorted(copies.loops, key=lambda op: (-positions.depth(op), positions.start(op)))
        groups: dict[Operation | None, list[Copy]] = {loop: [] for loop in (*loops, None)}
        for op, found in copies.of.items():
            groups[positions.loop(op)] += found
        for op, found in groups.items():
            for copy in sorted(found, key=self._order):
                self._remove(copy)
            if op is not None:
                self.exchanges.close(copies.loops[op])
        last = function.body.block.last_op
        assert isinstance(last, func.ReturnOp)
        self.returned = self._settle_results(last.operands)

    def _order(self, copy: Copy) -> tuple[int, int]:
        """Return the order of copies of one loop: slices late, what the loop carries last."""
        positions = self.copies.positions
        if copy.kind == "exit":
            return 0, positions.end(copy.at)
        late = {"slice": 1, "next": 2}.get(copy.kind, 0)
        if copy.kind == "insert" and not copy.steps:
            late = 1
        return late, positions.start(copy.at)

    def _remove(self, copy: Copy) -> None:
        """Remove a copy, or record why it remains."""
        loop = self.loops.get(copy.at) if copy.kind == "exit" else None
        storage, steps = self.assigned.of(copy.value)
        if loop is None or storage not in loop.carried:
            copy.why = self.interference.coalesce(copy)
            if not copy.why and copy.kind not in _ENDS_MOVE:
                self.copies.remove(copy)
            return
        number = loop.carried.index(storage)
        target, path = self.assigned.of(copy.into)
        if steps:
            copy.why = "it is part of what a loop exchanges"
        elif len(loop.ends[number]) == 1 or number in loop.results:
            copy.why = self.interference.coalesce(copy)
        elif path or not self.interference.alias_to_end(loop, number, target):
            copy.why = ENDS
        else:
            copy.why = ""

    def left(self, at: Operation) -> list[Copy]:
        """Return the copies that remain at an op."""
        return [c for c in self.copies.of.get(at, ()) if not self.interference.is_removed(c)]

    # -- results

    def _settle_results(self, values: Sequence[SSAValue]) -> list[Returned]:
        """Coalesce returned tensors with the outputs; results that replace arguments come first."""
        outputs = {
            n: self.updated.get(n) or self.assigned.storage(v, "output")
            for n, v in enumerate(values)
        }
        order = (*self.updated, *(n for n in outputs if n not in self.updated))
        whys = {n: self._settle(values[n], outputs[n]) for n in order}
        return [Returned(outputs[n], whys[n]) for n in outputs]

    def _settle(self, value: SSAValue, output: Storage) -> str:
        storage, path = self.assigned.of(value)
        back = inverse(path)
        if storage.kind == "output":
            return "it is also, or is part of, another result"
        if storage.kind != "local" or back is None:
            return why_not(storage, output)
        if not self.assigned.fits(storage, output, back):
            return "its elements do not lie in order"
        return self.interference.unite(storage, output, back)
