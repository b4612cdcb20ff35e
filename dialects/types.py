"""Read and create types, locations and constant arrays of IR values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    Float16Type,
    Float32Type,
    Float64Type,
    Float80Type,
    Float128Type,
    FusedLoc,
    IndexType,
    IntegerType,
    LocationAttr,
    NameLoc,
    NoneAttr,
    Signedness,
    StringAttr,
    TensorType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.diagnostics import Place
from stepwell.core.dtypes import DTYPES, DType

UNKNOWN = UnknownLoc()
UNSUPPORTED_FLOATS = (Float80Type, Float128Type)
"""Floats wider than Python's: xDSL has the types but cannot pack their numbers."""

_FLOATS: dict[type[Attribute], str] = {
    Float64Type: "f64",
    Float32Type: "f32",
    Float16Type: "f16",
    BFloat16Type: "bf16",
}
_ELEMENTS: dict[str, Attribute] = {
    "f64": Float64Type(),
    "f32": Float32Type(),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "i1": IntegerType(1),
    **{f"i{n}": IntegerType(n) for n in (8, 16, 32, 64)},
    **{f"ui{n}": IntegerType(n, Signedness.UNSIGNED) for n in (8, 16, 32, 64)},
}


def tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """Return the type of ``value``, which must be a ranked tensor."""
    assert isinstance(value.type, TensorType), value.type
    return value.type


def dtype(element: Attribute) -> DType:
    """Return the dtype of an element type; KeyError if it is not supported."""
    if isinstance(element, IntegerType):
        prefix = "ui" if element.signedness.data == Signedness.UNSIGNED else "i"
        return DTYPES[f"{prefix}{element.width.data}"]
    return DTYPES[_FLOATS[type(element)]]


def element_type(dtype: DType | str) -> Attribute:
    """Return the IR element type of a dtype or of its name."""
    return _ELEMENTS[dtype if isinstance(dtype, str) else dtype.name]


def dense(array: NDArray[Any], element: Attribute) -> DenseIntOrFPElementsAttr:
    """Return ``array`` as a dense attribute of ``element``s."""
    kind = dtype(element)
    packed = np.ascontiguousarray(kind.round(array))
    if kind.name == "bf16":
        packed = (packed.view(np.uint32) >> 16).astype(np.uint16)
    type: TensorType[Any] = TensorType(element, array.shape)
    return DenseIntOrFPElementsAttr(type, BytesAttr(packed.tobytes()))


def array(attribute: DenseIntOrFPElementsAttr) -> NDArray[Any]:
    """Return a dense attribute as a read-only array without copying (bf16 as float32)."""
    if isinstance(attribute.get_element_type(), IndexType):
        return np.frombuffer(attribute.data.data, np.int64).reshape(attribute.get_shape())
    kind = dtype(attribute.get_element_type())
    data = attribute.data.data
    if kind.name == "bf16":
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(attribute.get_shape())
    return np.frombuffer(data, kind.numpy).reshape(attribute.get_shape())


def fuse_locations(locations: Iterable[LocationAttr]) -> LocationAttr:
    """Return the union of locations, in order of first mention; unknown ones are dropped."""
    found: dict[LocationAttr, None] = {}
    for location in locations:
        parts = location.locations if isinstance(location, FusedLoc) else (location,)
        assert isinstance(parts, tuple | ArrayAttr)
        found.update((p, None) for p in parts if p != UNKNOWN)  # pyright: ignore
    if len(found) <= 1:
        return next(iter(found), UNKNOWN)
    return FusedLoc(ArrayAttr(found), NoneAttr())


def computed_again(location: LocationAttr) -> LocationAttr:
    """Return the location of an op that recomputes the result of another at ``location``.

    CSE never merges such ops: recomputation shortens the live range of a value.
    """
    return NameLoc(_AGAIN, location)


def times_again(location: LocationAttr) -> int:
    """Return how many times an op was marked as a recomputation (`computed_again`)."""
    if isinstance(location, NameLoc) and location.desc == _AGAIN:
        return 1 + times_again(location.location)  # pyright: ignore
    if isinstance(location, FusedLoc):
        return max((times_again(p) for p in location.locations), default=0)  # pyright: ignore
    return 0


_AGAIN = StringAttr("computed again")


def locate(root: Operation, location: LocationAttr) -> Operation:
    """Set the location of ``root`` and of all ops in it that have none."""
    for op in root.walk():
        if op.location == UNKNOWN:
            op.location = location
    return root


def places(location: LocationAttr) -> tuple[Place, ...]:
    """Return every source position in ``location``, outermost first."""
    match location:
        case FileLineColLoc():
            return (Place(location.filename.data, location.line.data, location.column.data),)
        case FusedLoc():
            return tuple(p for each in location.locations for p in places(each))  # pyright: ignore
        case _ if (inner := getattr(location, "location", None)) is not None:
            return places(inner)
        case _:
            return ()


def place_of(op: Operation) -> Place | None:
    """Return the first known source position of ``op`` or of an enclosing op."""
    at: Operation | None = op
    while at is not None:
        if found := places(at.location):
            return found[0]
        at = at.parent_op()
    return None


def called(value: SSAValue) -> str:
    """Return the name of a value in messages, or its type if it has no name."""
    return f"%{value.name_hint}" if value.name_hint else str(value.type)
