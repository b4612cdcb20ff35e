"""Every op on every target: the rows of the op table compiled and compared with the reference.

Rows are compiled many at a time, so that a row costs a few milliseconds. On OpenCL the suite takes
the first rows of each family, the slow lane all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from op_rows import FAMILIES, Row

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.testing.op_rows.together import Together

AT_ONCE = {"c": 24, "opencl": 12}
"""Rows of one program: what compiles OpenCL takes several times as long."""

Batch = Sequence[tuple[Row, str]]


def _batches(target: str) -> Iterator[tuple[str, Batch]]:
    """Yield the rows of each family, so many at a time; for OpenCL of their first dtypes."""
    count = AT_ONCE[target]
    for family in FAMILIES:
        rows = [(r, d) for r in family.ROWS for d in r.dtypes[: None if target == "c" else 1]]
        for begin in range(0, len(rows), count):
            yield f"{family.__name__.split('.')[-1]}-{begin}", rows[begin : begin + count]


def _parameters() -> Iterator[object]:
    for target in ("c", "opencl"):
        for name, batch in _batches(target):
            rare = target == "opencl" and name.partition("-")[2] != "0"
            yield pytest.param(
                target, batch, id=f"{target}-{name}", marks=pytest.mark.slow if rare else ()
            )


@pytest.mark.parametrize(("target", "batch"), list(_parameters()))
def test_rows(target: str, batch: Batch) -> None:
    if target == "opencl":
        pytest.importorskip("pyopencl")
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
