"""One test row per op: what to run, on which dtypes and shapes, how close the result must be.

The rows serve every test that runs ops: reference against lowered, against each compiled target,
gradients against finite differences. Rows of a family lie in the file of its name; a new family
adds its module, with the `OPS` it covers and their `ROWS`, to `FAMILIES`.
"""

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
from stepwell.testing.op_rows.row import Case, Row

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

__all__ = ["FAMILIES", "ROWS", "Case", "Row"]
