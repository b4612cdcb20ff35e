"""The examples of the API reference: under `sw.jit` each gives what NumPy gives, which is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.facade import NAMES
from stepwell.tools.api_examples import arrays, computed, example

FUNCTIONS = [n for n in snp.__all__ if n not in NAMES and callable(getattr(snp, n))]
WITHOUT = {
    *("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"),  # they give nothing
    *("unique_all", "unique_counts", "unique_inverse", "unique_values"),  # their sizes vary
}
SHAPES = {"empty", "empty_like"}
"""Of these only the shape and dtype are said."""
PARTS = 8
OURS = {n for n in FUNCTIONS if not hasattr(np, n) and "." not in n}


def test_every_function_has_one() -> None:
    assert {n for n in FUNCTIONS if not example(n)} == WITHOUT


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:numpy.*deprecated")
@pytest.mark.parametrize("part", range(PARTS))
def test_they_are_numpys(part: int) -> None:
    names = [n for n in FUNCTIONS[part::PARTS] if example(n) and n not in OURS]
    given = arrays()

    @sw.jit
    def program(values: dict[str, Any]) -> Any:
        found: list[Any] = []
        for name in names:
            result = computed(example(name), values)
            parts = result if isinstance(result, tuple | list) else (result,)
            found.append([p if not isinstance(p, np.dtype | type) else 0 for p in parts])
        return found

    for name, ours in zip(names, program(given), strict=True):
        right = computed(example(name), given)
        parts = right if isinstance(right, tuple | list) else (right,)
        assert len(ours) == len(parts), name
        for value, wanted in zip(ours, parts, strict=True):
            if isinstance(wanted, np.dtype | type):
                continue
            wanted = np.asarray(wanted)
            assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape), name
            if name not in SHAPES:
                np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12, err_msg=name)
