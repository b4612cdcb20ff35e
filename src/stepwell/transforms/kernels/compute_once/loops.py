"""Hoist launches out of the host's loops."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.effects import is_pure
from stepwell.dialects import kernel


def move_out(block: Block) -> None:
    """Hoist the loop-invariant launches of each loop of ``block`` to before the loop."""
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                move_out(inner)
                if isinstance(op, scf.ForOp | scf.WhileOp):
                    _move(inner, op)


def _move(body: Block, loop: Operation) -> None:
    """Hoist the invariant launches of ``body``, and the ops they need, to before ``loop``."""
    same: set[Operation] = set()
    for op in body.ops:
        if not op.regions and is_pure(op) and all(_is_same(v, body, same) for v in op.operands):
            same.add(op)
    wanted: set[Operation] = set()
    for op in reversed(list(body.ops)):
        if op in same and (op in wanted or _is_worth(op)):
            wanted.add(op)
            wanted.update(v.owner for v in op.operands if isinstance(v.owner, Operation))
    before = loop.parent
    assert before is not None
    for op in [op for op in body.ops if op in wanted]:
        op.detach()
        before.insert_op_before(op, loop)


def _is_same(value: SSAValue, body: Block, same: set[Operation]) -> bool:
    """Whether a value is invariant in the loop around ``body``."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner is not body
    return owner.parent is not body or owner in same


def _is_worth(op: Operation) -> bool:
    """Whether a launch reads a tensor and its results are only read, so that none is copied."""
    if not isinstance(op, kernel.LaunchOp):
        return False
    reads = any(isinstance(v.type, TensorType) for v in op.inputs)
    return reads and all(
        isinstance(use.operation, kernel.LaunchOp) and use.index < len(use.operation.inputs)
        for result in op.results_
        for use in result.uses
    )
