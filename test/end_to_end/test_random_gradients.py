"""Random programs are differentiated and batched; `python -m stepwell.testing.gradients` does many.

A failing one is shrunk and printed, to become a small test of its own.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from stepwell.testing.gradients.programs import Tally, check_program
from stepwell.testing.random_programs.program import Program
from stepwell.testing.random_programs.strategy import programs

TALLY = Tally()


@settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def check_each(program: Program) -> None:
    check_program(program, TALLY)


def test_random_programs() -> None:
    check_each()
    assert TALLY.differentiated >= 8
    assert TALLY.batched >= 20
