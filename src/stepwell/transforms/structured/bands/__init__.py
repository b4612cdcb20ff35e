"""Compute chains of ops in bands of rows, so that a cache holds the intermediate results.

Before:  %h = linalg.generic {rows, columns; depth} ins(%x, %v)
         %g = linalg.generic {rows, columns} ins(%h)
         %y = linalg.generic {rows, columns; depth} ins(%g, %w)
After:   %y = scf.for %band = 0 to bands iter_args(%all = %empty) {
           %xs = tensor.extract_slice of the rows of %x
           the same three ops on this part of each tensor
           tensor.insert_slice of the part of the result into %all
         } {kernel.schedule = #kernel.schedule<[parallel d0 by 48]>}

Afterwards no op of a chain computes more than a band of its result at a time. Which rows an op
needs follows from the indexing maps of its readers; rows that a window reads in two bands are
computed in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation

from stepwell.analysis.structured import erase_dead, is_not_fused, shape
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import PARALLEL, ScheduleAttr
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.transforms.passes import Pass, fail, remark
from stepwell.transforms.structured.bands.build import levels_of, write_bands
from stepwell.transforms.structured.bands.chain import Chain
from stepwell.transforms.structured.bands.gain import gain, passes_enough, worth_a_look

ROWS = (1, 2, 4, 7, 8, 12, 14, 16, 24, 28, 36, 48, 56, 72, 96, 144, 192)
"""The rows of a band that are tried."""
_CONTROL = (scf.ForOp, scf.WhileOp, scf.IfOp)
MIN_GAIN = 2e-6
"""The least seconds that bands must save."""


@dataclass(frozen=True)
class FuseBands(Pass):
    """Run chains of ops band by band where that is expected to be faster.

    machine : the machine as NAME=VALUE with commas, or its name before them; without l2, no bands
    rows : the rows of each band; 0 to choose them, and chains, by the cost model

    Before:  ops that pass tensors on
    After:   scf.for over bands of rows { the same ops on a band } {kernel.schedule = ...}

    Afterwards each op of a chain computes a band at a time. An op with kernel.schedule, a list of
    levels `parallel dN by R` over axes of its result, ends a chain that has these bands.
    """

    name = "fuse-bands"
    one_block = True
    expects_work = False

    machine: str = ""
    rows: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse the chains of each function."""
        machine = Machine().override(self.machine, self.name)
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks and machine.l2:
                self._block(function.body.block, machine)

    def _block(self, block: Block, machine: Machine) -> None:
        done: set[Operation] = set()
        ops = list(block.ops)
        for op in ops:
            if isinstance(op, _CONTROL) and SCHEDULE not in op.attributes:
                for inner in (block for region in op.regions for block in region.blocks):
                    self._block(inner, machine)
        ends = set(ops) if self.rows else worth_a_look(ops, machine)
        for op in reversed(ops):
            if op in done or not isinstance(op, linalg.GenericOp):
                continue
            chain = None
            if SCHEDULE in op.attributes:
                chain = self._by_hand(op)
            elif op in ends:
                chain = self._best(op, machine)
            if chain is not None:
                done.update(step.op for step in chain.steps)
                loop = write_bands(chain)
                remark(loop, f"{len(chain.steps)} ops in bands: {levels_of(chain)}")
        if done:
            erase_dead(block)

    def _by_hand(self, op: linalg.GenericOp) -> Chain:
        """Return the chain that ends in ``op``, with the band that its attribute says."""
        levels = op.attributes[SCHEDULE]
        axes = len(shape(op.results[0])) if len(op.results) == 1 else 0
        band: dict[int, int] = {}
        for level in levels.data.levels if isinstance(levels, ScheduleAttr) else ():
            if level.kind == PARALLEL and level.loop < axes and level.loop not in band:
                band[level.loop] = level.step
        if not isinstance(levels, ScheduleAttr) or len(band) != len(levels.data.levels):
            fail(op, "a band is a list of levels `parallel dN by R`, for axes of one result")
        chain = Chain(op, band)
        if not chain.grow():
            fail(op, f"no op before this one can be computed in bands {levels_of(chain)}")
        return chain

    def _best(self, op: linalg.GenericOp, machine: Machine) -> Chain | None:
        """Return the chain that ends in ``op`` and saves most, if any does."""
        best: tuple[float, Chain] | None = None
        barren: set[int] = set()
        for band in _bands(op, self.rows):
            chain = Chain(op, band)
            if chain.rows in barren or not chain.grow():
                barren.add(chain.rows)  # as with any other number of rows
                continue
            if not self.rows and best is None and not passes_enough(chain, machine):
                return None
            for count in range(2, len(chain.steps) + 1):
                some = chain.before(count)
                if not some.has_kernels or chain.fused_at(count):
                    continue
                saved = gain(some, machine)
                if saved is None or (saved < MIN_GAIN and not self.rows):
                    continue
                if best is None or saved > best[0]:
                    best = saved, some
        return best[1] if best is not None else None


def _bands(op: linalg.GenericOp, rows: int) -> Iterator[dict[int, int]]:
    """Yield the bands over the result of ``op`` to try: single indices of the first axes, rows."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType) or is_not_fused(op):
        return
    sizes = shape(op.results[0])
    for axis in range(len(sizes) - 1):
        size = sizes[axis]
        for step in (rows,) if rows else ROWS:
            band = {**dict.fromkeys(range(axis), 1), axis: min(step, size) if size > 0 else step}
            if any(not 0 < sizes[k] <= n for k, n in band.items()):  # not all in one band
                yield band
                if 0 < size <= step:
                    break
