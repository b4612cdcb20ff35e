"""Which vectors of unknown number may end in one whose lanes are partly disabled."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.levels.kernel_ops import LoopedOp, op_extents
from stepwell.analysis.levels.queries import KernelLevels, Lanes
from stepwell.analysis.structured import (
    element,
    in_panels,
    indices,
    is_contraction,
    is_parallel,
    shape,
    stride,
)
from stepwell.dialects.kernel.sharing import is_border

TRAPS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp)
"""Ops that fail on some values, which an unused lane may hold."""
READS = (memref.LoadOp, tensor.ExtractOp)


def no_mask(levels: KernelLevels, number: int, lanes: Lanes) -> str:
    """Return why the vectors of an op cannot end under a mask; "" if they can.

    Tiles and bands of contractions end in narrower vectors: these repeat for each step of the sum.
    Tiles of windows over images with virtual padding need the masks in any case.
    """
    op, (axis, width, *_) = levels.ops[number], lanes
    size = op_extents(op)[axis]
    if width == 1 or (size != DYNAMIC_INDEX and size % width == 0):
        return "no part of a vector is left at its end"
    padded = unknown_borders(op)
    tiled = levels.is_tiled and not padded
    if tiled or any(map(_contracts, levels.ops)):
        return "contractions end in narrower vectors"
    if levels.pipeline_rows:
        return "software pipelines end in narrower vectors"
    block = op.parent.ops if op.parent is not None else ()
    known = any(is_border(each) for each in block) and not padded
    if known or not is_harmless(op) or not _is_side_by_side(op, axis, padded):
        return "its lanes are not side by side, or what it computes in unused ones may fail"
    return ""


def unknown_borders(op: Operation) -> set[SSAValue]:
    """Return the padded images, in the kernel of an op, with a number of columns that is unknown.

    Masks tell which lanes of their vectors are padding.
    """
    found: set[SSAValue] = set()
    for each in op.parent.ops if op.parent is not None else ():
        if isinstance(each, linalg.GenericOp) and is_border(each):
            if shape(each.inputs[0])[-1] != DYNAMIC_INDEX:
                return set()
            found |= {*each.results, each.outputs[0]} if each.results else {each.outputs[0]}
    return found


def _is_side_by_side(op: LoopedOp, axis: int, padded: Collection[SSAValue]) -> bool:
    """Whether the lanes of every operand are neighbours or one element, but for padded ones."""
    if isinstance(op, linalg.FillOp):
        return axis == len(op_extents(op)) - 1 and element(op.outputs[0]) != i1
    if any(in_panels(index, axis) for index in indices(op)):
        return False
    return all(
        (step := stride(index, axis)) == 0 or (step == 1 and element(value) != i1)
        for value, index in zip(op.operands, indices(op), strict=True)
        if value not in padded
    )


def _contracts(op: LoopedOp) -> bool:
    """Whether an op multiplies and sums operands."""
    if not isinstance(op, linalg.GenericOp):
        return False
    parallel = is_parallel(op)
    return not all(parallel) and is_contraction(parallel, indices(op)[: len(op.inputs)])


def is_harmless(op: Operation) -> bool:
    """Whether the body of an op can be computed in unused lanes."""
    inner = op.regions[0].block.ops if isinstance(op, linalg.GenericOp) else ()
    return not any(isinstance(each, (*TRAPS, *READS)) or each.regions for each in inner)
