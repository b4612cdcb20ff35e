"""Variables together with everything else: optimisers, gradients, batches, loops, saving."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
from stepwell.frontend.errors import TraceError


def test_a_step_of_adam_with_variables(misses: list[Any]) -> None:
    optimizer = sw.optim.adam(0.1)
    start = {"w": np.ones((3, 2), np.float32), "b": np.zeros(2, np.float32)}
    params = sw.tree.map(sw.Variable, start)
    state = sw.tree.map(sw.Variable, optimizer.init(start))

    @sw.jit
    def step(x: Any) -> Any:
        gradients = sw.tree.map(lambda p: 2 * (p - x), params)
        updates, after = optimizer.update(gradients, state, params)
        sw.optim.apply_updates(params, updates)
        sw.tree.assign(state, after)

    plain, moments = start, optimizer.init(start)
    memory = [leaf.value for leaf in sw.tree.leaves((params, state))]
    for _ in range(5):
        step(np.float32(3))
        gradients = sw.tree.map(lambda p: 2 * (p - np.float32(3)), plain)
        updates, moments = optimizer.update(gradients, moments, plain)
        plain = sw.optim.apply_updates(plain, updates)
    for a, b in zip(sw.tree.leaves((params, state)), sw.tree.leaves((plain, moments)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert all(a.value is b for a, b in zip(sw.tree.leaves((params, state)), memory, strict=True))
    assert len(misses) == 1


def test_gradients_by_variables() -> None:
    params = {"a": sw.Variable(np.ones(3, np.float32)), "b": sw.Variable(2.0, np.float32)}
    scale, count = sw.Variable(np.full(3, 3.0, np.float32)), sw.Variable(0)

    def loss(p: Any, x: Any) -> Any:
        return np.sum(p["a"] * p["b"] * x * scale)

    x = np.ones(3, np.float32)
    found = sw.grad(loss)(params, x)
    assert type(found["a"]) is np.ndarray and found["a"].dtype == np.float32
    np.testing.assert_array_equal(found["a"], [6, 6, 6])
    assert found["b"] == 9

    @sw.jit
    def step(x: Any) -> Any:
        value, gradients = sw.value_and_grad(loss)(params, x)
        sw.tree.map(lambda v, g: v.assign_sub(g), params, gradients)
        return value

    assert step(x) == 18 and params["b"] == -7

    def counted(p: Any, x: Any) -> Any:
        count.assign_add(1)
        return loss(p, x)

    def changed(p: Any, x: Any) -> Any:
        p["a"] += 1
        return loss(p, x)

    with pytest.raises(
        TraceError, match=r"the variable 'count', which grad does not allow: return"
    ):
        sw.grad(counted)(params, x)
    with pytest.raises(TraceError, match=r"assigns to its argument .*which grad does not allow"):
        sw.grad(changed)(params, x)
    assert count == 0 and params["a"][0] == -5


def test_many_at_once(misses: list[Any]) -> None:
    """Where many are updated, shared memory is found by the order of addresses."""

    @sw.jit
    def step(xs: Any, y: Any) -> Any:
        for x in xs:
            x += y
        return y + 1

    block = np.zeros((40, 3))
    xs = [block[i] for i in np.random.default_rng(0).permutation(40)]
    for n in range(1, 4):
        step(xs, np.ones(3))
        assert (block == n).all() and len(misses) == 1
    step([*xs[:-1], sw.Variable(xs[-1])], np.ones(3))  # another type: another trace
    assert (block == 4).sum() == 39 * 3 and step.cache_info().traces == 2
    again = len(misses)
    step([*xs[:-1], xs[0]], np.ones(3))  # one twice: not served in C, and a trace of its own
    assert len(misses) > again and xs[0][0] == 6
    xs[5].flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        step(xs, np.ones(3))
    empty = [np.zeros(0) for _ in range(8)]
    step(empty, np.zeros(0))
    assert len(misses) == again + 3
    step(empty, np.zeros(0))
    assert len(misses) == again + 3


def test_looked_at_and_left_as_it_is() -> None:
    """Explaining and profiling run the function, and change nothing."""
    count, held = sw.Variable(0), np.zeros(100)

    @sw.jit
    def step(v: Any) -> Any:
        count.assign_add(1)
        held[0] += 1
        v += count
        return v.sum() + held.sum()

    v = sw.Variable(np.ones(3))
    assert step.explain(v).assigned == ("v", "count", "held")
    step.profile(v, repeat=3)
    assert (count, v[0], held[0]) == (0, 1, 0)
    assert sw.eval_shape(lambda v: v.assign_add(1).sum(), v).shape == () and v[0] == 1
    frozen = sw.freeze({"v": v})["v"]
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 2
    with pytest.raises(TypeError, match="static argument 'v' must be hashable"):
        sw.jit(lambda v: v + 1, static_argnames="v")(v)


def test_a_donated_variable_is_kept() -> None:
    step, v = sw.jit(lambda v, x: v + x, donate_argnums=0), sw.Variable(np.ones(3))
    for _ in range(2):
        np.testing.assert_array_equal(step(v, 1.0), [2, 2, 2])
    assert v[0] == 1


@pytest.mark.opencl
def test_on_opencl() -> None:
    v, count = sw.Variable(np.ones(3)), sw.Variable(0)

    @sw.jit(target="opencl")
    def step(x: Any) -> Any:
        v.assign_add(x)
        count.assign_add(1)
        return v.sum()

    assert [float(step(1.0)) for _ in range(3)] == [6, 9, 12]
    assert v[0] == 4 and count == 3


def test_in_functions_of_lax_and_batches() -> None:
    v, count = sw.Variable(np.ones(3)), sw.Variable(0)

    def counted(carry: Any, x: Any) -> Any:
        count.assign_add(1)
        return carry + x, x

    def changed(row: Any) -> Any:
        return row.assign_add(1)

    found, _ = sw.jit(lambda x: sw.lax.scan(lambda c, a: (c + a * v[0], a), v, x))(np.ones((4, 3)))
    np.testing.assert_array_equal(found, [5, 5, 5])
    with pytest.raises(
        TraceError, match="the variable 'count' was assigned to in a function given"
    ):
        sw.jit(lambda x: sw.lax.scan(counted, np.zeros(3), x))(np.ones((4, 3)))
    x = np.ones((4, 3))
    np.testing.assert_array_equal(sw.vmap(lambda row: row @ v)(x), [3, 3, 3, 3])
    with pytest.raises(TraceError, match="the variable 'count', which vmap does not allow: return"):
        sw.vmap(lambda row: counted(row, row))(x)
    with pytest.raises(AttributeError, match="a part of a batch here: return its new value"):
        sw.vmap(changed)(sw.Variable(x))
    assert count == 0 and v[0] == 1


def test_halves() -> None:
    pytest.importorskip("ml_dtypes")
    v = sw.Variable(np.ones(3), "bfloat16")

    @sw.jit
    def step() -> None:
        v.assign_add(0.5)
        v.assign(v * 2)

    step()
    assert v.dtype.name == "bfloat16" and v.value.astype(np.float32)[0] == 3


def test_saved_and_loaded(tmp_path: Path) -> None:
    state: Any = {"w": sw.Variable(np.ones(3)), "layers": [sw.Variable(2)]}
    file = io.BytesIO()
    np.savez(file, **dict(zip(sw.tree.names(state), sw.tree.leaves(state), strict=True)))
    state["w"][...] = 5
    file.seek(0)
    with np.load(file) as saved:
        sw.tree.assign(
            state,
            sw.tree.unflatten(
                sw.tree.structure(state), [saved[name] for name in sw.tree.names(state)]
            ),
        )
    assert state["w"][0] == 1
    program = sw.jit(lambda x: x @ state["w"]).trace(np.ones(3)).compile()
    program.save(tmp_path / "saved")
    state["w"][...] = 7
    assert sw.load(tmp_path / "saved")(np.ones(3)) == 3  # as it was when it was traced


def test_without_jit_and_in_the_interpreter() -> None:
    v = sw.Variable(np.ones(3))

    @sw.jit
    def step(x: Any) -> Any:
        v.assign_add(x)
        return sw.nn.relu(v).sum()

    with sw.disable_jit():
        assert step(1.0) == 6
    assert step(1.0) == 9
    assert interpreted(lambda x: x + v, np.ones(3))[0] == 4  # a constant, as it is now
