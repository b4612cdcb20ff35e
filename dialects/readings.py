"""The readings of the ops of `nd`: one rule table each.

`missing` lists the rules that an op lacks, and a test keeps that list empty.
`table.none(Op, reason="...")` gives a reason for having none; `table.later(Op)` defers the rule.
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
"""``(op, operand arrays) -> result array, or one for each result``: the meaning of the op in NumPy.

Constant folding evaluates it too. bf16 is passed as float32; the caller rounds the results.
"""

shape: RuleTable[Callable[[Any], Sequence[Attribute]]] = RuleTable("shape")
"""``op -> result types``, inferred from operands and attributes; `verify` compares with it."""

Factor: TypeAlias = "Callable[[SSAValue], SSAValue] | None"

partials: RuleTable[Callable[[Any, Any], Sequence[Factor]]] = RuleTable("partials")
"""``(composer, op) -> for each operand, a function that multiplies by the partial derivative``.

For elementwise ops; None if the derivative is zero. The functions are linear and the derivative
diagonal, so one rule serves cotangents and tangents.
"""

moves: RuleTable[Callable[[Any, Any, SSAValue], SSAValue]] = RuleTable("moves")
"""``(composer, op, cotangent) -> cotangent of the first operand``, for ops that move elements.

It works for elements of any type, so masks of cotangents use it too.
"""

gradient: RuleTable[Callable[[Any, Any, Sequence[SSAValue | None]], None]] = RuleTable("gradient")
"""``(reverse, op, cotangents of the results)``: accumulates cotangents of operands (`Reverse`).

Elementwise ops have ``partials`` instead, ops that move elements ``moves``; a composite op without
any of these is differentiated by its decomposition.
"""

tangent: RuleTable[Callable[[Any, Any, Sequence[SSAValue | None]], Sequence[SSAValue | None]]] = (
    RuleTable("tangent")
)
"""``(composer, op, tangents of the operands) -> tangents of the results``, None where zero.

Without a rule, the reverse-mode rule is transposed.
"""

batching: RuleTable[Callable[[Any, Any], Sequence[SSAValue] | None]] = RuleTable("batching")
"""``(batch, op) -> results with a leading axis for the batch`` (`nd.batching.walk.Batch`).

Called only if the op has batched operands. A result with the type of the original one is not
batched; None selects the op's decomposition. Ops that act on each element separately need no rule.
"""

decomposition: RuleTable[Callable[[Builder, Any], Sequence[SSAValue]]] = RuleTable("decomposition")
"""``(builder, op) -> results`` by simpler ops of `nd`: the meaning of a composite op."""

simplify: RuleTable[Callable[[Builder, Any], SSAValue | None]] = RuleTable("simplify")
"""``(builder, op) -> the value its one result equals``, None if nothing simpler is known.

Always exact; constant folding uses `reference`. For other rewrites attach canonicalization patterns
to the class.
"""

extents: RuleTable[Callable[[Any, Any], Sequence[Any]]] = RuleTable("extents")
"""``(op, sizing) -> for each result the sizes of its axes``, or the formula of an index.

The shape rule for sizes known only at run time, with the conditions on them, for
`dialects.sizing`. The default is the op's decomposition; a base class may have a rule.
"""

products: set[type[Operation]] = set()
"""Ops that multiply elements of the first operand by elements of the second, as contractions do."""

REQUIRED: tuple[RuleTable[Any], ...] = (reference, shape, gradient, batching)
"""The readings that every op has, excludes with a reason, or defers."""


def missing(ops: Sequence[type[Operation]]) -> list[str]:
    """Return 'op: reading' for every missing rule that is not deferred.

    The decomposition of a composite op replaces its rules, except for its shape.
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
