"""Random programs as users write them; `.ci/slow` runs many more, each time others."""

from __future__ import annotations

import pytest

from stepwell.testing.user_programs.__main__ import MACHINES, recipe_of, run
from stepwell.testing.user_programs.recipe import OPS, Recipe
from stepwell.testing.user_programs.shrinking import pruned, shrink, text_of

SAMPLE = 16
"""Programs of each run of the tests; every eighth for OpenCL too."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(SAMPLE))
def test_programs_return_what_they_should(seed: int) -> None:
    assert run(seed, "c", MACHINES[seed % len(MACHINES)]) == ""


@pytest.mark.opencl
@pytest.mark.parametrize("seed", range(0, SAMPLE, 8))
def test_programs_of_opencl(seed: int) -> None:
    assert run(seed, "opencl", "") == ""


def test_every_step_is_drawn() -> None:
    missing = set(OPS)
    for seed in range(300):
        missing -= {step.op for step in recipe_of(seed).steps}
        if not missing:
            break
    assert not missing


def test_a_failing_program_becomes_small() -> None:
    def flips(recipe: Recipe) -> bool:
        return any(step.op == "flip" for step in recipe.steps)

    seed, program = next((n, p) for n in range(100) if flips(p := pruned(recipe_of(n, 30))))
    small = shrink(program, seed, flips)
    assert len(small.steps) <= 3 and len(small.results) == 1
    assert "flip" in text_of(small)
