"""Every op alone in a program: the first row of each, compiled to C and run.

All rows with all their dtypes, many in a program, are run by test_op_table.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from op_rows import ROWS, Row

import stepwell as sw
from stepwell.api.compiled import Compiled
from stepwell.core.signature import Tensor
from stepwell.testing.op_rows.row import Array, Case
from stepwell.testing.op_rows.run import reference

COMPILABLE = [row for row in ROWS if "index" not in row.arguments.values()]
"""A program takes arrays only."""
FIRST = {row.op: row for row in reversed(COMPILABLE)}


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


@pytest.mark.sampled(8)
@pytest.mark.parametrize("row", FIRST.values(), ids=lambda row: row.op)
def test_compiled(row: Row) -> None:
    """The compiled row gives what the reference interpreter gives."""
    dtype = row.dtypes[len(row.op) % len(row.dtypes)]
    compiled: Any = None
    for case in row.cases([dtype]):
        if compiled is None:
            compiled = sw.compile(case.module, resources=row.resources, name=str(case))
        case.check(call(compiled, case), reference(case))
