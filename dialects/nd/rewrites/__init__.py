"""Canonical forms of moves and loops: each pattern's docstring is the rewrite.

All are exact. Importing the package gives the op classes their patterns.
"""

from stepwell.dialects.nd.rewrites import (
    between,
    full,
    loops,
    parts,
    reductions,
    sizes,
    units,
    views,
)

MODULES = (sizes, views, units, between, parts, reductions, full, loops)
