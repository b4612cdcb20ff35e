"""Random programs of sizes known only at run time: right where these fit, refused where not.

`PROGRAMS=5000 python -m pytest -m slow test/end_to_end/test_random_sizes.py` tries so many; the
sanitizers' lane runs some of them as well.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from random_sizes.checking import check

SAMPLE = 15
BATCH = 20
"""Programs of one test."""
PROGRAMS = int(os.environ.get("PROGRAMS", "400"))


def test_sample() -> None:
    found = Counter("refused" if check(seed) == "refused" else "ran" for seed in range(SAMPLE))
    assert found["ran"] > SAMPLE * 0.8, "most programs fit some sizes"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SAMPLE, PROGRAMS, BATCH))
def test_many(first: int) -> None:
    for seed in range(first, first + BATCH):
        check(seed)
