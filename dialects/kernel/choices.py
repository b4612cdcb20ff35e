"""Read and write the numbers in attributes of kernels."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute, Operation

INDEPENDENT = "kernel.independent"
"""Attribute of an scf.for of a kernel: no iteration accesses an element that another one writes.

The outermost loop may then run in parallel, an innermost one be vectorized by the C compiler.
"""


def number(op: Operation, name: str, default: int = 0) -> int:
    """Return the number in attribute ``name`` of ``op``."""
    value = op.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else default


def numbers(op: Operation, name: str) -> tuple[int, ...]:
    """Return the numbers in attribute ``name`` of ``op``, () without a list."""
    value = op.attributes.get(name)
    each = value.data if isinstance(value, ArrayAttr) else ()
    return tuple(n.value.data for n in each if isinstance(n, IntegerAttr))


def aliases(op: Operation) -> list[tuple[int, int]]:
    """Return the pairs of an input and a destination of kernel ``op`` that may be one buffer."""
    pairs = op.attributes.get("kernel.in_place")
    found = (
        [p.get_values() for p in pairs if isinstance(p, DenseArrayBase)]
        if isinstance(pairs, ArrayAttr)
        else []
    )
    return [(int(i), int(j)) for i, j in found]


def spelled(value: int | Iterable[int]) -> Attribute:
    """Return a number, or a list of numbers, as an attribute."""
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    return ArrayAttr(IntegerAttr(n, i64) for n in value)
