"""Loops that permute, keep, replace and update what they carry give what NumPy gives."""

from __future__ import annotations

import pytest
from carried_programs.checking import check_bufferized, check_compiled


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(25, 2000, 25))]
)
def test_on_buffers(first: int) -> None:
    for seed in range(first, first + 25):
        check_bufferized(seed)


@pytest.mark.parametrize(
    "first", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(25, 1000, 25))]
)
def test_replaced_rows(first: int) -> None:
    """Loops that replace several rows of what they carry, and keep the others."""
    for seed in range(first, first + 25):
        check_bufferized(seed, rows=True)


FOUND = (
    26,
    30,
    225,
    392,
    568,
    767,
    807,
    832,
    958,
    963,
    1078,
    2124,
    2935,
    21128,
    41368,
    60464,
    78491,
    79090,
    30002506,
)
"""Each went wrong once: a result in a buffer that its loop exchanged, arguments that a loop left in
each other's place, two results of one buffer, starts of two tensors in one place, what a spare
buffer held in between, a part that is another in each iteration, slots that only others read, copies that
wait for a cycle that they are not in, copies behind a loop over the buffers it ends in, or over those
that an earlier loop ended in."""


@pytest.mark.parametrize("seed", FOUND)
def test_found(seed: int) -> None:
    check_bufferized(seed)


@pytest.mark.parametrize(
    "seed", [*range(4), 10567, *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 150))]
)
def test_compiled(seed: int) -> None:
    check_compiled(seed)
