"""Compare results: bit by bit, or within a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import DTYPES, DType

Array: TypeAlias = "NDArray[Any]"
BF16 = DTYPES["bf16"]


def assert_same(
    got: Any, want: Any, *, ulps: float = 0, absolute: float = 0, bits: bool = False
) -> None:
    """Fail unless two arrays, or tuples, lists and dicts of arrays, are the same.

    Structure, dtypes and shapes must be equal, and so must integers and booleans. NaN equals NaN.

    ulps : the allowed difference of a float, in units in the last place of ``want``
    absolute : a difference of floats that is always allowed
    bits : whether zeros must have the same sign

    raises AssertionError : names the first element that differs, and its index

    >>> assert_same({"y": np.float32([1, 2])}, {"y": np.float32([1, 2.0000002])}, ulps=1)
    >>> assert_same([np.zeros(2)], [np.array([0.0, 1.0])])
    Traceback (most recent call last):
    AssertionError: [0]: 1 of 2 elements differ; first at [1]: got 0.0, expected 1.0
    """
    _same(got, want, "", ulps, absolute, bits)


def _same(got: Any, want: Any, where: str, ulps: float, absolute: float, bits: bool) -> None:
    if isinstance(want, Mapping):
        expected = cast(Mapping[str, Any], want)
        assert isinstance(got, Mapping) and list(got) == list(expected), (
            f"{where or 'the result'}: expected {_kind(want)} of {list(expected)}, got {_kind(got)}"
        )
        for key, value in expected.items():
            _same(got[key], value, f"{where}[{key!r}]", ulps, absolute, bits)
    elif isinstance(want, tuple | list):
        parts = cast("list[Any]", want)
        assert isinstance(got, tuple | list) and len(cast("list[Any]", got)) == len(parts), (
            f"{where or 'the result'}: expected {_kind(want)} of {len(parts)}, got {_kind(got)}"
        )
        for number, value in enumerate(parts):
            _same(got[number], value, f"{where}[{number}]", ulps, absolute, bits)
    else:
        _same_arrays(np.asarray(got), np.asarray(want), where, ulps, absolute, bits)


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"


def _same_arrays(
    got: Array, want: Array, where: str, ulps: float, absolute: float, bits: bool
) -> None:
    what = f"{where}: " if where else ""
    assert got.dtype == want.dtype, f"{what}dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what}shape {got.shape}, expected {want.shape}"
    kind = BF16 if want.dtype.name == "bfloat16" else None
    if kind is not None:
        got, want = got.astype(np.float32), want.astype(np.float32)
    if want.dtype.kind == "f":
        off = differing(got, want, ulps, absolute, kind)
        if bits:
            off |= np.signbit(got) != np.signbit(want)
            off &= ~(np.isnan(got) & np.isnan(want))
    else:
        off = np.asarray(got != want)
    if off.any():
        first = tuple(int(i) for i in np.argwhere(off)[0])
        raise AssertionError(
            f"{what}{off.sum()} of {off.size} elements differ; first at {list(first)}: "
            f"got {got[first]}, expected {want[first]}"
        )


def differing(
    got: Array, want: Array, ulps: float, absolute: float = 0, dtype: DType | None = None
) -> NDArray[np.bool_]:
    """Return where two float arrays differ by more than ``ulps`` units in ``want``'s last place.

    NaN equals NaN, and 0 equals -0.

    dtype : bf16 if the arrays are 32-bit floats that represent it
    """
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(want)).astype(np.float64)
        if dtype is not None and dtype.name == "bf16":
            unit = unit * 2.0**16
        wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
        near = np.abs(wide_got - wide_want) <= np.fmax(ulps * unit, absolute)
    return ~(near | (wide_got == wide_want) | (np.isnan(wide_got) & np.isnan(wide_want)))
