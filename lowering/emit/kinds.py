"""The type of a value in a C-like language: its element and its number of lanes.

Elements are those of the IR (`f32`, `bf16`, `i8`, `index`, ...), their unsigned twins (`u32`)
and the lanes of a mask (`m32`: all bits set or none, as wide as the compared elements).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

BITS: dict[str, int] = {
    "f64": 64,
    "f32": 32,
    "f16": 16,
    "bf16": 16,
    "index": 64,
    "i1": 8,
    **{f"{letter}{bits}": bits for letter in "ium" for bits in (8, 16, 32, 64)},
}
"""The bits of every element; an i1 takes a byte of memory."""

NARROW = frozenset({"f16", "bf16"})
"""Floats that are stored as bits and computed as f32."""

_FLOATS: dict[type[Attribute], str] = {
    Float64Type: "f64",
    Float32Type: "f32",
    Float16Type: "f16",
    BFloat16Type: "bf16",
    IndexType: "index",
}


@dataclass(frozen=True)
class Kind:
    """A scalar (``lanes`` = 0) or a vector of ``element``."""

    element: str
    lanes: int = 0

    @property
    def bits(self) -> int:
        """Width of one element."""
        return BITS[self.element]

    @property
    def is_mask(self) -> bool:
        """Whether this is a vector of truth values."""
        return self.element[0] == "m"

    @property
    def is_bool(self) -> bool:
        """Whether this holds truth values: an i1 or a mask."""
        return self.element == "i1" or self.is_mask

    @property
    def unsigned(self) -> Kind:
        """The unsigned integers of the same width."""
        return Kind(f"u{self.bits}", self.lanes)

    @property
    def signed(self) -> Kind:
        """The signed integers of the same width."""
        return Kind(f"i{self.bits}", self.lanes)

    @property
    def mask(self) -> Kind:
        """The kind of a comparison's result."""
        return Kind(f"m{self.bits}", self.lanes) if self.lanes else BOOL

    @property
    def scalar(self) -> Kind:
        """The kind of one lane."""
        return BOOL if self.is_mask else Kind(self.element)

    def of(self, element: str) -> Kind:
        """Return the kind with the same lanes of another element."""
        return Kind(element, self.lanes)

    def __str__(self) -> str:
        return f"{self.element}x{self.lanes}" if self.lanes else self.element


BOOL = Kind("i1")
INDEX = Kind("index")
LANES = Kind("u64")
"""A range of lanes, with a bit for each."""


def element_name(type: Attribute) -> str | None:
    """Return the name of an element type, None if C has no such type."""
    if isinstance(type, IntegerType):
        width = type.width.data
        return f"i{width}" if width in (1, 8, 16, 32, 64) else None
    return _FLOATS.get(type.__class__)


def kind_of(type: Attribute) -> Kind | None:
    """Return the kind of a scalar or one-dimensional vector type, None for other types."""
    if not isinstance(type, VectorType):
        return None if (element := element_name(type)) is None else _scalar_kind(element)
    element, shape = element_name(type.element_type), type.get_shape()
    if element is None or len(shape) > 1:
        return None
    lanes = shape[0] if shape else 1
    if lanes & (lanes - 1) or lanes > 64:
        return None
    return _vector_kind(element, lanes)


_scalar_kind = cache(Kind)


@cache
def _vector_kind(element: str, lanes: int) -> Kind:
    return Kind(f"m{_bits_of_truth(lanes)}" if element == "i1" else element, lanes)


def _bits_of_truth(lanes: int) -> int:
    """Return the width of masks without a comparison that determines it: narrow if many."""
    return min(32, max(8, 512 // max(lanes, 1)))


def layout_of(type: MemRefType) -> tuple[tuple[int | None, ...], tuple[int | None, ...]] | None:
    """Return sizes and strides of a memref, None where unknown; None for an unstrided layout."""
    sizes = tuple(None if n < 0 else n for n in type.get_shape())
    strides = type.get_strides()
    return None if strides is None else (sizes, tuple(strides))
