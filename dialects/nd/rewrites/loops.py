"""Remove unused loop-carried and stacked values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.control import ScanOp, YieldOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.upstream.effects import touches_nothing


@canonicalizes(ScanOp)
class UnwantedOfScan(RewritePattern):
    """%n, %y = scan (%i = %zero, %a = %x) { yield %i + 1, f(%a) }  ->  the same without %i.

    If %n has no use, and the values that depend on %i in the body are needed for %n only.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ScanOp, rewriter: PatternRewriter) -> None:
        """Match a scan with an unused result."""
        outputs = list(op.outputs)
        if all(y.first_use is not None for y in outputs):
            return
        wanted = _live(op.body.block, outputs, len(op.carried))
        if all(wanted) or not any(wanted):
            return
        count = len(op.carried)
        kept = [v for v, want in zip(op.carried, wanted, strict=False) if want]
        sizes = _sizes(op, wanted[count:])
        body = op.detach_region(op.body)
        block, last = body.block, body.block.last_op
        assert last is not None
        new_last = YieldOp([v for v, want in zip(last.operands, wanted, strict=True) if want])
        new_last.location = last.location
        rewriter.replace(last, new_last, [])
        _erase_dead(block, wanted[:count], rewriter)
        new = ScanOp.build(
            operands=[kept, list(op.xs), [op.steps] if op.steps else [], sizes],
            result_types=[[y.type for y, want in zip(outputs, wanted, strict=True) if want]],
            properties={k: v for k, v in op.properties.items() if k in ("length", "reverse")},
            attributes=dict(op.attributes),
            regions=[body],
        )
        results = iter(new.outputs)
        rewriter.replace(op, new, [next(results) if want else None for want in wanted])


def _live(block: Block, outputs: Sequence[SSAValue], carried: int) -> list[bool]:
    """Return for each result whether it is live: used, or carried for a live one.

    Ops that have effects, such as checks, are needed, and so is what they read.
    """
    last = block.last_op
    assert last is not None
    ends = list(last.operands)
    wanted = [y.first_use is not None for y in outputs]
    seen: set[SSAValue] = set()
    waiting = [v for v, want in zip(ends, wanted, strict=True) if want]
    acting = [op for op in block.ops if op is not last and not touches_nothing(op)]
    waiting += [v for op in acting for each in op.walk() for v in each.operands]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        made_by = value.owner
        if isinstance(made_by, Operation):
            waiting.extend(v for each in made_by.walk() for v in each.operands)
        elif made_by is block and (number := value.index) < carried:  # pyright: ignore
            wanted[number] = True
            waiting.append(ends[number])
    return wanted


def _sizes(op: ScanOp, wanted: Sequence[bool]) -> list[SSAValue]:
    """Return the sizes of the live stacked results."""
    sizes, kept = list(op.sizes), list[SSAValue]()
    for y, want in zip(op.stacked, wanted, strict=True):
        unknown = shape_of(y)[1:].count(DYNAMIC)
        kept += sizes[:unknown] if want else []
        sizes = sizes[unknown:]
    return kept


def _erase_dead(block: Block, wanted: Sequence[bool], rewriter: PatternRewriter) -> None:
    """Erase the dead arguments, and the pure ops that nothing uses."""
    unwanted = [a for a, want in zip(block.args, wanted, strict=False) if not want]
    for op in reversed(list(block.ops)):
        unused = op.results and all(r.first_use is None for r in op.results)
        if unused and touches_nothing(op):
            rewriter.erase(op)
    for argument in unwanted:
        rewriter.erase_block_argument(argument)
