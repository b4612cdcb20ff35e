"""Statistics of slices whose bounds are known at run time only, made of their reductions."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check
from stepwell.frontend.creation import iota
from stepwell.frontend.promotion import INTEGER, cast, lift
from stepwell.frontend.table import call_named
from stepwell.frontend.window_reductions import Masked, limit


class Statistics(Masked):
    """An array of which only the elements within bounds count: their statistics."""

    @abstractmethod
    def own(self, function: Any, other: Any) -> Any:
        """Return a function of two of this array and another."""

    def var(self, axis: Any = None, *, ddof: Any = 0) -> Any:
        """Return the variance of the elements, all or along the first axis."""
        if self.axes(axis) not in ((0,), tuple(range(self.ndim))):
            self.refuse()
        apart = self.own(np.subtract, self.mean(axis))
        total = np.multiply(apart, apart).sum(axis)
        count = math.prod(self.shape[a] for a in self.axes(axis))
        return total / cast(lift(np.maximum(count - ddof, 0)), lift(1.0).kind)

    def std(self, axis: Any = None, *, ddof: Any = 0) -> Any:
        """Return the standard deviation of the elements."""
        return np.sqrt(self.var(axis, ddof=ddof))

    def ptp(self, axis: Any = None) -> Any:
        """Return the largest element less the smallest."""
        return self.max(axis) - self.min(axis)

    def count_nonzero(self, axis: Any = None) -> Any:
        """Return the number of elements other than zero."""
        return self.own(np.not_equal, 0).sum(axis)

    def searchsorted(self, v: Any, side: str = "left") -> Any:
        """Return how many of the elements, which ascend, precede each element of ``v``."""
        (bounds,) = self.bounds if self.ndim == 1 else (None,)
        if bounds is None:
            self.refuse()
        at = iota(self.values.shape, 0, INTEGER)
        least, most = (np.asarray(limit(self.dtype, m), self.dtype) for m in (False, True))
        row = e.where(e.less(at, bounds.low), least, e.where(self.mask, self.values, most))
        found = call_named("searchsorted", (row, v), {"side": side})
        high = e.maximum(bounds.high, bounds.low)
        return e.subtract(e.minimum(e.maximum(found, bounds.low), high), bounds.low)

    def norm(self) -> Any:
        """Return the Euclidean norm of the elements."""
        return np.sqrt(self.own(np.multiply, self).sum())

    def median(self) -> Any:
        """Return the median of the elements."""
        return self._quantile(0.5)

    def percentile(self, q: Any) -> Any:
        """Return percentiles of the elements."""
        return self.quantile(np.true_divide(q, 100))

    def quantile(self, q: Any) -> Any:
        """Return quantiles of the elements."""
        for bounds in filter(None, self.bounds):
            some = e.less(bounds.low, bounds.high)
            check(lift(some), "IndexError", ["a quantile of a slice without elements"])
        return self._quantile(q)

    def _quantile(self, q: Any) -> Any:
        values = self.values if self.values.kind.kind == "float" else self.values.astype(float)
        mask = self.mask
        found = call_named("nanquantile", (e.where(mask, values, np.nan), q), {})
        return e.where(
            call_named("any", (e.logical_and(mask, e.isnan(values)),), {}), np.nan, found
        )
