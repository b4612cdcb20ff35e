"""How ops are differentiated: the backward pass (`reverse`), and rules, a file for each family."""

from stepwell.dialects.nd.gradients import (
    activation,
    arithmetic,
    backward,
    branches,
    compare,
    contraction,
    forward,
    indexing,
    integral,
    normalization,
    reduction,
    scans,
    shape,
    transcendental,
    whiles,
    windows,
)

FAMILIES = (
    activation,
    arithmetic,
    backward,
    branches,
    compare,
    contraction,
    forward,
    indexing,
    integral,
    normalization,
    reduction,
    scans,
    shape,
    transcendental,
    whiles,
    windows,
)
