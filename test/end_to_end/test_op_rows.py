"""Every op, compiled to C and run: each row of the op table against what the op means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from op_rows import ROWS, Row
from op_rows.row import Array, Case
from op_rows.run import reference

import stepwell as sw
from stepwell.compiled import Compiled
from stepwell.core.signature import Tensor

EVERY_DTYPE = bool(os.environ.get("STEPWELL_TEST_ALL"))
"""Whether to run each row with each of its dtypes; otherwise with two."""
COMPILABLE = [row for row in ROWS if "index" not in row.arguments.values()]
"""A program takes arrays only."""


KNOWN: dict[str, str] = {}
"""Rows that do not compile yet, and why."""


def dtypes(row: Row) -> Sequence[str]:
    """Return the first dtype of a row and another, not the same one for every row."""
    if EVERY_DTYPE or len(row.dtypes) <= 2:
        return row.dtypes
    return (row.dtypes[0], row.dtypes[1 + len(row.name) % (len(row.dtypes) - 1)])


def call(compiled: Compiled, case: Case) -> tuple[Array, ...]:
    """Call with bf16 as programs take it: reference arrays hold it as float32."""
    arguments = [
        _given(s, a) for s, a in zip(compiled.signature.arguments, case.arguments, strict=True)
    ]
    results = compiled(*arguments)
    return tuple(_as_reference(r) for r in (results if isinstance(results, tuple) else (results,)))


def _given(spec: Tensor, array: Array) -> Array:
    return array.astype(ml_dtypes.bfloat16) if spec.dtype == "bf16" else array


def _as_reference(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


@pytest.mark.parametrize("row", COMPILABLE, ids=lambda row: row.name)
def test_compiled(row: Row, request: pytest.FixtureRequest) -> None:
    """The compiled row gives what the reference interpreter gives."""
    if row.name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[row.name], strict=True))
    for dtype in dtypes(row):
        compiled: Any = None
        for case in row.cases([dtype]):
            if compiled is None:
                compiled = sw.compile(case.module, resources=row.resources, name=str(case))
            case.check(call(compiled, case), reference(case))
