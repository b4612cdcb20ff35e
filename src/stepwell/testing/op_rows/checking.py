"""Run one row everywhere: in the interpreter on every floor, and compiled for targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import stepwell as sw
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.verification import verify
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.pipeline import STAGES
from stepwell.driver.registry import registry
from stepwell.testing.op_rows.row import Row
from stepwell.testing.op_rows.run import as_declared, parsed, reference
from stepwell.testing.op_rows.together import Together


def check_row(row: Row, targets: Sequence[str] = ("c",), floors: bool = True) -> None:
    """Compare a row with its op's reference, for each of its dtypes and sizes.

    targets : to compile for; results must agree within the row's tolerance, arguments must be
        unchanged, and every element of a result must be written
    floors : whether to interpret the program after each stage as well

    raises AssertionError : a result differs
    """
    for dtype in row.dtypes:
        if floors and "index" not in row.arguments.values():  # buffers have no index arguments
            _check_floors(row, dtype)
        together = Together.of([(row, dtype)])
        for target in targets:
            together.check(sw.compile(together.text, resources=together.resources, target=target))


def _check_floors(row: Row, dtype: str) -> None:
    cases = [(case, reference(case)) for case in row.cases([dtype])]
    known, module = registry(), parsed(row.module(dtype))
    context = known.context()
    for stage in STAGES:
        for step in parse(stage.passes, known.passes):
            step.run(context, module)
        verify(module)
        for case, want in cases:
            got = call(Interpreter(module, row.resources), "main", case.arguments)
            declared = [np.asarray(w).dtype for w in want]
            case.check([as_declared(g, d) for g, d in zip(got, declared, strict=True)], want)
