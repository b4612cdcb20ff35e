"""The random bits from which all random numbers are derived."""

from __future__ import annotations

from typing import Any

from stepwell.frontend.creation import checked_shape
from stepwell.frontend.promotion import as_dtype, cast, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import current_trace


def random_bits(key: Any, start: Any, shape: Any, dtype: Any = "uint32") -> Tensor:
    """Return random integers that depend only on ``key`` and ``start``.

    key : (2,) uint32        start : uint64 without axes, the index of the first element
    dtype : uint32 or uint64
    """
    first = cast(lift(start), as_dtype("uint64"))
    words = cast(lift(key), as_dtype("uint32"))
    kind = (as_dtype(dtype), checked_shape(shape))
    return current_trace().emit("random_bits", [words, first], [kind])[0]
