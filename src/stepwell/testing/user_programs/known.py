"""The correct values of a program, with bounds on the error of an implementation.

Floats are computed in 64 bits for any dtype. ``error`` bounds the effect of rounding in their own
dtype: 0 if every intermediate number is exact in any order, infinite if nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
"""Binary digits of each float."""
GREATEST = {"f64": 1e6, "f32": 1e5, "f16": 2e3, "bf16": 1e4}
"""The largest magnitude of admissible numbers."""
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
DTYPES: dict[str, Any] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "bool": np.dtype(np.bool_),
    **{name: np.dtype(f"{'u' * (name[0] == 'u')}int{name[1:]}") for name in INTEGERS},
}
QUANTA = (1.0, 2.0**-4, 2.0**-8, 2.0**-12)


@dataclass(frozen=True)
class Known:
    """A value: the array (floats in 64 bits), its dtype, and an error bound."""

    array: Any
    dtype: str
    error: float = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes."""
        return self.array.shape

    @property
    def floats(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype in DIGITS

    @property
    def exact(self) -> bool:
        """Whether every implementation must return exactly these numbers."""
        return self.error == 0.0

    @property
    def greatest(self) -> float:
        """The largest magnitude."""
        return magnitude(self.array)

    @property
    def is_index(self) -> bool:
        """Whether it can be an index."""
        return self.dtype in ("i32", "i64")


def magnitude(x: Any) -> float:
    """Return the largest magnitude in ``x``, 0 if it is empty."""
    return float(np.max(np.abs(x.astype(np.float64)))) if x.size else 0.0


def quantum(x: Any) -> float:
    """Return a power of two of which every element is a multiple; 0 if there is none.

    >>> quantum(np.array([0.5, 3.0]))
    0.0625
    """
    for unit in QUANTA:
        scaled = np.asarray(x) / unit
        if np.array_equal(scaled, np.floor(scaled)):
            return unit
    return 0.0


def rounding(dtype: str, y: Any, terms: float | None = None, unit: float | None = None) -> float:
    """Bound the rounding of ``y``; of a sum, ``terms`` is the sum of the terms' magnitudes.

    unit : a number of which all of these are multiples
    """
    digits = DIGITS[dtype]
    most = magnitude(y) if terms is None else terms
    unit = quantum(y) if unit is None else min(unit, quantum(y) or unit)
    if unit and most / unit <= 2.0**digits:
        return 0.0
    return 4 * most * 2.0**-digits


def linear(known: Sequence[Known], y: Any, dtype: str, factor: float = 1.0) -> float:
    """Bound the error of an op that moves, adds or selects its operands."""
    if dtype not in DIGITS:
        return 0.0 if all(k.exact for k in known) else np.inf
    before = factor * sum(k.error for k in known if k.floats)
    return before + rounding(dtype, y)


def steps(known: Sequence[Known]) -> float:
    """Bound the error of a discontinuous op: infinite, unless its operands are exact."""
    return 0.0 if all(k.exact for k in known) else np.inf


def admissible(known: Known) -> bool:
    """Whether a value may be an operand: finite, of moderate size, with a small error bound."""
    if not known.floats:
        return known.error == 0.0
    if known.array.size and not np.isfinite(known.array).all():
        return False
    most = known.greatest
    return most <= GREATEST[known.dtype] and known.error <= 0.02 * max(most, 0.5)
