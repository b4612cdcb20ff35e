"""How ops are batched: the walk over a region (`walk`), and rules, a file for each family."""

from stepwell.dialects.nd import arithmetic, bitwise, compare, convert, transcendental
from stepwell.dialects.nd.batching import (
    composite,
    contraction,
    control,
    creation,
    custom,
    effects,
    indexing,
    reduction,
    shape,
    walk,
)
from stepwell.dialects.readings import batching

for _family in (arithmetic, bitwise, compare, convert, transcendental):
    batching(*_family.OPS)(walk.elementwise)

FAMILIES = (
    composite,
    contraction,
    control,
    creation,
    custom,
    effects,
    indexing,
    reduction,
    shape,
    walk,
)
