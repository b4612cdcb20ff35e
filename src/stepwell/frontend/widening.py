"""A remark where a float64 NumPy scalar widens float32 arrays, which doubles the cost.

`scores / np.sqrt(64)` is float64, also in NumPy: `np.sqrt` returns a scalar with a dtype of its
own, unlike a Python number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.frontend.notices import warn_once
from stepwell.frontend.tensor import Tensor


def remark(values: Sequence[Any]) -> None:
    """Warn, once for each line, if a scalar is the only cause of the float64 type of ``values``."""
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
    if isinstance(scalars[0], Tensor):
        what = "an argument that is a NumPy scalar of float64"
        advice = "pass it as a Python number, float(...)"
    else:
        what = f"the NumPy scalar {scalars[0]!r}"
        advice = "write it as a Python number: float(...) around it, or math.sqrt for np.sqrt"
    warn_once(
        "widening",
        f"{what} makes {narrow} arrays float64 here, as in NumPy, which takes twice the memory "
        f"and time; {advice}",
    )


def _is_scalar(value: Any) -> bool:
    """Whether ``value`` is a 64-bit NumPy scalar, or an argument that is one."""
    if isinstance(value, Tensor):
        argument = value.cell is False and not value.weak
        return argument and not value.shape and value.kind.name == "f64"
    return type(value) is np.float64


def _is_weak(value: Any) -> bool:
    return value.weak if isinstance(value, Tensor) else isinstance(value, bool | int | float)


def _dtype(value: Any) -> Any:
    """Return the dtype of a value; None if NumPy has none."""
    if isinstance(value, Tensor):
        return None if value.kind.name == "bf16" else value.dtype
    return np.asarray(value).dtype
