"""Canonical forms of ops that only move elements: each pattern's docstring is the rewrite.

All are exact. Importing the package gives the op classes their patterns.
"""

from stepwell.dialects.nd.rewrites import full, parts, reductions, sizes, views

MODULES = (sizes, views, parts, reductions, full)
