"""Reading and writing the numbers that kernels have as attributes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Operation

INDEPENDENT = "kernel.independent"
"""On an scf.for of a kernel: no iteration reads or writes an element that another writes.

The outermost loop may then run in parallel, an innermost one in vectors of the C compiler's.
"""


def number(op: Operation, name: str, default: int = 0) -> int:
    """Return the number that ``op`` has under ``name``."""
    value = op.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else default


def numbers(op: Operation, name: str) -> tuple[int, ...]:
    """Return the numbers that ``op`` has under ``name``, none where there is no list."""
    value = op.attributes.get(name)
    each = value.data if isinstance(value, ArrayAttr) else ()
    return tuple(n.value.data for n in each if isinstance(n, IntegerAttr))


def spelled(value: int | Iterable[int]) -> Attribute:
    """Return a number, or a list of numbers, as it is written."""
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    return ArrayAttr(IntegerAttr(n, i64) for n in value)
