"""The graph dialect: immutable tensors and pure ops on them. This is its op list."""

from xdsl.ir import Attribute, Dialect, Operation

from stepwell.dialects.nd import (
    arithmetic,
    bitwise,
    callback,
    calls,
    checking,
    collectives,
    compare,
    composite,
    contraction,
    control,
    convert,
    creation,
    custom,
    expansions,
    extents,
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
    *collectives.OPS,
)
ATTRIBUTES: tuple[type[Attribute], ...] = (*creation.ATTRIBUTES,)

PATTERNS = rewrites.MODULES
"""The modules whose import attaches the canonicalization patterns to the ops."""

ND = Dialect("nd", list(OPS), list(ATTRIBUTES))

assert identities and extents and expansions, "imported for their rules"
