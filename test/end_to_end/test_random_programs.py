"""Random programs mean the same on every floor and compiled.

`HYPOTHESIS_PROFILE=deep python -m pytest test/end_to_end/test_random_programs.py` looks for as
long as EXAMPLES says (2000 where it is not set), each time at other programs; a failing one is
shrunk and printed, to become a small test of its own.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from stepwell.testing.random_programs.batching import check_batched
from stepwell.testing.random_programs.checking import check_compiled, check_floors
from stepwell.testing.random_programs.program import Program
from stepwell.testing.random_programs.strategy import programs

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def profile(quick: int) -> settings:
    """Return how long to look: ``quick`` programs, always the same, unless asked for more."""
    return settings(
        max_examples=int(os.environ.get("EXAMPLES", "2000")) if DEEP else quick,
        derandomize=not DEEP,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@profile(15)
@given(programs())
def test_floors(program: Program) -> None:
    check_floors(program)


@profile(40)
@given(programs())
def test_batched(program: Program) -> None:
    """A batch gives what each example gives alone."""
    check_batched(program)


@pytest.mark.parametrize("machine", ["", "vector_bits=128"])
@profile(30)
@given(program=programs())
def test_compiled(machine: str, program: Program) -> None:
    check_compiled(program, machine=machine)
