"""Batching of ops: the walk over a region (`walk`), and rules, in a file for each family."""

from stepwell.dialects.nd.arithmetic import OPS as ARITHMETIC
from stepwell.dialects.nd.batching import (
    collectives,
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
from stepwell.dialects.nd.bitwise import OPS as BITWISE
from stepwell.dialects.nd.compare import OPS as COMPARE
from stepwell.dialects.nd.convert import OPS as CONVERT
from stepwell.dialects.nd.transcendental import OPS as TRANSCENDENTAL
from stepwell.dialects.readings import batching

batching(*ARITHMETIC, *BITWISE, *COMPARE, *CONVERT, *TRANSCENDENTAL)(walk.elementwise)

FAMILIES = (
    collectives,
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
