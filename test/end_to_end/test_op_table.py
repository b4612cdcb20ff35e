"""Every op on every target: the rows of the op table compiled and compared with the reference.

Rows are compiled many at a time, so that a row costs a few milliseconds. In C the suite takes half
of the integers (test_op_table of the units the others) and every second row of sorting, on OpenCL
the first rows of each family; the slow lane takes all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from op_rows import FAMILIES, Row, sampled, sorting

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.testing.op_rows.together import Together

AT_ONCE = {"c": 24, "opencl": 12}
"""Rows of one program: what compiles OpenCL takes several times as long."""

Batch = Sequence[tuple[Row, str]]


def _parameters() -> Iterator[object]:
    for target in ("c", "opencl"):
        for family in FAMILIES:
            name = f"{target}-{family.__name__.split('.')[-1]}"
            chosen, rest = _split(target, family.ROWS)
            marks = [pytest.mark.opencl] if target == "opencl" else []
            yield from _batches(target, name, chosen, marks)
            yield from _batches(target, f"{name}-rest", rest, [*marks, pytest.mark.slow])


def _split(target: str, rows: Sequence[Row]) -> tuple[Batch, Batch]:
    """Return the rows with the dtypes that the suite runs, and the others."""
    if target == "opencl":
        every = [(r, r.dtypes[0]) for r in rows]
        chosen = every[: AT_ONCE[target]]
    else:
        every = [(r, d) for r in rows for d in r.dtypes]
        chosen = [(r, d) for r in rows for d in sampled(r, 0)]
        chosen = chosen[::2] if rows is sorting.ROWS else chosen  # seconds of the C compiler's
    taken = {(id(row), dtype) for row, dtype in chosen}
    return chosen, [(r, d) for r, d in every if (id(r), d) not in taken]


def _batches(target: str, name: str, rows: Batch, marks: Any) -> Iterator[object]:
    """Yield so many rows at a time."""
    count = AT_ONCE[target]
    for begin in range(0, len(rows), count):
        batch = rows[begin : begin + count]
        yield pytest.param(target, batch, id=f"{name}-{begin}", marks=marks)


@pytest.mark.parametrize(("target", "batch"), list(_parameters()))
def test_rows(target: str, batch: Batch) -> None:
    together = Together.of(batch)
    try:
        program = sw.compile(together.text, target=target, resources=together.resources)
    except CompileError:
        for row, dtype in batch:  # say which
            alone = Together.of([(row, dtype)])
            try:
                sw.compile(alone.text, target=target, resources=alone.resources)
            except CompileError as error:
                raise AssertionError(f"{row.name} of {dtype} does not compile") from error
        raise
    together.check(program)
