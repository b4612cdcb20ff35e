"""The dispatcher in C: which program a call reaches, and what it refuses to be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepwell.core.shapes import DYNAMIC
from stepwell.runtime.extension import load_extension
from stepwell.runtime.program import Program, make_dispatcher

Build = Callable[[int], Program]
X = np.arange(12, dtype=np.float32).reshape(3, 4)

pytestmark = pytest.mark.skipif(load_extension() is None, reason="no Python headers")


def test_a_dispatcher_tries_programs_in_order(add_program: Build) -> None:
    missed: list[tuple[Any, ...]] = []

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        missed.append((len(args), sorted(kwargs)))
        return "missed"

    dispatch = make_dispatcher(miss)
    assert dispatch(X, X) == "missed"
    call = ((), ((0, ...), (1, ...)), ())
    dispatch.add(add_program(3).call, call, ...)
    dispatch.add(add_program(DYNAMIC).call, call, ...)
    np.testing.assert_array_equal(dispatch(X, X), X + X)
    np.testing.assert_array_equal(dispatch(X[:2], X[:2]), X[:2] * 2)
    assert dispatch(X) == "missed"
    assert dispatch(X, X, z=1) == "missed"
    assert missed == [(2, []), (1, []), (2, ["z"])]


@pytest.mark.parametrize(
    ("call", "tree"),
    [
        (((), ((0, ...), (1, ...))), ...),
        (((), ((0, ...), (-1, ...)), ()), ...),
        (((), ((0, ...), (3, ...)), ()), ...),
        (((), ((0, ...),), ((2, X),)), ...),
        (((), ((0, ...),), ((1, "x"),)), ...),
        (((), ((0, (dict, None, (...,))), (1, ...)), ()), ...),
        (((), ((0, (dict, ("a", "b"), (...,))), (1, ...)), ()), ...),
        (((), ((0, ...), (1, ...)), ()), (set, None, (...,))),
        (((), ((0, ...), (1, ...)), ()), "tree"),
    ],
)
def test_a_dispatcher_refuses_what_is_no_call(add_program: Build, call: Any, tree: Any) -> None:
    with pytest.raises(TypeError):
        make_dispatcher(lambda args, kwargs: None).add(add_program(3).call, call, tree)


def test_a_dispatcher_calls_no_program_that_lacks_an_array(add_program: Build) -> None:
    dispatch = make_dispatcher(lambda args, kwargs: "missed")
    dispatch.add(add_program(3).call, ((), ((0, ...),), ()), ...)
    dispatch.add(add_program(3).call, ((), ((0, ...), (0, ...)), ()), ...)
    dispatch.add(add_program(3).call, ((), ((0, ...), (2, ...)), ()), ...)
    assert dispatch(X) == "missed"
    assert dispatch(X, X) == "missed"
