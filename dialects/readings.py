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

Factor: TypeAlias = "Callable[[SSAValue], SSAValue] | None"

partials: RuleTable[Callable[[Any, Any], Sequence[Factor]]] = RuleTable("partials")
"""``(composer, op) -> for each operand, what multiplies a value by the derivative``, elementwise.

None where the derivative is zero. Linear, and the same forward and backward: so one rule answers
for cotangents and tangents.
"""

moves: RuleTable[Callable[[Any, Any, SSAValue], SSAValue]] = RuleTable("moves")
"""``(composer, op, cotangent) -> cotangent of the first operand``, by moving elements alone.

It holds for elements of any type, so masks of cotangents go the same way.
"""

gradient: RuleTable[Callable[[Any, Any, Sequence[SSAValue | None]], None]] = RuleTable("gradient")
"""``(reverse, op, cotangents of the results)``: accumulates cotangents of operands (`Reverse`).

Elementwise ops have ``partials`` instead, those that move elements ``moves``; what a composite
decomposes into answers for it, where it has none of these.
"""

tangent: RuleTable[Callable[[Any, Any, Sequence[SSAValue | None]], Sequence[SSAValue | None]]] = (
    RuleTable("tangent")
)
"""``(composer, op, tangents of the operands) -> tangents of the results``, None where zero.

Without one, the rule backward is transposed.
"""

batching: RuleTable[Callable[[Any, Any], Sequence[SSAValue] | None]] = RuleTable("batching")
"""``(batch, op) -> results with a leading axis for the batch`` (`nd.batching.walk.Batch`).

It is asked only where the op reads something that differs from example to example. A result of the
type that it has for one example is one for all; None lets the op's decomposition answer. Ops that
act on each element by themselves need no rule.
"""

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
        and not (table is gradient and (partials.covers(op) or moves.covers(op)))
    ]
