"""Every row of every op in a batch gives what a Python loop over the examples gives."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from batched_rows import batched, draw
from op_rows import ROWS, Row
from xdsl.context import Context

from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.row import Array, Case
from stepwell.testing.op_rows.run import parsed, reference
from stepwell.transforms.graph.expand_transformations import ExpandTransformations


def check(row: Row, case: Case, axes: dict[str, int], out: list[int], size: int) -> None:
    count = 3 if size < 0 else size
    module = parsed(batched(row, case.dtype, axes, out, size))
    ExpandTransformations().apply(Context(), module)
    module.verify()
    lanes = draw(row, case, axes, count)
    stacked: list[Array] = []
    for number, name in enumerate(row.arguments):
        axis = axes.get(name, -1)
        if axis == -1:
            stacked.append(case.arguments[number])
        elif count:
            stacked.append(np.stack([lane[number] for lane in lanes], axis))
        else:
            shape = list(case.arguments[number].shape)
            stacked.append(
                np.empty([*shape[:axis], 0, *shape[axis:]], case.arguments[number].dtype)
            )
    more = [np.asarray(count, np.int64)] if size < 0 else []
    got = Interpreter(module, row.resources).call("main", [*stacked, *more])
    for lane, arguments in enumerate(lanes):
        want = reference(Case(row, case.dtype, case.sizes, case.module, arguments))
        case.check([np.take(g, lane, a) for g, a in zip(got, out, strict=True)], want)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows(row: Row) -> None:
    """All operands batched, one alone, and some along other axes; sizes known and told."""
    random = np.random.default_rng(crc32(row.name.encode()))
    dtype = row.dtypes[int(random.integers(len(row.dtypes)))]
    ranks = {n: t.replace("{e}", "f").count("x") for n, t in row.arguments.items() if t != "index"}
    results = (row.results,) if isinstance(row.results, str) else row.results
    choices: list[dict[str, int]] = [dict.fromkeys(ranks, 0)]
    if len(ranks) > 1:
        choices += [{n: int(random.integers(r + 1))} for n, r in ranks.items()]
    for number, axes in enumerate(choices):
        cases = list(row.cases([dtype]))
        case = cases[number % len(cases)]
        out = [int(random.integers(t.count("x") + 1)) if number else 0 for t in results]
        out = [min(o, t.replace("{e}", "f").count("x")) for o, t in zip(out, results, strict=True)]
        check(row, case, axes, out, 3)
        if number == 0:
            for size in (-1, 0):
                check(row, cases[-1], axes, out, size)
