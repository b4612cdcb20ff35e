"""Optimisers and schedules: optax's values, the papers' formulas, dtypes, inside and outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optax_values import PARAMETERS
from optax_values import SCHEDULES as VALUES
from optim_rows import COUNTS, ROWS, SCHEDULES, STEPS, gradients, parameters
from run_traced import interpreted

import stepwell as sw

Array = Any


def steps(
    optimizer: Any, params: Any, dtype: Any, run: Callable[..., Any] | None = None
) -> tuple[Any, Any]:
    """Return parameters and state after all steps; ``run`` calls the step, if told."""

    def step(params: Any, state: Any, gradient: Any) -> Any:
        updates, state = optimizer.update(gradient, state, params)
        return sw.optim.apply_updates(params, updates), state

    state = optimizer.init(params)
    for n in range(STEPS):
        given = params, state, gradients(n, dtype)
        params, state = step(*given) if run is None else run(step, *given)
    return params, state


def single(values: list[float]) -> Array:
    return np.asarray(values, np.float32)


def in_a_row(params: Any) -> Array:
    return np.concatenate([np.ravel(params["b"]), np.ravel(params["w"])])


@pytest.mark.parametrize("name", ROWS)
def test_it_gives_what_optax_gives(name: str) -> None:
    found, _ = steps(ROWS[name](sw.optim), parameters(np.float64), np.float64)
    np.testing.assert_allclose(in_a_row(found), PARAMETERS[name], rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("name", ROWS)
def test_it_is_traced_in_the_parameters_dtype(name: str) -> None:
    """Nothing of a float32 step is a float64, and numbers are those computed outside."""
    optimizer = ROWS[name](sw.optim)
    wanted, state = steps(optimizer, parameters(), np.float32)
    assert {leaf.dtype.name for leaf in sw.tree.leaves((wanted, state))} <= {"float32", "int32"}
    assert all(type(leaf) is np.ndarray for leaf in sw.tree.leaves((wanted, state)))
    found, after = steps(optimizer, parameters(), np.float32, interpreted)
    for a, b in zip(sw.tree.leaves((found, after)), sw.tree.leaves((wanted, state)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)

    def step(params: Any, state: Any, gradient: Any) -> Any:
        return optimizer.update(gradient, state, params)

    text = sw.jit(step).trace(parameters(), optimizer.init(parameters()), gradients(0)).module.text
    assert not re.search(r"xf64>|tensor<f64>", text), text


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    """A Python number gives one; an int32 a float32, traced or not."""
    schedule = SCHEDULES[name](sw.optim)
    of_numbers = [schedule(n) for n in COUNTS]
    assert all(type(value) is float for value in of_numbers)
    np.testing.assert_allclose(of_numbers, VALUES[name], rtol=1e-6, atol=1e-7)
    counts = [np.asarray(n, np.int32) for n in COUNTS]
    of_arrays = [np.asarray(schedule(count)) for count in counts]
    np.testing.assert_allclose(of_arrays, VALUES[name], rtol=2e-6, atol=1e-7)
    if name != "constant":
        assert {value.dtype.name for value in of_arrays} == {"float32"}
        traced = interpreted(lambda *each: [schedule(count) for count in each], *counts)
        assert {value.dtype.name for value in traced} == {"float32"}
        np.testing.assert_allclose(traced, VALUES[name], rtol=2e-6, atol=1e-7)


def by_paper(name: str, p: Array, gradients: list[Array]) -> Array:
    """Return parameters after steps of the algorithm as its paper writes it."""
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        if name == "momentum":  # Polyak 1964, as Sutskever et al. 2013 (1)
            v = 0.9 * v - 0.1 * g
            p = p + v
        elif name in ("adam", "adamw"):  # Kingma and Ba, algorithm 1; Loshchilov, algorithm 2
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            step = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            p = p - 0.1 * (step + (0.01 * p if name == "adamw" else 0))
        elif name == "rmsprop":  # Tieleman and Hinton 2012, slide 29
            v = 0.9 * v + 0.1 * g**2
            p = p - 0.1 * g / np.sqrt(v + 1e-8)
        elif name == "lion":  # Chen et al. 2023, algorithm 2
            step = np.sign(0.9 * m + 0.1 * g)
            p, m = p - 0.1 * (step + 0.001 * p), 0.99 * m + 0.01 * g
        else:  # adagrad: Duchi et al. 2011
            v = v + g**2
            p = p - 0.1 * g / np.sqrt(v + 0.1 + 1e-7)
    return p


PAPERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: sw.optim.sgd(0.1, 0.9),
    "adam": lambda: sw.optim.adam(0.1),
    "adamw": lambda: sw.optim.adamw(0.1, weight_decay=0.01),
    "rmsprop": lambda: sw.optim.rmsprop(0.1),
    "lion": lambda: sw.optim.lion(0.1),
    "adagrad": lambda: sw.optim.adagrad(0.1),
}


@pytest.mark.parametrize("name", PAPERS)
def test_it_does_what_the_paper_says(name: str) -> None:
    found, _ = steps(PAPERS[name](), parameters(np.float64), np.float64)
    given = [gradients(n, np.float64)["w"] for n in range(STEPS)]
    wanted = by_paper(name, parameters(np.float64)["w"], given)
    np.testing.assert_allclose(found["w"], wanted, rtol=1e-12)


def test_moments_of_another_dtype() -> None:
    for optimizer in (
        sw.optim.adam(0.1, mu_dtype=np.float32),
        sw.optim.lion(0.1, mu_dtype=np.float32),
        sw.optim.sgd(0.1, 0.9, accumulator_dtype=np.float32),
    ):
        params, state = parameters(np.float16), optimizer.init(parameters(np.float16))
        updates, after = optimizer.update(gradients(1, np.float16), state, params)
        given, kept = ([leaf.dtype for leaf in sw.tree.leaves(s)] for s in (state, after))
        assert given == kept and np.dtype(np.float32) in kept
        applied = sw.optim.apply_updates(params, updates)
        assert applied["w"].dtype == np.float16


def test_clipping_by_norm() -> None:
    clip = sw.optim.clip_by_global_norm(1.0)
    large, small = {"a": single([3, 0]), "b": single([4])}, {"a": single([0.1])}
    found = clip.update(large, clip.init(large))[0]
    np.testing.assert_allclose(sw.optim.global_norm(found), 1, rtol=1e-6)
    np.testing.assert_array_equal(clip.update(small, clip.init(small))[0]["a"], small["a"])
    zero = {"a": np.zeros(3, np.float32)}
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(clip.update(zero, clip.init(zero))[0]["a"], zero["a"])
    halves = np.full(5000, 4, np.float16)  # the squares' sum is beyond float16
    assert sw.optim.global_norm(halves) == pytest.approx(4 * 5000**0.5, rel=1e-6)


def test_masks() -> None:
    params = {"dense": {"w": np.ones(2), "b": np.ones(2)}, "norm": [np.ones(2), None]}
    gradient = sw.tree.map(np.ones_like, params)
    kinds: list[Any] = [
        {"dense": True, "norm": False},
        {"dense": {"w": True, "b": True}, "norm": [False, None]},
        lambda tree: {"dense": True, "norm": False},
    ]
    for mask in kinds:
        some = sw.optim.masked(sw.optim.adam(0.5), mask)
        state = some.init(params)
        assert len(sw.tree.leaves(state)) == 5  # a count, two of each of two
        found = some.update(gradient, state, params)[0]
        np.testing.assert_allclose(found["dense"]["b"], [-0.5, -0.5])
        np.testing.assert_array_equal(found["norm"][0], [1, 1])
    with pytest.raises(ValueError, match=r"the mask has the keys \['x'\], not \['dense', 'norm'\]"):
        sw.optim.masked(sw.optim.identity(), {"x": True}).init(params)
    with pytest.raises(ValueError, match="the mask has a dict where there is list"):
        sw.optim.masked(sw.optim.identity(), {"dense": True, "norm": {}}).init(params)


def test_hyperparameters_change_without_a_trace() -> None:
    optimizer = sw.optim.inject_hyperparams(sw.optim.sgd)(0.5)
    params = {"w": single([1, 2])}
    state = optimizer.init(params)

    @sw.jit
    def step(params: Any, state: Any) -> Any:
        updates, state = optimizer.update(sw.tree.map(np.ones_like, params), state, params)
        return sw.optim.apply_updates(params, updates), state

    params, state = step(params, state)
    np.testing.assert_array_equal(params["w"], [0.5, 1.5])
    state.hyperparams["learning_rate"] = np.float32(0.25)
    params, state = step(params, state)
    np.testing.assert_array_equal(params["w"], [0.25, 1.25])
    assert state.hyperparams["learning_rate"] == 0.25 and state.count == 2


def test_mistakes() -> None:
    params = {"w": np.ones(2)}
    decay = sw.optim.add_decayed_weights(0.1)
    with pytest.raises(ValueError, match=r"pass them, update\(updates, state, params\)"):
        decay.update(params, decay.init(params))
    chained = sw.optim.chain(decay, decay)
    with pytest.raises(ValueError, match="the state is that of 1 transformations, not of 2"):
        chained.update(params, (decay.init(params),), params)
    with pytest.raises(ValueError, match="built otherwise than the parameters at params"):
        sw.optim.apply_updates(params, {"v": np.ones(2)})
    with pytest.raises(ValueError, match="2 schedules have 2 boundaries"):
        constant = sw.optim.constant_schedule(1.0)
        sw.optim.join_schedules([constant, constant], [1, 2])
    with pytest.raises(ValueError, match="decay_steps is positive"):
        sw.optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5)
    with pytest.raises(ValueError, match="scales are not negative"):
        sw.optim.piecewise_constant_schedule(1.0, {3: -1.0})


def test_what_has_no_update_stays() -> None:
    params = {"a": np.ones(2, np.float32), "b": [np.ones(2), np.ones(1)]}
    found = sw.optim.apply_updates(params, {"a": np.ones(2), "b": None})
    assert found["a"].dtype == np.float32 and found["a"][0] == 2
    assert found["b"][0] is params["b"][0] and found["b"][1] is params["b"][1]


def test_steps_are_counted_to_the_end_of_the_int32() -> None:
    most = np.asarray(np.iinfo(np.int32).max, np.int32)
    optimizer = sw.optim.scale_by_schedule(sw.optim.constant_schedule(1.0))
    state = optimizer.update(np.ones(1), sw.optim.ScaleByScheduleState(most))[1]
    assert state.count == most and state.count.dtype == np.int32
