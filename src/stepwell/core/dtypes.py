"""The element types of tensors, and their representation in NumPy.

NumPy has no bf16. If `ml_dtypes` is installed, arrays passed in and out have its type; inside the
reference interpreters a bf16 value is a float32 rounded to bf16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["float", "signed", "unsigned", "bool"]


@dataclass(frozen=True)
class DType:
    """One element type: its name in IR, its kind and its width in memory."""

    name: str
    kind: Kind
    bytes: int
    numpy: np.dtype[Any]
    """The NumPy type of its values inside the reference interpreters."""

    def round(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return ``array`` as values of this type: cast, and for bf16 rounded to nearest even."""
        with np.errstate(all="ignore"):
            cast = np.asarray(array).astype(self.numpy, copy=False)
        return round_to_bf16(cast) if self.name == "bf16" else cast


def round_to_bf16(x: NDArray[Any]) -> NDArray[np.float32]:
    """Round float32 to the nearest bf16, ties to even, and return it as float32; NaN stays NaN.

    >>> round_to_bf16(np.array([1.0, 1.00390625, 3.4e38], np.float32))
    array([ 1.,  1., inf], dtype=float32)
    """
    shape = np.shape(x)
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.view(np.float32)).astype(np.float32).reshape(shape)


def _dtype(name: str, kind: Kind, numpy: str, bytes: int | None = None) -> DType:
    dtype = np.dtype(numpy)
    return DType(name, kind, dtype.itemsize if bytes is None else bytes, dtype)


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        _dtype("f64", "float", "float64"),
        _dtype("f32", "float", "float32"),
        _dtype("f16", "float", "float16"),
        _dtype("bf16", "float", "float32", bytes=2),
        _dtype("i64", "signed", "int64"),
        _dtype("i32", "signed", "int32"),
        _dtype("i16", "signed", "int16"),
        _dtype("i8", "signed", "int8"),
        _dtype("ui64", "unsigned", "uint64"),
        _dtype("ui32", "unsigned", "uint32"),
        _dtype("ui16", "unsigned", "uint16"),
        _dtype("ui8", "unsigned", "uint8"),
        _dtype("i1", "bool", "bool"),
    )
}
"""Every dtype by its name in IR: floats, signed and unsigned (`ui8`) integers, `i1`."""

_BY_NUMPY = {d.numpy: d for d in DTYPES.values() if d.name != "bf16"}


def dtype_of(array: np.dtype[Any]) -> DType | None:
    """Return the dtype of a NumPy (or ml_dtypes) type in native byte order, None if unsupported.

    >>> dtype_of(np.dtype("uint8")).name
    'ui8'
    """
    found = _BY_NUMPY.get(array)
    if found is not None:
        return found if array.isnative else None
    return DTYPES["bf16"] if array.name == "bfloat16" else None  # `name` is slow to compute


_LACKING = {
    "c": "complex numbers are not supported yet",
    "f": "floats have 64 bits at most",
    **dict.fromkeys("OSUVMm", "there are no objects, strings, records and dates"),
}


def lacking(dtype: np.dtype[Any]) -> str:
    """Return why a NumPy type has no dtype.

    >>> lacking(np.dtype(complex))
    'complex numbers are not supported yet'
    """
    return _LACKING.get(dtype.kind, "arrays have the byte order of the machine")
