"""Write the loops of every kernel: parallel, shared, and each op's own, with explicit vectors.

Before:  kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {kernel.shared = 1,
             kernel.schedule = #kernel.schedule<[parallel d0 by 1024, for d0 by 16, vector ...]>} {
           linalg.generic {one parallel loop}
           kernel.return
         }
After:   kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) {
           scf.parallel (%p) = ... { scf.for ... { vector.load, arith on vectors, vector.store } }
           kernel.return
         }

Afterwards a kernel has no linalg op. A value that one op passes to another is an SSA value wherever
an iteration of the shared loops needs only its own element; accumulators are loop-carried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from stepwell.analysis.levels import NO_LANES, KernelLevels, Lanes
from stepwell.dialects import kernel
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.kernel.versions import VERSIONS
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.linalg_to_loops.contraction import Contraction, is_in_steps
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.nest import write_nest
from stepwell.lowering.linalg_to_loops.panels import lays_out, write_panels
from stepwell.lowering.linalg_to_loops.parts import write_parts
from stepwell.lowering.linalg_to_loops.plan import (
    NO_LEVELS,
    NOT_OF_LOOPS,
    checked_levels,
    make_plan,
)
from stepwell.lowering.linalg_to_loops.prefetch import prefetch_tiles
from stepwell.lowering.linalg_to_loops.scalar_vectors import vectorise_columns, vectorise_sums
from stepwell.lowering.linalg_to_loops.software_pipeline import pipeline_rows
from stepwell.lowering.linalg_to_loops.structured import Structured, read
from stepwell.lowering.linalg_to_loops.versions import lower_versions
from stepwell.lowering.linalg_to_loops.writer import Writer
from stepwell.lowering.nests import write_groups
from stepwell.transforms.passes import Pass

SETUP = (
    memref.AllocOp,
    memref.DimOp,
    memref.SubviewOp,
    memref.ExpandShapeOp,
    memref.CollapseShapeOp,
    memref.CastOp,
    memref.ReinterpretCastOp,
    memref.GetGlobalOp,
)


@dataclass(frozen=True)
class LinalgToLoops(Pass):
    """Lower the structured ops of kernels to scf, vector and memref."""

    name = "linalg-to-loops"
    one_block = True
    numerics = "reassociating"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every kernel of the module."""
        for function in op.ops:
            if isinstance(function, kernel.FuncOp):
                _lower_kernel(function)


def _lower_kernel(function: kernel.FuncOp) -> None:
    if VERSIONS in function.attributes:
        lower_versions(function, _lower_kernel)
        return
    levels = checked_levels(function)
    entry = function.body.block
    writer = Writer(entry, entry)
    if "kernel.scalar" in function.attributes and levels.parallel:
        _share_tasks(entry, IntegerAttr(levels.grain, i64))
    _lower_block(writer, entry, levels, dict(zip(levels.ops, levels.lanes, strict=True)))
    vectorise_columns(entry, entry)
    vectorise_sums(entry, entry)
    if levels.pipeline_rows > 1:
        pipeline_rows(writer, levels.pipeline_rows)
    for name in NOT_OF_LOOPS:
        function.attributes.pop(name, None)


def _share_tasks(block: Block, grain: Attribute) -> None:
    """Turn the loop over tasks into a parallel loop."""
    for op in block.ops:
        if not isinstance(op, scf.ForOp) or INDEPENDENT not in op.attributes or op.iter_args:
            continue
        body = op.body.block
        end = body.last_op
        assert end is not None
        end.detach()
        end.erase()
        done = scf.ReduceOp()
        done.location = op.location
        body.add_op(done)
        new = scf.ParallelOp([op.lb], [op.ub], [op.step], op.detach_region(op.body))
        new.attributes["kernel.grain"] = grain
        new.location = op.location
        Rewriter.replace_op(op, new, [])


def _lower_block(
    writer: Writer, block: Block, levels: KernelLevels, lanes: Mapping[Operation, Lanes]
) -> None:
    """Replace the structured ops of ``block``; each contiguous run of them becomes one nest."""
    ops = list(block.ops)
    found = {op: loops for op in ops if (loops := read(op, lanes.get(op, NO_LANES))) is not None}
    foreign = _foreign(ops, found)
    run: list[Structured] = []
    for op in ops:
        if op in found:
            run.append(found[op])
            continue
        if not _is_setup(op) and run:
            writer.block, writer.before = block, op
            _write_run(writer, run, levels, foreign)
            run = []
        for region in op.regions:
            for inner in region.blocks:
                _lower_nested(writer, inner)
    for op in found:
        block.erase_op(op)
    for op in ops:
        if isinstance(op, memref.AllocOp):
            _place_scratch(op, foreign)


def _write_run(
    writer: Writer, run: list[Structured], levels: KernelLevels, foreign: set[SSAValue]
) -> None:
    if lays_out(run):
        write_panels(Frame(writer, make_plan(run[-1:], levels, foreign)))
        return
    plan = make_plan(run, levels, foreign)
    if levels.groups is not None:
        write_groups(writer, plan, levels.groups)
        return
    frame = Frame(writer, plan)
    if plan.levels.parts:
        write_parts(frame)
    elif is_in_steps(plan):
        Contraction(frame).write()
    else:
        if plan.levels.prefetch:
            prefetch_tiles(frame)
        write_nest(frame)


def _lower_nested(writer: Writer, block: Block) -> None:
    """Lower the ops inside a loop that the user wrote; the loop itself stays."""

    def write() -> Sequence[SSAValue]:
        _lower_block(writer, block, NO_LEVELS, {})
        return ()

    writer.inside(block, write)


def _foreign(ops: Sequence[Operation], found: dict[Operation, Structured]) -> set[SSAValue]:
    """Return the scratch buffers that are not touched by one run of structured ops alone."""
    run_of: dict[Operation, int] = {}
    run = 0
    for op in ops:
        if op in found:
            run_of[op] = run
        elif not _is_setup(op):
            run += 1
    foreign: set[SSAValue] = set()
    for op in ops:
        if isinstance(op, memref.AllocOp):
            users = (use.operation for use in op.memref.uses)
            runs = {run_of.get(user) for user in users if not isinstance(user, memref.DimOp)}
            if len(runs) > 1 or None in runs:
                foreign.add(op.memref)
    return foreign


def _is_setup(op: Operation) -> bool:
    """Whether ``op`` only prepares values, so that it may be moved before the loops."""
    return isinstance(op, SETUP) or (not op.has_trait(IsTerminator) and touches_nothing(op))


def _place_scratch(op: memref.AllocOp, foreign: set[SSAValue]) -> None:
    """Erase scratch that moved into the loops; put the rest on the kernel's stack."""
    if op.memref.first_use is None:
        op.detach()
        op.erase()
        return
    assert isinstance(op.memref.type, MemRefType)
    shape = op.memref.type.get_shape()
    new = memref.AllocaOp.get(op.memref.type.element_type, 64, shape, op.dynamic_sizes)
    new.location = op.location
    new.memref.name_hint = op.memref.name_hint
    Rewriter.replace_op(op, new)
