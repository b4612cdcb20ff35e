"""Rarely used functions, imported when a name is looked up and not found."""

from stepwell.frontend import (
    choosing,
    einstein,
    histograms,
    inserting,
    linalg,
    matrices,
    more_ufuncs,
    nan_functions,
    order_statistics,
    sets,
    signals,
    sliding,
    small_functions,
    statistics,
)

MODULES = (
    *(choosing, einstein, histograms, inserting, linalg, matrices, more_ufuncs, nan_functions),
    *(order_statistics, sets, signals, sliding, small_functions, statistics),
)
"""Modules that register their functions in the table when imported."""
