"""The graph dialect: immutable tensors and what is computed from them. This is its op list."""

from xdsl.ir import Attribute, Dialect, Operation

from stepwell.dialects.nd import (
    arithmetic,
    bitwise,
    compare,
    composite,
    contraction,
    control,
    convert,
    creation,
    identities,
    indexing,
    normalization,
    pooling,
    reduction,
    rewrites,
    shape,
    sizes,
    transcendental,
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
    *contraction.OPS,
    *control.OPS,
    *composite.OPS,
    *normalization.OPS,
    *pooling.OPS,
)
ATTRIBUTES: tuple[type[Attribute], ...] = (*creation.ATTRIBUTES,)

PATTERNS = rewrites.MODULES
"""Importing these has given the ops their canonicalization patterns."""

ND = Dialect("nd", list(OPS), list(ATTRIBUTES))

assert identities, "imported for its rules"
