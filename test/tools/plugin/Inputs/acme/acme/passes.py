"""A pass over graphs that hold our op."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from acme.dialect import SoftsignOp
from stepwell.extending import NegOp, Pass, rewrite


class _SoftsignOfNeg(RewritePattern):
    """softsign(-x)  ->  -softsign(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SoftsignOp, rewriter: PatternRewriter) -> None:
        """Match the softsign."""
        if isinstance(neg := op.x.owner, NegOp):
            inner = rewriter.insert(SoftsignOp(neg.x))
            rewriter.replace(op, NegOp(inner.y))


@dataclass(frozen=True)
class SoftsignOfNeg(Pass):
    """Take the sign of an argument out of acme.softsign.

    Before:  %n = nd.neg %x; %y = acme.softsign %n
    After:   %s = acme.softsign %x; %y = nd.neg %s
    """

    name = "softsign-of-neg"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the whole module."""
        rewrite(op, [_SoftsignOfNeg()])
