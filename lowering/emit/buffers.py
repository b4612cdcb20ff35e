"""A memref in a C-like language: a typed pointer, and sizes and strides as expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Operation

from stepwell.lowering.emit.kinds import element_name, layout_of
from stepwell.transforms.passes import fail

_DIGITS = frozenset("-0123456789")


@dataclass(frozen=True)
class Buffer:
    """``pointer`` is that of the first element; sizes and strides are operands of any operator."""

    pointer: str
    element: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    space: str = ""
    """Its address space, for languages where the pointer's type has one (``__global ``)."""
    writable: bool = True

    def at(self, indices: Sequence[str], further: int = 0) -> str:
        """Return the element at ``indices``, or the one ``further`` elements behind it."""
        return f"{self.pointer}[{offset(zip(indices, self.strides, strict=True), further)}]"

    @property
    def contiguous(self) -> bool:
        """Whether this is known to be row-major without gaps."""
        return self.gapless == len(self.sizes)

    @property
    def gapless(self) -> int:
        """The number of trailing axes that are known to be row-major without gaps."""
        pairs = zip(reversed(self.strides), reversed(row_major(self.sizes)), strict=True)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def inside(self, indices: Sequence[str]) -> Buffer:
        """Return the sub-buffer at ``indices`` of the first axes, with the remaining axes."""
        n = len(indices)
        start = offset(zip(indices, self.strides[:n], strict=True))
        pointer = self.pointer if start == "0" else f"({self.pointer} + {start})"
        return replace(self, pointer=pointer, sizes=self.sizes[n:], strides=self.strides[n:])


def number(text: str) -> int | None:
    """Return the value of a literal, None for any other expression."""
    return int(text) if _DIGITS.issuperset(text) else None


def plus(x: str, y: str) -> str:
    """Return a sum, folded if possible."""
    a, b = number(x), number(y)
    if a is not None and b is not None:
        return str(a + b)
    return y if a == 0 else x if b == 0 else f"{x} + {y}"


def times(x: str, y: str) -> str:
    """Return a product that may be an operand of any operator, folded if possible."""
    a, b = number(x), number(y)
    if a is not None and b is not None:
        return str(a * b)
    if 0 in (a, b):
        return "0"
    return y if a == 1 else x if b == 1 else f"({x} * {y})"


def product(factors: Iterable[str]) -> str:
    """Return the product of all ``factors``."""
    result = "1"
    for factor in factors:
        result = times(result, factor)
    return result


def offset(terms: Iterable[tuple[str, str]], constant: int = 0) -> str:
    """Return the sum of index times stride, plus a constant."""
    total = ""
    for index, stride in terms:
        term = times(index, stride)
        if (known := number(term)) is not None:
            constant += known
            continue
        bare = term[1:-1] if term[0] == "(" and term.startswith(f"({index} * ") else term
        total = f"{total} + {bare}" if total else bare
    if constant < 0 and total:
        return f"{total} - {-constant}"
    return f"{total} + {constant}" if total and constant else total or str(constant)


def row_major(sizes: Sequence[str]) -> tuple[str, ...]:
    """Return the strides of a contiguous array."""
    strides: list[str] = []
    stride = "1"
    for size in reversed(sizes):
        strides.append(stride)
        stride = times(size, stride)
    return tuple(reversed(strides))


def element_of(op: Operation, type: MemRefType) -> str:
    """Return the element of a memref type."""
    element = element_name(type.element_type)
    if element is None:
        fail(op, f"elements of type {type.element_type} have no place in memory")
    return element


def sizes_and_strides(
    op: Operation, type: MemRefType, sizes: Iterable[str], strides: Iterable[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return sizes and strides; the given ones replace the `?` of the type, in order."""
    layout = layout_of(type)
    if layout is None:
        fail(op, f"{type} has no strides", help="layouts are row-major or strided<[...]>")
    dynamic_sizes, dynamic_strides = iter(sizes), iter(strides)
    known = tuple(next(dynamic_sizes) if n is None else str(n) for n in layout[0])
    if isinstance(type.layout, NoneAttr):
        return known, row_major(known)
    return known, tuple(next(dynamic_strides) if n is None else str(n) for n in layout[1])
