"""The readings every op of `nd` answers to, one rule table each.

A reading that an op lacks is a hole; `missing` lists them and a test keeps the list empty.
`table.none(Op, because="...")` fills a hole with a reason; `table.later(Op)` owns up to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray
from xdsl.builder import Builder
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.rules import RuleTable

Array: TypeAlias = "NDArray[Any]"

reference: RuleTable[Callable[[Any, Sequence[Array]], Array | Sequence[Array]]] = RuleTable(
    "reference"
)
"""``(op, operand arrays) -> result array, or one for each result``: what the op means, in NumPy.

Also what constant folding evaluates. bf16 comes as float32; results are rounded by the caller.
"""

shape: RuleTable[Callable[[Any], Sequence[Attribute]]] = RuleTable("shape")
"""``op -> result types``, inferred from operands and attributes; `verify` compares with it."""

gradient: RuleTable[Callable[[Builder, Any, Sequence[SSAValue]], Sequence[SSAValue | None]]] = (
    RuleTable("gradient")
)
"""``(builder, op, cotangents) -> one cotangent for each operand, None where it is zero``."""

batching: RuleTable[Callable[[Builder, Any, Sequence[int | None]], Sequence[SSAValue]]] = RuleTable(
    "batching"
)
"""``(builder, op, batch axis of each operand) -> results with a leading batch axis``."""

decomposition: RuleTable[Callable[[Builder, Any], Sequence[SSAValue]]] = RuleTable("decomposition")
"""``(builder, op) -> results`` by simpler ops of `nd`: the meaning of a composite op."""

simplify: RuleTable[Callable[[Builder, Any], SSAValue | None]] = RuleTable("simplify")
"""``(builder, op) -> the value its one result equals``, None where nothing simpler is known.

Exact always; what an op of constants is, `reference` tells. For rewrites of other forms attach
canonicalization patterns to the class.
"""

extents: RuleTable[Callable[[Any, Any], Sequence[Any]]] = RuleTable("extents")
"""``(op, sizing) -> for each result the sizes of its axes``, or the number that an index is.

What its shape rule says of sizes known only at run time, and what must hold of them, as
`dialects.sizing` wants it. What an op decomposes into answers for it; a base class may have a rule.
"""

products: set[type[Operation]] = set()
"""Ops that multiply elements of the first operand by those of the second wherever they meet."""

REQUIRED: tuple[RuleTable[Any], ...] = (reference, shape, gradient, batching)
"""The readings every op answers, says why not, or is known to answer later."""


def missing(ops: Sequence[type[Operation]]) -> list[str]:
    """Return 'op: reading' for every hole in the op table that nobody has owned up to.

    What a composite op decomposes into answers for it, save for its shape.
    """
    return [
        f"{op.name}: {table.reading}"
        for op in ops
        for table in REQUIRED
        if not table.covers(op)
        and not table.expects(op)
        and not (table is not shape and decomposition.covers(op))
    ]
