"""Every op of nd answers every reading and has a test row; every row agrees with its lowering."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from op_rows import FAMILIES, ROWS, Row, sampled
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects import nd, readings
from stepwell.dialects.nd import batching, gradients
from stepwell.dialects.sizing import extents_of
from stepwell.lowering.nd_to_linalg import NdToLinalg
from stepwell.testing.op_rows.run import after, reference
from stepwell.transforms.graph.decompose import Decompose

ROWS_OF_OPS = {row.op for row in ROWS}


def _decompose(module: ModuleOp) -> None:
    Decompose().apply(Context(), module)


def _lower(module: ModuleOp) -> None:
    NdToLinalg().apply(Context(), module)


def test_no_holes() -> None:
    assert gradients and batching, "imported for their rules"
    assert readings.missing(nd.OPS) == []


def test_sizes_known_only_at_run_time_have_rules() -> None:
    told = [op for op in nd.OPS if extents_of(op) or readings.decomposition.get(op)]
    assert {op.name for op in nd.OPS} - {op.name for op in told} == {
        "nd.yield",
        "nd.condition",
        "nd.check",
        "nd.callback",
        "nd.all_sum",
        "nd.all_gather",
        "nd.reduce_scatter",
    }


def test_nothing_is_still_to_be_written() -> None:
    """Every op has its gradient and its batch, or a reason."""
    later = [(t.reading, op.name) for t in readings.REQUIRED for op in nd.OPS if t.expects(op)]
    assert not later


def test_each_op_has_a_row() -> None:
    of_families = {op.name for family in FAMILIES for op in family.OPS}
    assert of_families - ROWS_OF_OPS == set()


def test_rows_name_ops() -> None:
    assert ROWS_OF_OPS - {op.name for op in nd.OPS} == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lowering(row: Row) -> None:
    """The row means on the structured floor what it means on the graph floor."""
    _compare(row, sampled(row, 1))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lowering_of_other_dtypes(row: Row) -> None:
    """Those that the suite runs compiled alone."""
    _compare(row, [d for d in row.dtypes if d not in sampled(row, 1)])


def _compare(row: Row, dtypes: Sequence[str]) -> None:
    for case in row.cases(dtypes):
        case.check(after(case, _decompose, _lower), reference(case))
