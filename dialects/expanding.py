"""Replace composite ops by their decompositions."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.dialects.readings import decomposition
from stepwell.dialects.types import UNKNOWN, place_of


def expand(op: Operation) -> Operation | None:
    """Replace ``op`` by its decomposition; return the first op of that, or the op after it."""
    before = op.prev_op
    results = decomposition[type(op)](Builder(InsertPoint.before(op)), op)
    if [v.type for v in results] != list(op.result_types):
        got, want = ", ".join(str(v.type) for v in results), ", ".join(map(str, op.result_types))
        said = f"the decomposition of {op.name} gives ({got}), not ({want})"
        raise CompileError(Diagnostic("error", said, place_of(op)))
    block = op.parent
    assert block is not None
    first = block.first_op if before is None else before.next_op
    created: set[Operation] = set()
    new = first
    while new is not None and new is not op:
        created.add(new)
        if new.location == UNKNOWN:
            new.location = op.location
        new = new.next_op
    for old, now in zip(op.results, results, strict=True):
        if old.name_hint is not None and now.owner in created:
            now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    following = op.next_op if first is op else first
    op.detach()
    op.erase()
    return following
