"""Helpers of the verifiers for types: element, shape, layout; and how they raise errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    FixedBitwidthType,
    IndexType,
    IntAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    ShapedType,
    Signedness,
    StridedLayoutAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import VerifyException

Layout = tuple[Sequence[int | None], int | None]
"""Strides and offset of a buffer in elements; None if known only at run time."""


def refuse(message: str) -> NoReturn:
    """Raise an error about the op."""
    raise VerifyException(message)


def require(holds: bool, message: str) -> None:
    """Refuse the op unless a condition holds; for messages that are cheap to make."""
    if not holds:
        refuse(message)


def element(type: Attribute) -> Attribute:
    """Return the element type of a tensor, buffer or vector; for a number its own type."""
    return type.element_type if isinstance(type, TensorType | MemRefType | VectorType) else type


def shape(type: Attribute) -> tuple[int, ...]:
    """Return the shape; () for a number."""
    return type.get_shape() if isinstance(type, ShapedType) else ()


def form(type: Attribute) -> tuple[Any, ...]:
    """Return the parts of a type that must agree if only the element types may differ."""
    if isinstance(type, VectorType):
        return VectorType, type.get_shape(), type.get_scalable_dims()
    if isinstance(type, TensorType):
        return TensorType, type.get_shape()
    if isinstance(type, MemRefType):
        return MemRefType, type.get_shape(), type.layout, type.memory_space
    return (None,)


def is_float(type: Attribute) -> bool:
    """Whether a type is a floating-point type."""
    return isinstance(type, FixedBitwidthType) and not isinstance(type, IntegerType)


def is_integer(type: Attribute) -> bool:
    """Whether a type is a signless integer type."""
    return isinstance(type, IntegerType) and type.signedness.data is Signedness.SIGNLESS


def is_integer_or_index(type: Attribute) -> bool:
    """Whether a type is a signless integer type or index."""
    return isinstance(type, IndexType) or is_integer(type)


def bits(type: Attribute) -> int:
    """Return the width of a numeric type; 0 for an index."""
    return type.bitwidth if isinstance(type, FixedBitwidthType) else 0


def fits(a: int | None, b: int | None) -> bool:
    """Whether two sizes, strides or offsets may be equal; an unknown one may have any value."""
    return a == b or a in (None, DYNAMIC_INDEX) or b in (None, DYNAMIC_INDEX)


def all_fit(a: Sequence[int | None], b: Sequence[int | None]) -> bool:
    """Whether two shapes may be equal."""
    return len(a) == len(b) and all(map(fits, a, b))


def spelled(sizes: Iterable[int | None]) -> str:
    """Return a shape as text."""
    return "x".join("?" if n in (None, DYNAMIC_INDEX) else str(n) for n in sizes) or "no axes"


def times(a: int | None, b: int | None) -> int | None:
    """Return a product, unknown if a factor is; 0 times unknown is 0, as in MLIR."""
    if 0 in (a, b):
        return 0
    if a is None or b is None or DYNAMIC_INDEX in (a, b):
        return None
    return a * b


def layout(type: MemRefType[Any]) -> Layout | None:
    """Return strides and offset; None if the layout is not strided."""
    if isinstance(type.layout, NoneAttr):
        return row_major(type.get_shape()), 0
    if isinstance(type.layout, StridedLayoutAttr):
        strides = [n.data if isinstance(n, IntAttr) else None for n in type.layout.strides]
        offset = type.layout.offset
        return strides, offset.data if isinstance(offset, IntAttr) else None
    rank = type.get_num_dims()
    if isinstance(type.layout, AffineMapAttr) and type.layout.data == AffineMap.identity(rank):
        return row_major(type.get_shape()), 0
    return None


def row_major(sizes: Sequence[int | None]) -> list[int | None]:
    """Return the strides of a contiguous buffer."""
    strides: list[int | None] = []
    step: int | None = 1
    for size in reversed(sizes):
        strides.append(step)
        step = times(step, size)
    return strides[::-1]


def one_space(a: MemRefType[Any], b: MemRefType[Any]) -> None:
    """Refuse a view in another memory space than its source."""
    if a.memory_space != b.memory_space:
        refuse(f"a view of {a} lies in the same memory space, {b} does not")


def check_indices(type: Attribute, indices: Sequence[SSAValue], what: str) -> None:
    """Refuse a number of indices that differs from the number of axes."""
    if len(indices) != (axes := len(shape(type))):
        refuse(f"{what} with {axes} axes takes as many indices, not {len(indices)}: {type}")


def check_axis(type: Attribute, axis: SSAValue) -> None:
    """Refuse a constant that is not an axis of ``type``."""
    value = getattr(axis.owner, "value", None)
    number = getattr(getattr(value, "value", None), "data", None)
    if isinstance(type, ShapedType) and isinstance(number, int):
        axes = type.get_num_dims()
        if not 0 <= number < axes:
            refuse(f"{type} has no axis {number}: there are {axes}, counted from 0")
