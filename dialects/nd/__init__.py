"""The graph dialect: immutable tensors and what is computed from them. This is its op list."""

from types import ModuleType
from typing import Any

from xdsl.ir import Attribute, Dialect, Operation

from stepwell.core.rules import RuleTable
from stepwell.dialects.nd import (
    arithmetic,
    batching,
    bitwise,
    callback,
    calls,
    checking,
    compare,
    composite,
    contraction,
    control,
    convert,
    creation,
    custom,
    extents,
    gradients,
    identities,
    indexing,
    normalization,
    pooling,
    reduction,
    rewrites,
    shape,
    sizes,
    sorting,
    transcendental,
    transformations,
)
from stepwell.dialects.readings import decomposition, gradient, moves, partials


def _answers_later(table: RuleTable[Any], op: type[Operation]) -> bool:
    parts = (table, partials, moves) if table is gradient else (table,)
    return not any(t.covers(op) for t in (*parts, decomposition))


OPS: tuple[type[Operation], ...] = (
    *creation.OPS,
    *arithmetic.OPS,
    *transcendental.OPS,
    *bitwise.OPS,
    *compare.OPS,
    *convert.OPS,
    *sizes.OPS,
    *shape.OPS,
    *indexing.OPS,
    *reduction.OPS,
    *sorting.OPS,
    *contraction.OPS,
    *control.OPS,
    *callback.OPS,
    *calls.OPS,
    *checking.OPS,
    *composite.OPS,
    *normalization.OPS,
    *pooling.OPS,
    *transformations.OPS,
    *custom.OPS,
)
_GRADIENTS_LATER = (reduction, sorting, control, callback, calls, checking)
NOT_YET: tuple[tuple[RuleTable[Any], tuple[ModuleType, ...]], ...] = ((gradient, _GRADIENTS_LATER),)
"""Readings that some ops of these families do not answer yet; `stepwell ops` prints which."""

for _table, _families in NOT_YET:
    _table.later(*(op for f in _families for op in f.OPS if _answers_later(_table, op)))

ATTRIBUTES: tuple[type[Attribute], ...] = (*creation.ATTRIBUTES,)

PATTERNS = rewrites.MODULES
"""Importing these has given the ops their canonicalization patterns."""

ND = Dialect("nd", list(OPS), list(ATTRIBUTES))

assert identities and extents and gradients and batching, "imported for their rules"
