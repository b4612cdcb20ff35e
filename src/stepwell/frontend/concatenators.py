"""``np.r_[...]`` and ``np.c_[...]`` with traced parts: arrays, numbers and ranges joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend.errors import TraceError
from stepwell.frontend.joining import concat
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.operands import array, unified
from stepwell.frontend.promotion import has_traced, is_number, lift
from stepwell.frontend.tensor import Tensor, has_traced_bounds


def concatenated(of: Any, index: Any) -> Tensor:
    """Return ``np.r_[index]`` or ``np.c_[index]``."""
    parts: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    if has_traced_bounds(parts):
        raise TraceError(
            "a range with traced bounds has a size that is not known while tracing; "
            "pass the bounds in static_argnames"
        )
    if any(isinstance(part, str) for part in parts):
        raise TraceError(
            "np.r_ and np.c_ of traced values take no text; "
            "use numpy.concatenate, numpy.stack or numpy.column_stack"
        )
    columns = isinstance(of, type(np.c_))
    values = [_widened(v, columns) for v in unified(*map(_part, parts))]
    return concat(values, -1 if columns else 0)


def _part(part: Any) -> Any:
    """Return a part as an array or a number; a range is written as a slice."""
    if isinstance(part, slice):
        return np.r_[part]
    if is_number(part) or (isinstance(part, Tensor) and not part.shape):
        return part
    return array(part) if has_traced(part) else lift(np.asarray(part))


def _widened(value: Tensor, columns: bool) -> Tensor:
    """Return a number as an array of one element; for ``np.c_`` a row as a column."""
    if value.ndim > columns:
        return value
    return reshape(value, (value.size, 1) if columns else (1,))
