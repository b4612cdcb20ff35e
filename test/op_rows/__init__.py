"""One test row per op: what to run, on which dtypes and shapes, how close the result must be.

The rows serve every test that runs ops: reference against lowered, against each compiled target,
gradients against finite differences. Where a test of the suite takes a sample of a row's dtypes,
`sampled` says which. Rows of a family lie in the file of its name; a new family
adds its module, with the `OPS` it covers and their `ROWS`, to `FAMILIES`.
"""

from __future__ import annotations

from zlib import crc32

from op_rows import (
    composite,
    contraction,
    control,
    creation,
    elementwise,
    indexing,
    reduction,
    shape,
    sorting,
)
from stepwell.testing.op_rows.row import INTEGERS, Case, Row

FAMILIES = (
    creation,
    elementwise,
    shape,
    indexing,
    reduction,
    sorting,
    contraction,
    control,
    composite,
)
ROWS: tuple[Row, ...] = tuple(row for family in FAMILIES for row in family.ROWS)


def sampled(row: Row, half: int) -> list[str]:
    """Return dtypes of a row: all but integers, and half of those; 0 and 1 are the two halves."""
    integers = [d for d in row.dtypes if d in INTEGERS]
    start = (crc32(row.name.encode()) + half) % 2
    taken = integers[start::2] if len(integers) > 1 else integers
    return [d for d in row.dtypes if d not in INTEGERS or d in taken]


__all__ = ["FAMILIES", "ROWS", "Case", "Row", "sampled"]
