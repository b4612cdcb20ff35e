"""Drive rewrite patterns and preserve locations.

xDSL's walker drops locations. `rewrite` gives every op that a pattern inserts the location of the
matched op, and every op that replaces another the fused location of both. A pattern that merges
several ops fuses their locations itself with `fuse_locations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)

from stepwell.dialects.types import UNKNOWN, fuse_locations


@dataclass
class _Located(RewritePattern):
    """A pattern whose insertions inherit the location of the matched op."""

    inner: RewritePattern
    location: LocationAttr = UNKNOWN

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Record the location of ``op``, then run the inner pattern."""
        self.location = op.location
        self.inner.match_and_rewrite(op, rewriter)

    def inserted(self, op: Operation) -> None:
        """Set the location of a new op and its nested ops."""
        if op.location == UNKNOWN:
            op.location = self.location
        for region in op.regions:
            for block in region.blocks:
                for inside in block.ops:
                    self.inserted(inside)

    def replaced(self, op: Operation, values: Sequence[SSAValue | None]) -> None:
        """Fuse the location of ``op`` with those of its replacements."""
        for value in values:
            if isinstance(value, OpResult):
                value.op.location = fuse_locations((value.op.location, op.location))


def rewrite(root: Operation, patterns: Sequence[RewritePattern]) -> None:
    """Apply ``patterns`` inside ``root`` until none matches."""
    located = _Located(GreedyRewritePatternApplier(list(patterns)))
    listener = PatternRewriterListener(
        operation_insertion_handler=[located.inserted],
        operation_replacement_handler=[located.replaced],
    )
    walker = PatternRewriteWalker(located, listener=listener)
    for region in root.regions:
        walker.rewrite_region(region)
