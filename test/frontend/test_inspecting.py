"""`f.explain` and `f.profile`: what became of a jitted function, in the user's own terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.inspecting import Explanation

TABLE = np.random.default_rng(0).random((100, 64))
SCALE = 3


def step(cache: Any, x: Any, i: Any, kind: str = "sum") -> Any:
    cache[i] = x * SCALE
    s = 0.0
    for k in range(20):
        s += cache[k] @ x
    return s + TABLE[i].sum() if kind == "sum" else s


@pytest.fixture(scope="module")
def explained() -> tuple[Explanation, Any]:
    function = sw.jit(step, static_argnames="kind")
    cache = np.zeros((32, 64))
    function(cache, np.ones(64), 3)
    function(cache.astype(np.float32), np.ones(64), 3)
    cache[:] = 0
    return function.explain(cache, np.ones(64), 3), cache


def test_what_became_of_a_function(explained: tuple[Explanation, Any]) -> None:
    found, cache = explained
    assert not cache.any()
    assert found.function.startswith("step, ") and found.function.endswith(
        f":{step.__code__.co_firstlineno}"
    )
    assert found.arguments == (
        "cache: tensor<32x64xf64>",
        "x: tensor<64xf64>",
        "i: tensor<i64>, a Python number",
        "kind = 'sum', static",
    )
    assert found.assigned == ("cache",)
    assert found.captured == ("TABLE: float64[100, 64]",)
    assert set(found.guards) == {"SCALE", "TABLE"}
    assert found.traces == 2 and len(found.reasons) == 1 and "cache" in found.reasons[0]
    assert found.ops["nd.while"] == 1
    assert found.kernels and all(k.name.startswith("step") for k in found.kernels)
    assert found.trace_seconds > 0 and found.compile_seconds > 0 and found.seconds > 0
    assert found.plain_seconds is not None


def test_it_prints_all_of_that(explained: tuple[Explanation, Any]) -> None:
    said = str(explained[0])
    for line in (
        "compiled for",
        "  kind = 'sum', static",
        "assigns to",
        "guarded, traced again when these change",
        "traced 2 times",
        "1 nd.while",
        "copies between kernels: ",
        "traced in ",
        "in Python",
    ):
        assert line in said


def test_after_how_many_calls_it_pays() -> None:
    def cost(call: float, plain: float | None) -> Explanation:
        return Explanation("f", (), (), (), (), 1, (), {}, (), (), 0.5, 0.5, call, plain)

    assert cost(0.001, 0.101).pays_after == 10
    assert cost(0.101, 0.001).pays_after is None and "does not pay" in str(cost(0.101, 0.001))
    assert cost(0.1, None).pays_after is None
    assert str(cost(0.1, 5.0)).endswith("it pays after 1 call")


def test_what_plain_python_cannot_run() -> None:
    found = sw.jit(lambda x: sw.nn.softmax(x)).explain(np.ones(4, np.float32))
    assert found.plain_seconds is None and found.pays_after is None


def test_a_profile_takes_the_functions_own_arguments() -> None:
    @sw.jit
    def layer(params: Any, *, x: Any) -> Any:
        return {"y": np.tanh(x @ params["w"] + params["b"])}

    params = {"w": np.ones((8, 4)), "b": np.ones(4)}
    found = layer.profile(params, x=np.ones((2, 8)), repeat=3)
    assert found.calls == 3
    assert any((k.kernel.flops or 0) >= 2 * 2 * 8 * 4 for k in found.kernels)


def test_a_profile_changes_nothing() -> None:
    @sw.jit
    def fill(x: Any) -> None:
        x += 1

    x = np.zeros(1000)
    found = fill.profile(x, repeat=3)
    assert not x.any() and found.kernels
    assert "copy of" not in str(found)
