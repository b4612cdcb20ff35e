"""Levels drawn at random are refused, or are obeyed and compute what they should.

`python -m pytest -m slow test/unit/test_random_levels.py` tries 10,000 lists over kernels of every
kind, `EXAMPLES=300` so many of each; what fails is shrunk.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from random_levels import KERNELS, Subject, compare, subject, tried
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels import check_levels
from stepwell.dialects.kernel.levels import ScheduleAttr, schedule_from

FEW = int(os.environ.get("EXAMPLES", "3"))
MANY = int(os.environ.get("EXAMPLES", str(-(-10_000 // len(KERNELS)))))
"""Of lists for each kernel."""
SEED = int(os.environ.get("SEED", "1"))


def _try(name: str, examples: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @seed(SEED)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=checks)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        def choose(options: list[Any]) -> Any:
            return data.draw(st.sampled_from(options))

        tried(name, choose)

    run()


@pytest.mark.parametrize("name", KERNELS)
def test_levels_at_random(name: str) -> None:
    _try(name, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_ten_thousand_levels_at_random(name: str) -> None:
    _try(name, MANY)


@pytest.mark.parametrize(
    ("name", "levels", "message"),
    [
        ("product", "[for d0 by 6, for d1 by 8, for d2 by 4, for d1 by 4, for d0 by 4]", "run in order within a tile"),
        ("product", "[parallel d0 by 4, parallel d1 by 4 {mirror}, for d2 by 8, for d0 by 2, for d2, unroll d0, vector d1 by 4]", "of an operand with itself"),
        ("square", "[parallel d0 by 12, parallel d1 by 8 {mirror}, for d2 by 8, for d0 by 4, for d2, unroll d0, vector d1 by 8]", "blocks of whole steps of 8 rows, not of 12"),
        ("square", "[parallel d0 by 40, parallel d1 by 8 {mirror}, for d2 by 8, for d0 by 4, for d2, unroll d0, vector d1 by 8]", "several blocks of rows"),
        ("square", "[parallel d0 by 16 {mirror}, parallel d1 by 8, for d2 by 8, for d0 by 4, for d2, unroll d0, vector d1 by 8]", "is for a parallel level of d1"),
        ("softmax", "[for d0 {pack 0}], op 0 [for d1], op 1 [for d1], op 3 [for d1]", "nearest"),
        ("softmax", "[parallel d1 by 4], op 0 [for d1]", "only loops that all ops share run in parallel"),
        ("columns", "[parallel d0 into 3, for d1]", "only a sum's loop is cut into parts"),
        ("total", "[for d0, for d7]", "there is no loop d7, the op has 1"),
        ("softmax", "[for d0], op 0 [for d1], op 1 [for d2], op 2 [for d1]", "there is no loop d2, the op has 2"),
        ("total", "[], op 4 [for d0]", "there is no op 4: the kernel has 1 with loops"),
        ("running", "[for d0, for d1 by 4, vector d1 by 4]", "iterations of d1 run in order"),
        ("running", "[for d0, for d1 by 4, unroll d1]", "iterations of d1 run in order"),
        ("columns", "[parallel d1 into 4096, for d1 by 8, for d0 by 4, unroll d1, vector d0 by 4]", "take fewer parts"),
        ("running", "[parallel d1 into 2, for d1 by 8, for d0, unroll d1]", "by known combiners"),
        ("transpose", "[parallel d0 by 3, for d0 by 2, for d1 by 4, unroll d0, vector d1 by 4]", "as many"),
        ("even", "[for d0 by 4, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 3], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "not made of whole tiles"),
        ("unknown", "[for d0 by 16384, for d1 by 16, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 2], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "bytes of scratch"),
        ("chain", "[parallel d0, for d1 by 2, for d1, for d2 by 16, for d2]", "needs several results"),
        ("softmax", "[for d0 overlap], op 0 [for d1], op 1 [for d1], op 2 [for d1]", "have a tail"),
        ("even", "[for d0 by 5 repeat, for d1 by 16], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "whose number is not known"),
        ("unknown", "[for d0 by 5 overlap, for d1 by 16], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "extent of the loop is not known"),
        ("product", "[for d0 by 4 border, for d1 by 8], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "within a border"),
        ("product", "[for d0 by 4, for d1 by 8 repeat], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "vectors do not know 'repeat'"),
        ("even", "[for d0 by 4, for d1 by 16 overlap], op 0 [for d2, unroll d0, unroll d1 by 4, vector d1 by 4], op 1 [unroll d0, unroll d1 by 4, vector d1 by 4]", "leave no tail"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_why(name: str, levels: str, message: str) -> None:
    function = subject(name).kernels[0]
    with pytest.raises(VerifyException, match=message):
        check_levels(function, schedule_from(levels))


def test_a_block_of_one_iteration_of_the_sum() -> None:
    """The level inside of it would have one step: it is left out."""
    levels = (
        "[for d0, for d1, for d2 by 8, for d3 by 8, for d6 {pack 0}, for d2 by 4, for d4, for d5, "
        "unroll d2, unroll d3 by 4, vector d3 by 4]"
    )
    nesting = check_levels(subject("convolution").kernels[-1], schedule_from(levels))
    assert nesting.blocks == (8, 8, 1)


ORDERS = [
    "for d2 by 4, for d0 by 4, for d1 by 8, for d0 by 2",
    "for d2 by 4 {pack 0}, for d0 by 4, for d1 by 8 {pack 1}, for d0 by 2",
    "for d1 by 8, for d2 by 4 {pack 0, pack 1}, for d0 by 2",
    "parallel d1 by 8, for d0 by 4, for d2 by 4 {pack 0, prefetch}, for d0 by 2",
    "parallel d0 by 4, parallel d1 by 24, for d1 by 16, for d2 by 8 {pack 1}, for d2 by 4, for d1 by 8, for d0 by 2",
    "parallel d0 by 4, for d2 by 8 {pack 1}, for d1 by 8, for d2 by 4 {pack 0}, for d0 by 2",
    "parallel d0 by 4, for d2 by 8, for d1 by 8, for d2 by 4 {pack 1 as first, prefetch}, for d0 by 2",
    "parallel d0 by 4 {pack 0}, for d1 by 8 {pack 1}, for d2 by 4, for d0 by 2",
    "for d0 by 4 {pack 1}, for d1 by 16, for d2 by 4, for d1 by 8, for d0 by 2",
    "for d0 by 4, for d1 by 12, for d2 by 4, for d1 by 8, for d0 by 2",
]  # fmt: skip
"""Orders of a product's levels: the sum outermost, both operands packed, three levels of columns."""


