"""The corpus of small programs: each gives what NumPy gives, or is refused with its message."""

from importlib import import_module

import numpy as np
import pytest
from capture.cases import CASES, Case
from same_as_numpy import same_as_numpy

import stepwell as sw

for _topic in (
    "algorithms",
    "aliasing",
    "containers",
    "control_flow",
    "dtypes",
    "functions",
    "objects",
    "unbound",
    "windows",
):
    import_module(f"capture.{_topic}")

CAPTURED = 0.9
"""Of all programs, how many are to be captured at least."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.function.__name__)
def test_programs(case: Case) -> None:
    compiled = sw.jit(case.function)
    with np.errstate(all="ignore"):
        for arguments in case.arguments:
            if case.refusal:
                with pytest.raises(sw.TraceError) as caught:
                    compiled(*arguments)
                assert case.refusal in str(caught.value)
            else:
                same_as_numpy(case.function, *arguments, rtol=case.rtol, compiled=compiled)


def test_most_are_captured() -> None:
    refused = [case.function.__name__ for case in CASES if case.refusal]
    assert len(CASES) >= 150
    assert len(refused) <= (1 - CAPTURED) * len(CASES), refused
