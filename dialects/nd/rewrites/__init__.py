"""Canonical forms of moves and loops: each pattern's docstring is the rewrite.

All are exact. Importing the package gives the op classes their patterns.
"""

from stepwell.dialects.nd.rewrites import (
    between,
    data_movement,
    full,
    loops,
    products,
    reductions,
    sizes,
    units,
    views,
)

MODULES = (sizes, views, units, between, data_movement, reductions, full, loops, products)
