"""`numpy.pad` with other modes than a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take
from stepwell.frontend.joining import concat
from stepwell.frontend.manipulation import broadcast_to, reshape
from stepwell.frontend.operands import WIDE
from stepwell.frontend.order_statistics import median
from stepwell.frontend.promotion import as_dtype, cast, fresh, full, lift
from stepwell.frontend.reducing import max, mean, min
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import ufunc

_PLACED = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Any] = {"maximum": max, "minimum": min, "mean": mean, "median": median}


def padded(value: Tensor, pairs: Any, mode: str, given: dict[str, Any]) -> Tensor:
    """Return ``value`` padded by ``pairs`` of elements before and after each axis, by ``mode``."""
    known = {"linear_ramp": {"end_values"}, "reflect": {"reflect_type"}, "empty": set[str]()}
    known |= {"symmetric": {"reflect_type"}} | {key: {"stat_length"} for key in _STATISTICS}
    if mode not in (*_PLACED, *_STATISTICS, "linear_ramp", "empty"):
        raise ValueError(f"mode '{mode}' is not supported")
    if strange := set(given) - known.get(mode, set()):
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {strange}")
    if given.get("reflect_type", "even") != "even":
        raise TraceError("numpy.pad: reflect_type='odd' is not known to Stepwell")
    for axis, (low, high) in enumerate(np.asarray(pairs).tolist()):
        if low or high:
            value = _along(value, axis, low, high, mode, given)
    return fresh(value)


def _along(value: Tensor, axis: int, low: int, high: int, mode: str, given: Any) -> Tensor:
    n = value.shape[axis]
    if mode in _PLACED:
        if not n:
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant'")
        how: Any = mode
        places = np.pad(np.arange(n), (low, high), how)
        before, after = (take(value, p, axis=axis) for p in (places[:low], places[low + n :]))
    elif mode == "empty":
        before, after = (full(_with_size(value.shape, axis, k), 0, value.kind) for k in (low, high))
    elif mode == "linear_ramp":
        ends = np.broadcast_to(given.get("end_values", 0), (value.ndim, 2))[axis].tolist()
        before, after = (
            _ramp(value, axis, k, end, last)
            for k, end, last in zip((low, high), ends, (False, True), strict=True)
        )
    else:
        before, after = _statistic(value, axis, low, high, mode, given.get("stat_length"))
    parts = [v for v, k in ((before, low), (value, 1), (after, high)) if k]
    return concat(parts, axis=axis)


def _with_size(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _statistic(
    value: Tensor, axis: int, low: int, high: int, mode: str, length: Any
) -> tuple[Tensor, Tensor]:
    n = value.shape[axis]
    sizes = [n, n] if length is None else np.broadcast_to(length, (value.ndim, 2))[axis].tolist()
    head = (slice(None),) * axis
    found: list[Tensor] = []
    for size, where, k in (
        (sizes[0], slice(0, sizes[0]), low),
        (sizes[1], slice(n - sizes[1] if sizes[1] < n else 0, n), high),
    ):
        if size < 1:
            raise ValueError("stat_length of 0 yields no value for padding")
        edge = _STATISTICS[mode](value[(*head, where)], axis, keepdims=True)
        if mode in ("mean", "median") and value.kind.kind in ("signed", "unsigned"):
            edge = ufunc(np.rint, edge)
        found.append(broadcast_to(cast(edge, value.kind), _with_size(value.shape, axis, k)))
    return found[0], found[1]


def _ramp(value: Tensor, axis: int, k: int, end: Any, last: bool) -> Tensor:
    """Return k steps from an end value to the edge, or from the edge to it, without the edge."""
    n = value.shape[axis]
    head = (slice(None),) * axis
    edge = value[(*head, slice(n - 1, n) if last else slice(0, 1))]
    wide = edge if edge.kind.kind == "float" else cast(edge, WIDE)
    steps = np.arange(k) if not last else np.arange(k, 0, -1) - 1
    share = reshape(
        cast(lift(steps), wide.kind), (*(1,) * axis, k, *(1,) * (value.ndim - axis - 1))
    )
    found = e.add(e.multiply(share, e.divide(e.subtract(wide, end), float(k or 1))), end)
    if edge.kind.kind in ("signed", "unsigned"):
        found = e.floor(found)
    return cast(found, as_dtype(value.kind))
