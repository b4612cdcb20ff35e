"""Calls with bfloat16 floats: NumPy computes in float32 on numbers rounded to bfloat16."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from stepwell.core.dtypes import round_to_bf16
from stepwell.testing.numpy_calls.values import Call

IS_HERE = find_spec("ml_dtypes") is not None
"""Whether NumPy has bfloat16, by a package."""
if IS_HERE:
    import_module("ml_dtypes")
EXACT = {"1e-3": "0.0009765625", "1e30": "2.0**100", "1000000": "1048576"}
"""Numbers that bfloat16 cannot represent, and their replacements."""
APART = {
    *("nextafter", "spacing", "frexp", "modf", "bitcast", "result_type", "ldexp", "isclose"),
    *("allclose", "nan_to_num", "linspace", "geomspace", "interp", "quantile", "percentile"),
    *("nanquantile", "nanpercentile", "gradient", "digitize", "searchsorted", "histogram"),
    *(
        "histogram2d",
        "histogram_bin_edges",
        "unwrap",
        "float_power",
        "polyval",
        "polyint",
        "vander",
    ),
}
"""Functions that depend on the bits of a dtype, or mix dtypes internally."""


def in_bfloat16(call: Call) -> Call | None:
    """Return the call with bfloat16 for every float; None if the result is not defined."""
    floats = [name for name, array in call.arrays.items() if _kind(array) == "f"]
    plain = call.name.lstrip(".").split("(")[0].split(".")[0]
    if (
        not floats
        or plain in APART
        or call.name.endswith(".at")
        or "dtype" in call.text
        or "astype" in call.text
    ):
        return None
    if "np.float" in call.text or "random" in call.name or "y = m.zeros" in call.text:
        return None
    arrays = dict(call.arrays)
    for name, array in call.arrays.items():
        if name in floats:
            arrays[name] = _rounded(array)
        elif _kind(array) in "iu" and np.abs(np.asarray(array).astype("f8")).max(initial=0) > 256:
            return None
    text = call.text
    for long, short in EXACT.items():
        text = text.replace(long, short)
    if "300" in text or "2**40" in text or "2**31" in text:
        return None
    return replace(call, text=text, arrays=arrays, name=f"bf16 {call.name}")


def _kind(array: Any) -> str:
    return np.asarray(array).dtype.kind if isinstance(array, np.ndarray | np.generic) else "n"


def _rounded(array: Any) -> Any:
    with np.errstate(all="ignore"):
        return round_to_bf16(np.asarray(array).astype(np.float32)).astype("bfloat16")


def is_bfloat16(array: Any) -> bool:
    """Whether an array has the dtype bfloat16."""
    return getattr(array, "dtype", None) is not None and array.dtype.name == "bfloat16"


def as_float32(array: Any) -> Any:
    """Return an array in the dtype in which NumPy computes bfloat16."""
    return array.astype(np.float32) if is_bfloat16(array) else array


def as_given(want: Any, got: Any) -> Any:
    """Return NumPy's float32 result rounded to bfloat16, if that is expected."""
    kind = np.asarray(want).dtype
    if kind.kind == "f" and is_bfloat16(got):
        return round_to_bf16(np.asarray(want, np.float32))
    return want
