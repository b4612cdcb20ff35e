"""Whether results are equal under the numerics that a pass declares.

* bit-exact: the same bits, including the signs of zeros; all NaN are equal.
* reassociating: numbers may differ slightly; NaN stays NaN, an infinity stays that infinity, and
  a number stays a number.
* approximating: the same, but an infinity may become NaN.

Integers and booleans must be equal under each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepwell.dialects.readings import Array
from stepwell.transforms.passes import Numerics

TOLERANCE = {"f16": 2e-2, "bf16": 3e-2, "f32": 1e-4, "f64": 1e-9}
"""The allowed difference, relative to the largest element of a result."""
MIN_SCALE = 0.1
"""The least scale for relative errors: larger intermediate terms may have cancelled."""


@dataclass(frozen=True)
class Contract:
    """The declared numerics of a pass."""

    numerics: Numerics

    @property
    def exact(self) -> bool:
        """Whether all bits must be equal."""
        return self.numerics == "bit-exact"

    def difference(self, was: Sequence[Array], now: Sequence[Array], kinds: Sequence[str]) -> str:
        """Describe the first element with a difference that is not allowed; "" if there is none.

        kinds : the dtype of each result, as types spell it
        """
        if len(was) != len(now):
            return f"it returned {len(was)} results, now {len(now)}"
        for number, (a, b, kind) in enumerate(zip(was, now, kinds, strict=True)):
            a, b = np.asarray(a), np.asarray(b)
            if a.shape != b.shape:
                return f"result {number} had shape {list(a.shape)}, now {list(b.shape)}"
            wrong = ~self.same(a, b, kind)
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                place = f" at {list(at)}" if at else ""
                return f"result {number}{place} is {_signed(b, a)[at]}, was {a[at]}"
        return ""

    def same(self, was: Array, now: Array, kind: str) -> Array:
        """Return which elements of two arrays of one shape count as equal."""
        now = _signed(now, was)
        if was.dtype != now.dtype:
            return np.zeros(was.shape, np.bool_)
        if was.dtype.kind != "f":
            return np.asarray(was == now)
        with np.errstate(all="ignore"):
            nan = np.isnan(was) & np.isnan(now)
            if self.exact:
                return nan | ((was == now) & (np.signbit(was) == np.signbit(now)))
            same = nan | (was == now)
            if self.numerics == "approximating":
                same |= np.isinf(was) & np.isnan(now)
            finite = np.isfinite(was) & np.isfinite(now)
            numbers = np.abs(was[np.isfinite(was)]).astype(np.float64)
            scale = max(float(numbers.max()) if numbers.size else 0.0, MIN_SCALE)
            apart = np.abs(was.astype(np.float64) - now.astype(np.float64))
            return same | (finite & (apart <= TOLERANCE.get(kind, 1e-4) * scale))


def _signed(now: Array, was: Array) -> Array:
    """Return integers in the signedness of ``was``: below `nd` types have no sign."""
    if now.dtype.kind in "iu" and was.dtype.kind in "iu" and now.itemsize == was.itemsize:
        return np.ascontiguousarray(now).view(was.dtype).reshape(now.shape)
    return now
