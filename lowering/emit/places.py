"""A device buffer in the host schedule: its address and its shape, as trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepwell.core.host_schedule import Tree
from stepwell.lowering.emit.kinds import BITS, NARROW, Kind


@dataclass(frozen=True)
class Place:
    """A device buffer: the allocation, the offset in bytes, and its shape, as trees."""

    buffer: str
    skip: Tree
    element: str
    sizes: tuple[Tree, ...]
    strides: tuple[Tree, ...]

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return BITS[self.element] // 8

    @property
    def contiguous(self) -> bool:
        """Whether this is known to be row-major without gaps."""
        return self.strides == row_major(self.sizes)

    def moved(self, indices: Sequence[Tree]) -> list[Tree]:
        """Return allocation and byte offset of the element at ``indices``."""
        skip = self.skip
        for index, stride in zip(indices, self.strides, strict=True):
            skip = add(skip, multiply(multiply(index, stride), self.bytes))
        return [self.buffer, skip]


def add(a: Tree, b: Tree) -> Tree:
    """Return a sum, folded if possible."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else ["+", a, b]


def multiply(a: Tree, b: Tree) -> Tree:
    """Return a product, folded if possible."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    return b if a == 1 else a if b == 1 else ["*", a, b]


def row_major(sizes: Sequence[Tree]) -> tuple[Tree, ...]:
    """Return the strides of a contiguous array."""
    strides: list[Tree] = []
    stride: Tree = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = multiply(size, stride)
    return tuple(reversed(strides))


def count(sizes: Iterable[Tree]) -> Tree:
    """Return the number of elements."""
    result: Tree = 1
    for size in sizes:
        result = multiply(result, size)
    return result


def passed(kind: Kind) -> str:
    """Return the dtype of a scalar argument of a kernel."""
    passed = {"index": "i64", "i1": "i32", "f16": "i16", "bf16": "i16"}
    return passed.get(kind.element, kind.element)


def moved_as(place: Place) -> str:
    """Return the dtype in which the host transfers an element: 16-bit floats as their bits."""
    return "i16" if place.element in NARROW else place.element