DOUBLE_BUFFERED = [
    "parallel d0 by 12, parallel d1 by 16, for d2 by 4 {pack 1 as double_buffered}, for d1 by 8, for d0 by 2",
    "parallel d1 by 24, for d2 by 6 {pack 1 as double_buffered}, for d0 by 2, for d1 by 8",
    "parallel d0 by 20, parallel d1 by 8, for d2 by 3 {pack 1 as double_buffered, pack 0}, for d0 by 2",
]  # fmt: skip
"""Blocks of all rows: of several panels, of ragged ones and of one; rows outside of the columns."""


@pytest.mark.parametrize("levels", DOUBLE_BUFFERED)
@pytest.mark.parametrize("name", ["product", "even"])
def test_tiles_pack_the_next_part(name: str, levels: str) -> None:
    test_contractions_have_levels_in_any_order(name, levels)


@pytest.mark.parametrize("rows", [4, 6, 12])
def test_tiles_of_unknown_rows_pack_the_next_part(rows: int) -> None:
    """Each block of rows packs all parts."""
    levels = f"parallel d0 by {rows}, parallel d1 by 16, for d2 by 4 {{pack 1 as double_buffered}}, for d1 by 8, for d0 by 2"
    test_contractions_have_levels_in_any_order("unknown", levels)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("levels", ORDERS)
@pytest.mark.parametrize("name", ["product", "even"])
def test_contractions_have_levels_in_any_order(name: str, levels: str) -> None:
    tile = "unroll d0, unroll d1 by 4, vector d1 by 4]"
    text = f"[{levels}], op 0 [for d2, {tile}, op 1 [{tile}"
    module = subject(name).module.clone()
    (function,) = Subject(module, [], []).kernels
    attribute = ScheduleAttr(schedule_from(text))
    check_levels(function, attribute.data)
    compare(name, module, function, attribute)


@pytest.mark.parametrize(
    ("name", "levels", "message"),
    [
        ("unknown", "for d2 by 4, for d0 by 4, for d1 by 8, for d0 by 2", "partial sums need rows"),
        ("even", "parallel d1 by 8, parallel d0 by 4, for d2 by 4, for d0 by 2", "loops in order"),
        ("even", "for d0 by 4, for d1 by 8, for d2 by 4 {pack 0 as first}, for d0 by 2", "as first"),
        ("even", "for d0 by 4, for d1 by 8, for d2 by 4 {pack 1 as double_buffered}, for d0 by 2", "all rows"),
        ("even", "for d0 by 12, for d1 by 8, for d2 by 4 {pack 0 as double_buffered}, for d0 by 2", "rows are vectors"),
        ("even", "for d0 by 12, for d1 by 8, for d2 by 4 {pack 1 as double_buffered, prefetch}, for d0 by 2", "by itself"),
        ("even", "for d0 by 12, for d1 by 8, for d2 by 64 {pack 1 as double_buffered}, for d0 by 2", "several parts"),
        ("even", "for d0 by 12, for d1 by 8 {pack 1 as double_buffered}, for d2 by 4, for d0 by 2", "only level"),
        ("even", "for d0 by 4, for d1 by 8 {prefetch}, for d2 by 4, for d0 by 2", "is not for"),
        ("even", "for d1 by 8, for d2 by 4", "end in steps of"),
        ("even", "for d2 by 4, for d0 by 4, for d1 by 12, for d1 by 8, for d0 by 2", "of whole tiles"),
    ],
)  # fmt: skip
def test_orders_that_are_refused(name: str, levels: str, message: str) -> None:
    tile = "unroll d0, unroll d1 by 4, vector d1 by 4]"
    text = f"[{levels}], op 0 [for d2, {tile}, op 1 [{tile}"
    with pytest.raises(VerifyException, match=message):
        check_levels(subject(name).kernels[0], schedule_from(text))
