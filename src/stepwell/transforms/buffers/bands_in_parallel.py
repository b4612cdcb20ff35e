"""Run the bands of a loop over bands of rows in parallel, each thread with its own memory.

Before:  scf.for %band = 0 to 28 {
           %h = memref.alloc() : memref<8x256xf32>
           ...
         } {kernel.schedule = #kernel.schedule<[parallel d0 by 8]>}
After:   %all = memref.alloc() : memref<32768xi8>
         scf.parallel (%run) = 0 to 4 {
           scf.for %band = %run * 28 / 4 to (%run + 1) * 28 / 4 {
             %h = memref.view %all[%run * 8192] : memref<32768xi8> to memref<8x256xf32>
             ...
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i8
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.structured import constant_of
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.types import dtype
from stepwell.transforms.buffers.plan_memory.offsets import aligned


def bands_in_parallel(block: Block, threads: int) -> None:
    """Rewrite each loop over bands in ``block`` as one run of bands for each thread."""
    for op in list(block.walk()):
        if isinstance(op, scf.ForOp) and SCHEDULE in op.attributes and not op.iter_args:
            _Runs(op, threads).write()


class _Runs:
    """Rewrites one loop."""

    def __init__(self, loop: scf.ForOp, threads: int) -> None:
        self.loop = loop
        trips = constant_of(loop.ub)
        self.runs = threads if trips is None else max(min(trips, threads), 1)

    def write(self) -> None:
        loop = self.loop
        zero, one, runs = (self._before(_constant(n)) for n in (0, 1, self.runs))
        body = Block(arg_types=[IndexType()])
        run = body.args[0]
        run.name_hint = "run"
        for alloc in [op for op in loop.body.walk() if isinstance(op, memref.AllocOp)]:
            self._move(alloc, body, run)
        begin = self._part(body, run, runs)
        end = self._part(body, self._add(body, arith.AddiOp(run, one)), runs)
        inner = scf.ForOp(begin, end, loop.step, [], loop.detach_region(loop.body))
        self._add(body, inner)
        self._add(body, scf.ReduceOp())
        outer = scf.ParallelOp([zero], [runs], [one], Region(body))
        outer.attributes[SCHEDULE] = loop.attributes[SCHEDULE]
        self._before(outer)
        loop.detach()
        loop.erase()

    def _before(self, op: Operation) -> SSAValue:
        block = self.loop.parent_block()
        assert block is not None
        op.location = self.loop.location
        block.insert_op_before(op, self.loop)
        return op.results[0] if op.results else self.loop.ub

    def _add(self, block: Block, op: Operation) -> SSAValue:
        op.location = self.loop.location
        block.add_op(op)
        return op.results[0] if op.results else self.loop.ub

    def _part(self, body: Block, run: SSAValue, runs: SSAValue) -> SSAValue:
        """Return the first band of a run."""
        scaled = self._add(body, arith.MuliOp(run, self.loop.ub))
        return self._add(body, arith.DivUIOp(scaled, runs))

    def _move(self, alloc: memref.AllocOp, body: Block, run: SSAValue) -> None:
        """Replace memory of one band by a part, for each run, of memory of the whole loop."""
        type = alloc.memref.type
        assert isinstance(type, MemRefType) and not alloc.dynamic_sizes
        bytes = aligned(prod(type.get_shape()) * dtype(type.element_type).bytes)
        whole = self._before(memref.AllocOp([], [], MemRefType(i8, [bytes * self.runs])))
        whole.name_hint = alloc.memref.name_hint
        offset = self._add(body, arith.MuliOp(run, self._before(_constant(bytes))))
        view = self._add(body, memref.ViewOp(whole, offset, [], type))
        view.name_hint = alloc.memref.name_hint
        alloc.memref.replace_all_uses_with(view)
        alloc.detach()
        alloc.erase()


def _constant(number: int) -> Operation:
    return arith.ConstantOp(IntegerAttr(number, IndexType()))
