"""Merge producers into their readers, in one reverse walk that visits each op once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import (
    Index,
    indices,
    inverse,
    is_elementwise,
    is_not_fused,
    linear,
)
from stepwell.transforms.passes import remark
from stepwell.transforms.structured.fuse.cost import (
    CHEAP_PER_ELEMENT,
    CHEAP_TO_REPEAT,
    MAX_TENSORS,
    Costs,
    finishes_contraction,
    is_cast,
    is_made_of_nothing,
    is_view,
    repeats,
)
from stepwell.transforms.structured.fuse.draft import Draft, Readers


@dataclass(frozen=True)
class Use:
    """One index at which a draft reads a producer, as expressions of the draft's loops."""

    draft: Draft
    index: Index
    loops: tuple[AffineExpr, ...]


@dataclass
class Fusion:
    """The state of one function while its blocks are walked backwards.

    When an op is visited all its users have been: each has become a draft, was merged into one,
    or is no generic and so keeps the op alive.
    """

    readers: Readers = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    drafts: list[Draft] = field(default_factory=list[Draft])
    gone: list[Operation] = field(default_factory=list[Operation])
    """Ops that were merged, moved or dead, users before their operands."""

    def walk(self, block: Block) -> None:
        """Visit every op of ``block`` and of its nested blocks, last first."""
        self.costs.walk(block)
        for op in reversed(list(block.ops)):
            if isinstance(op, linalg.GenericOp):
                self.visit(op)
            elif isinstance(op, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
                self.reshapes(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.walk(inner)

    def reshapes(self, op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> None:
        """Visit a reshape; overridden where reshapes are moved."""

    def visit(self, op: linalg.GenericOp) -> None:
        """Merge ``op`` into all of its readers, or else make a draft of it."""
        uses = self.uses(op)
        blocked = self.blocked(op)
        if not blocked and not any(
            (result, index) in draft.reads
            for result in op.results
            for draft, index in self.readers.get(result, ())
        ):
            self.gone.append(op)
            return
        if uses is None:
            self.drafts.append(Draft(op, self.readers))
            return
        reasons = {use: self.refusal(op, use) for use in uses}
        free = is_view(op) or is_made_of_nothing(op)
        repeatable = free or len(uses) == 1 or (self.is_cheap(op) and not finishes_contraction(op))
        if not blocked and repeatable and not any(reasons.values()):
            self.merge(op, uses, keep=False)
            self.gone.append(op)
            return
        if free:
            self.merge(op, [use for use in uses if not reasons[use]], keep=True)
        self.explain(op, reasons, blocked, repeatable)
        self.drafts.append(Draft(op, self.readers))

    def uses(self, op: linalg.GenericOp) -> list[Use] | None:
        """Return the distinct indices at which drafts read ``op``; None if it cannot be merged."""
        if not op.results or not is_elementwise(op) or is_not_fused(op):
            return None
        found: dict[Use, None] = {}
        loops = len(op.iterator_types)
        written = indices(op)[len(op.inputs) :]
        for result, out in zip(op.results, written, strict=True):
            axes = inverse(out, loops)
            assert axes is not None
            for draft, index in self.readers.get(result, ()):
                if (result, index) in draft.reads:
                    found[Use(draft, index, tuple(index[axis] for axis in axes))] = None
        by_loops: dict[tuple[int, tuple[AffineExpr, ...]], Use] = {}
        for use in found:
            by_loops.setdefault((id(use.draft), use.loops), use)
        return list(by_loops.values())

    def blocked(self, op: Operation) -> bool:
        """Whether a use other than as an input of a generic reads a result of ``op``."""
        return any(
            not isinstance(use.operation, linalg.GenericOp)
            or use.index >= len(use.operation.inputs)
            for result in op.results
            for use in result.uses
        )

    def is_cheap(self, op: linalg.GenericOp) -> bool:
        """Whether ``op`` may be recomputed by each of several readers."""
        chain = self.costs.chain(op)
        return chain.cost <= chain.most(CHEAP_TO_REPEAT) and chain.leaves <= 2

    def refusal(self, op: linalg.GenericOp, use: Use) -> str:
        """Return why ``op`` should not be merged into a draft, "" if it should."""
        draft = use.draft
        if is_not_fused(draft.op):
            return "its reader is a kernel of its own"
        if any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops) and any(
            linear(expr) is None for expr in use.loops
        ):
            return "its body asks for loop numbers that are not linear there"
        if is_view(op):
            return ""
        if op.parent is not draft.op.parent:
            return "its reader lies in another region and might run many times"
        if draft.contracts():
            return "" if is_cast(op) else "it would be computed inside a contraction"
        if len(draft.reads) + len(op.inputs) > MAX_TENSORS:
            return "its reader reads too many tensors already"
        return self.repetition(op, use)

    def repetition(self, op: linalg.GenericOp, use: Use) -> str:
        """Return why merging ``op`` would recompute too much, "" if it would not."""
        again = repeats(use.index, use.draft.extents)
        if again is False or is_made_of_nothing(op):
            return ""
        chain = self.costs.chain(op)
        if again and chain.cost <= chain.most(CHEAP_PER_ELEMENT):
            return ""
        return "its elements would be computed again for each reader"

    def merge(self, op: linalg.GenericOp, uses: Sequence[Use], keep: bool) -> None:
        """Compute ``op`` inside each of ``uses``; unless ``keep``, the last one takes its body."""
        for i, use in enumerate(uses):
            use.draft.absorb(op, use.loops, copy=keep or i < len(uses) - 1)

    def explain(
        self, op: linalg.GenericOp, reasons: dict[Use, str], blocked: bool, repeatable: bool
    ) -> None:
        """Emit a remark that says why ``op`` is not merged."""
        if not reasons:
            return
        why = next(filter(None, reasons.values()), "")
        if not why and blocked:
            why = "its result is needed as a whole elsewhere"
        if not why and not repeatable:
            why = f"{len(reasons)} readers would each compute it again"
        remark(op, f"not merged into its reader: {why}")
