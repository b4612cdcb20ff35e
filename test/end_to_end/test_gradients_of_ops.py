"""Derivatives of every row of ops: forward against differences, reverse against forward.

By the interpreter, in f64, at the sizes of the rows; second order for some, narrow floats loosely.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from op_rows import FAMILIES, Row

from stepwell.core.checks import UnfitSizes
from stepwell.core.dtypes import DTYPES
from stepwell.dialects import nd
from stepwell.dialects.differences import Array, Derived, check, check_second
from stepwell.dialects.readings import gradient
from stepwell.testing.op_rows.row import FLOATS, Case
from stepwell.testing.op_rows.run import parsed

RANGES = ((-2, 2), (0.1, 0.9), (1.1, 3))
"""Arguments are drawn from the first of these in which results are numbers."""
NARROW = {"f32": 1e-3, "f16": 0.1, "bf16": 0.5}
"""How far a gradient may be from that in f64, against the largest of it."""
EMPTY = {"nd.convolution-unknown", "nd.convolution-unknown-window", "nd.batch_norm-columns"}
"""Rows whose derivative is not asked for where there is no element."""
KINDS = {op.name: op for op in nd.OPS}
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.float32}
NAMES = [family.__name__.rpartition(".")[2] for family in FAMILIES]


def differentiable(family: str) -> Iterator[Row]:
    """Yield the rows of a family that take and give floats of the dtype drawn."""
    for row in FAMILIES[NAMES.index(family)].ROWS:
        results = (row.results,) if isinstance(row.results, str) else row.results
        given = any("{e}" in t for t in row.arguments.values())
        others = any(f"x{d}>" in row.module("{e}") for d in ("f32", "f16", "bf16"))
        fits = set(row.dtypes) & set(FLOATS) and not others
        if fits and given and any("{e}" in r for r in results) and not excused(row):
            yield row


def excused(row: Row) -> bool:
    """Whether the op says that it has no derivative."""
    return gradient.why_none(KINDS[row.op]) is not None


def drawn(derived: Derived, case: Case) -> Iterator[list[Array]]:
    """Yield arguments at which results are numbers."""
    for low, high in RANGES:
        random = np.random.default_rng(len(case.module))
        arguments = [
            random.uniform(low, high, np.shape(a)) if k in derived.wrt else a
            for k, a in enumerate(case.arguments)
        ]
        outs = derived.run(arguments)
        if not any(np.isnan(outs[k]).any() for k in derived.of):
            yield arguments


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", NAMES)
def test_first_order(family: str) -> None:
    for number, row in enumerate(differentiable(family)):
        derived = Derived(parsed(row.module("f64")), resources=row.resources)
        compared, some = 0, False
        for case in row.cases(["f64"]):
            if row.name in EMPTY and 0 in case.sizes:
                continue
            for arguments in drawn(derived, case):
                try:
                    found = check(derived, arguments)
                except UnfitSizes as error:
                    if row.name not in EMPTY or "has no element" not in str(error):
                        raise
                    continue
                except AssertionError as error:
                    raise AssertionError(f"{case}: {error}") from error
                compared, some = compared + found.elements, some or found.dual
                if found.dual:
                    break
        sizes = [derived.run(case.arguments) for case in row.cases(["f64"])]
        empty = not any(np.size(outs[k]) for outs in sizes for k in derived.of)
        assert some, f"{row.name}: nothing was compared"
        assert compared or empty, f"{row.name}: no element was compared with differences"
        if number % 8 == 0 and row.name not in EMPTY:
            check_second(derived, next(drawn(derived, next(iter(row.cases(["f64"]))))))


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats(dtype: str) -> None:
    """Gradients in narrow floats are those in f64 but for rounding."""
    rows = [row for family in NAMES for row in differentiable(family)][::5]
    for row in rows:
        if dtype not in row.dtypes:
            continue
        wide = Derived(parsed(row.module("f64")), resources=row.resources)
        narrow = Derived(parsed(row.module(dtype)), resources=row.resources)
        case = next(iter(row.cases([dtype])))
        for arguments in drawn(wide, case):
            outs = wide.run(arguments)
            cotangents = [np.ones(np.shape(outs[k])) for k in wide.of]
            given = [*arguments, *cotangents]
            rounded = [
                DTYPES[dtype].round(a).astype(NUMPY[dtype]) if a.dtype.kind == "f" else a
                for a in given
            ]
            again = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in rounded]
            n = wide.results
            for a, b in zip(
                narrow.run(rounded, "_vjp")[n:], wide.run(again, "_vjp")[n:], strict=True
            ):
                if np.isfinite(b).all():
                    scale = max(float(np.abs(b).max(initial=0)), 1e-2)
                    off = np.abs(a.astype(np.float64) - b) / scale
                    assert not (off > NARROW[dtype]).any(), f"{row.name} in {dtype}: {a} for {b}"
            break
