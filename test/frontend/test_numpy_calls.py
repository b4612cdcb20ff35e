"""Random calls of NumPy's functions, operators, methods and indices give what NumPy gives.

More of them: `python -m stepwell.testing.numpy_calls --calls 10000 --seed 2`.
"""

import numpy as np
import pytest

import stepwell.numpy as snp
from stepwell.frontend.table import METHODS
from stepwell.testing.numpy_calls import functions, ufuncs
from stepwell.testing.numpy_calls.checking import call, check


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 50))]
)
def test_random_calls(seed: int) -> None:
    calls = [call(900_000_000 + 100 * seed + k) for k in range(100)]
    found = check(calls, "c" if seed % 5 == 0 else "interpreter")
    assert not [str(deviation) for deviation in found if deviation.why != "refused"]


def test_every_name_is_drawn() -> None:
    callables = {n for n in snp.__all__ if callable(getattr(snp, n)) and hasattr(np, n)}
    types = {n for n in callables if isinstance(getattr(snp, n), type)}
    drawn = {*functions.names(), *ufuncs.names(), *functions.UNDRAWN, *functions.DRAWN_APART}
    plain = {n for n in callables if getattr(snp, n) is getattr(np, n, None)}
    assert sorted(callables - types - drawn - plain) == []
    assert len(functions.UNDRAWN) < 10
    methods = {*functions.method_names(), *functions.IN_PLACE, *functions.UNDRAWN}
    assert {*METHODS} - methods <= {"view"}, "which is refused"
