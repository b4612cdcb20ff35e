"""Functions that most programs do not need: imported when a name is looked for that is not here."""

from stepwell.frontend import (
    choosing,
    einstein,
    histograms,
    inserting,
    linalg,
    matrices,
    more_ufuncs,
    nan_functions,
    odds,
    order_statistics,
    sets,
    signals,
    statistics,
)

MODULES = (
    *(choosing, einstein, histograms, inserting, linalg, matrices, more_ufuncs, nan_functions),
    *(odds, order_statistics, sets, signals, statistics),
)
"""Each enters its functions in the one table."""
