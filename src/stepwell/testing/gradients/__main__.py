"""``python -m stepwell.testing.gradients --programs N --seed S``: random programs, shrunk."""

from __future__ import annotations

import argparse

from hypothesis import HealthCheck, given, seed, settings

from stepwell.testing.gradients.programs import Tally, check_program
from stepwell.testing.random_programs.program import Program
from stepwell.testing.random_programs.strategy import programs


def main() -> None:
    """Differentiate and batch programs until one fails; shrink and print that."""
    parser = argparse.ArgumentParser(
        prog="python -m stepwell.testing.gradients", description=__doc__
    )
    parser.add_argument("--programs", type=int, default=200, help="how many; 200 where not given")
    parser.add_argument("--seed", type=int, default=0, help="others with each; 0 where not given")
    options = parser.parse_args()
    tally = Tally()

    @seed(options.seed)
    @settings(
        max_examples=options.programs,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs())
    def run(program: Program) -> None:
        check_program(program, tally)

    run()
    print(tally)


if __name__ == "__main__":
    main()
