"""A remark where a NumPy scalar of float64 makes work with float32 arrays twice as dear.

`scores / np.sqrt(64)` is float64, in NumPy too: `np.sqrt` gives a scalar with a dtype of its own,
which a Python number has not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import place_of, users_frame

LOG = logging.getLogger("stepwell")

_TOLD: set[str] = set()
"""The lines that were told of."""


def remark(values: Sequence[Any]) -> None:
    """Tell, once for each line, where among ``values``, which are float64 together, a scalar is
    what makes them so.
    """
    scalars = [v for v in values if _is_scalar(v)]
    if not scalars:
        return
    kinds = [_dtype(v) for v in values if not _is_scalar(v) and not _is_weak(v)]
    if not kinds or any(kind is None or kind.kind not in "biuf" for kind in kinds):
        return
    narrow = np.result_type(*kinds)
    if not any(isinstance(v, Tensor) and v.shape for v in values):
        return
    if narrow.kind != "f" or narrow.itemsize >= 8:
        return
    if (place := place_of(users_frame())) in _TOLD:
        return
    _TOLD.add(place)
    LOG.warning(
        "%s: %s makes %s arrays float64 here, as in NumPy, which takes twice the memory and time; "
        "%s",
        place,
        "an argument that is a NumPy scalar of float64"
        if isinstance(scalars[0], Tensor)
        else f"the NumPy scalar {scalars[0]!r}",
        narrow,
        "pass it as a Python number, float(...)"
        if isinstance(scalars[0], Tensor)
        else "write it as a Python number: float(...) around it, or math.sqrt for np.sqrt",
    )


def _is_scalar(value: Any) -> bool:
    """Whether ``value`` is a scalar of NumPy's with 64 bits, or an argument that is one."""
    if isinstance(value, Tensor):
        return (
            value.cell is False
            and not value.weak
            and (value.shape, value.kind.name)
            == (
                (),
                "f64",
            )
        )
    return type(value) is np.float64


def _is_weak(value: Any) -> bool:
    return value.weak if isinstance(value, Tensor) else isinstance(value, bool | int | float)


def _dtype(value: Any) -> Any:
    """Return the dtype of a value, None where NumPy has none."""
    if isinstance(value, Tensor):
        return None if value.kind.name == "bf16" else value.dtype
    return np.asarray(value).dtype
