"""Arrays that a function closes over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import stepwell as sw
from stepwell.frontend.weights import LARGE, kept


@pytest.mark.parametrize("elements", [17, LARGE // 4 + 3])
def test_a_weight_is_what_it_was_when_it_was_used(elements: int) -> None:
    x = np.arange(elements, dtype=np.float32)
    w = np.ones(elements, np.float32)

    def twice(x: Any) -> Any:
        y = x * w
        w[:] = 5
        return y + w

    f = sw.jit(twice)
    assert_array_equal(f(x), x + 5)
    w[:] = 7
    assert_array_equal(f(x), x + 5)


def test_what_nobody_can_change_is_not_copied() -> None:
    w = np.ones(LARGE, np.float32)
    w.flags.writeable = False
    assert kept(w)[1] is w


def test_the_hash_is_of_all_bytes() -> None:
    w = np.random.default_rng(0).integers(0, 255, LARGE + 1, np.uint8)
    digest, copy = kept(w)
    assert_array_equal(copy, w)
    other = w.copy()
    other[-1] += 1
    assert kept(other)[0] != digest
