"""Windows that slide along axes: `numpy.lib.stride_tricks.sliding_window_view`."""

from __future__ import annotations

from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import gather
from stepwell.frontend.manipulation import moveaxis, sizes_of
from stepwell.frontend.operands import array
from stepwell.frontend.promotion import INTEGER
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public("lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """Return all windows of a size in ``x``: the elements of a window are along the last axes.

    returns : a copy, where NumPy's is a view that cannot be written to
    raises ValueError : a window is larger than its axis, or there are not as many axes as sizes
    source : `numpy.lib.stride_tricks.sliding_window_view`
    """
    if writeable:
        raise TraceError("windows of a traced value cannot be written to; assign to slices of it")
    value, sizes = array(x), sizes_of(window_shape)
    if any(n < 0 for n in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = range(value.ndim) if axis is None else sizes_of(axis)
    if len(axes) != len(sizes):
        raise ValueError(
            f"`window_shape` has {len(sizes)} sizes for {len(axes)} axes of the array; "
            "name as many axes"
        )
    for at, size in zip(axes, sizes, strict=True):
        value = _windows(value, size, check_axis(at, value.ndim))
    return value


def _windows(value: Tensor, size: int, axis: int) -> Tensor:
    """Return the windows along one axis; their elements are along a new last axis."""
    count = value.shape[axis] - size + 1
    if count < 1:
        raise ValueError("window shape cannot be larger than input array shape")
    shape = (count, size)
    places = e.add(iota(shape, 0, INTEGER), iota(shape, 1, INTEGER))
    return moveaxis(gather(value, [places], (axis,)), axis + 1, -1)
