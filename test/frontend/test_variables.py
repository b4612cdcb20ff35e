"""Variables: arrays that compiled code updates where they lie, passed or read from outside."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.errors import TraceError

W = sw.Variable(np.zeros(3, np.float32), name="W")


@dataclass
class Model:
    w: Any
    b: Any


class Pair(NamedTuple):
    first: Any
    second: Any


class Plain:
    """An object of a user's class that nobody registered."""

    def __init__(self) -> None:
        self.w = sw.Variable(np.ones(3))
        self.layers: Any = [sw.Variable(np.ones(2)), {"b": sw.Variable(np.zeros(2))}]

    @sw.jit
    def step(self, x: Any) -> Any:
        self.w -= x
        first, rest = self.layers
        first[0] = x
        rest["b"] += 2 * x
        return self.w.sum()


def test_passed_as_an_argument(misses: list[Any]) -> None:
    @sw.jit
    def step(v: Any, g: Any) -> Any:
        assert isinstance(v, sw.Variable)
        v -= 0.5 * g
        return v, v.sum()

    v = sw.Variable(np.ones(3, np.float32))
    memory, g = v.value, np.ones(3, np.float32)
    for n in range(3):
        same, total = step(v, g)
        assert same is v and v.value is memory
        assert total == 3 - 1.5 * (n + 1)
    assert len(misses) == 1
    other = sw.Variable(np.zeros(3, np.float32))
    step(other, g)  # another variable of its type is served by the same program
    np.testing.assert_array_equal(other, [-0.5, -0.5, -0.5])
    assert len(misses) == 1 and step.cache_info().traces == 1
    with pytest.raises(AssertionError):
        step(np.zeros(3, np.float32), g)


def test_read_from_outside(misses: list[Any]) -> None:
    count, held = sw.Variable(0), {"v": sw.Variable(np.zeros(2))}

    @sw.jit
    def step(x: Any) -> Any:
        count.assign_add(1)
        held["v"] += x
        W[...] = x * count
        return np.sum(W)

    for n in range(1, 5):
        assert step(np.float32(2)) == 6 * n
        assert count == n and W[0] == 2 * n
        np.testing.assert_array_equal(held["v"], [2 * n, 2 * n])
    assert len(misses) == 1
    held["v"] = sw.Variable(np.zeros(2))  # another one of its type
    step(np.float32(2))
    np.testing.assert_array_equal(held["v"], [2, 2])
    assert len(misses) == 1 and step.cache_info().traces == 1
    held["v"] = sw.Variable(np.zeros(3))
    step(np.float32(2))
    assert step.cache_info().traces == 2


def test_attributes_of_plain_objects(caplog: pytest.LogCaptureFixture, misses: list[Any]) -> None:
    one, other = Plain(), Plain()
    for model in (one, one, other, one):
        model.step(0.5)
    for model, steps in ((one, 3), (other, 1)):
        np.testing.assert_array_equal(model.w, np.ones(3) - 0.5 * steps)
        np.testing.assert_array_equal(model.layers[0], [0.5, 1])
        np.testing.assert_array_equal(model.layers[1]["b"], [steps, steps])
        assert type(model.w) is sw.Variable
    assert len(misses) == 2 and not caplog.records


def test_its_value_may_be_assigned_to(misses: list[Any]) -> None:
    read, memory = sw.Variable(np.zeros(3)), W.value

    @sw.jit
    def step(v: Any, g: Any) -> None:
        v.value = v.value + g
        read.value += 2 * g
        W.value = -g

    v = sw.Variable(np.ones(3))
    for _ in range(2):
        step(v, np.ones(3))
    assert (v.value[0], read.value[0], W.value[0]) == (3, 4, -1) and W.value is memory
    assert len(misses) == 1
    W[...] = 0


def test_in_containers_of_users_classes(misses: list[Any]) -> None:
    @sw.jit
    def step(model: Model, pair: Pair, more: Any, rest: Any) -> Any:
        model.w += 1
        pair.second[...] = model.w
        more["x"].assign(pair.first * 2)
        rest["a"] *= 2
        return Model(model.w + 1, pair.second), OrderedDict(b=more["x"], a=1), rest

    model, pair = Model(sw.Variable(1.0), 2.0), Pair(np.ones(2), sw.Variable(np.zeros(2)))
    more = OrderedDict(z=np.ones(1), x=sw.Variable(np.zeros(2)))
    rest = defaultdict(list, a=sw.Variable(np.ones(2)))
    for n in range(1, 4):
        made, ordered, after = step(model, pair, more, rest)
        assert made.w == n + 2 and made.b is pair.second and ordered["b"] is more["x"]
        assert list(ordered) == ["b", "a"] and type(ordered) is OrderedDict
        assert type(after) is defaultdict and after.default_factory is list
        assert after["a"] is rest["a"]
        np.testing.assert_array_equal(rest["a"], np.full(2, 2.0**n))
    assert len(misses) == 1
    step(model, pair, OrderedDict(reversed(more.items())), rest)  # another order is another tree
    assert step.cache_info().traces == 2


def test_registered_classes_are_served_in_c(misses: list[Any]) -> None:
    @sw.tree.register
    class Tagged:
        def __init__(self, tag: str, inside: Any) -> None:
            self.tag, self.inside = tag, inside

        def tree_flatten(self) -> Any:
            return [self.inside], self.tag if self.tag != "bad" else 1 / 0

        @classmethod
        def tree_unflatten(cls, tag: str, inside: Any) -> Any:
            return cls(tag, *inside)

    @sw.jit
    def step(x: Any) -> Any:
        return Tagged(x.tag + "!", x.inside + 1)

    for n in range(3):
        found = step(Tagged("a", np.full(2, float(n))))
        assert found.tag == "a!" and found.inside[0] == n + 1
    assert len(misses) == 1
    assert step(Tagged("b", np.ones(2))).tag == "b!"
    assert len(misses) == 2

    with pytest.raises(ZeroDivisionError):
        step(Tagged("bad", np.ones(2)))


def flow(v: Any, count: Any, x: Any) -> Any:
    if np.sum(x) > 0:
        v += x
        count += 1
    for i in range(3):
        v[i] = v[i] * 2
        count.assign_add(i)
    n = 0
    while n < x[0]:
        count += 1
        n += 1
    return np.sum(v)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_in_branches_and_loops(sign: float) -> None:
    jitted = sw.jit(flow)
    ours = sw.Variable(np.arange(3.0)), sw.Variable(0)
    theirs = sw.Variable(np.arange(3.0)), sw.Variable(0)
    for scale in (1.0, 2.0):
        x = np.asarray([sign, 2.0, 0.5]) * scale
        assert jitted(*ours, x) == flow(*theirs, x)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1] == theirs[1]


def test_it_is_like_an_array() -> None:
    v: Any = sw.Variable([[1.0, 2.0], [3.0, 4.0]])
    a = np.asarray([[1.0, 2.0], [3.0, 4.0]])
    for found, wanted in (
        (v + 1, a + 1),
        (1 - v, 1 - a),
        (a @ v, a @ a),
        (v > 2, a > 2),
        (-v, -a),
        (v[0], a[0]),
        (v.T, a.T),
        (np.sum(v, axis=0), np.sum(a, axis=0)),
        (np.concatenate([v, a]), np.concatenate([a, a])),
        (v.mean(), a.mean()),
        (np.asarray(v, np.float32), a.astype(np.float32)),
        (list(v)[1], a[1]),
        (np.add.reduce(v), np.add.reduce(a)),
    ):
        assert type(found) is type(wanted) or isinstance(found, np.generic)
        np.testing.assert_array_equal(found, wanted)
    assert (v.shape, v.dtype, v.ndim, v.size, len(v)) == (a.shape, a.dtype, 2, 4, 2)
    assert 3.0 in v and f"{sw.Variable(2.5):.2f}" == "2.50"
    assert float(sw.Variable(2.5)) == 2.5 and range(5)[sw.Variable(2)] == 2
    assert np.asarray(v) is v.value and np.array(v) is not v.value
    np.multiply(v, 2, out=v)
    np.testing.assert_array_equal(v, 2 * a)
    v.value = a
    np.testing.assert_array_equal(v, a)
    with pytest.raises(TypeError):
        hash(v)
    with pytest.raises(AttributeError):
        v.shape = (4,)
    with pytest.raises(AttributeError, match="'Variable' object has no attribute '_none'"):
        assert v._none


def test_it_is_a_leaf() -> None:
    tree = {"a": W, "b": [sw.Variable(1)]}
    assert sw.tree.leaves(tree)[0] is W
    assert sw.tree.names({"a": 1, "b": [2, Model(3, 4)]}) == ["a", "b[0]", "b[1].w", "b[1].b"]
    found = sw.tree.assign(
        {"a": sw.Variable(np.zeros(2)), "b": np.zeros(2)}, {"a": np.ones(2), "b": np.full(2, 3)}
    )
    assert found["a"][1] == 1 and found["b"][1] == 3
    with pytest.raises(ValueError, match=r"an array \[2\] is assigned one \[\]"):
        sw.tree.assign([np.zeros(2)], [3])
    with pytest.raises(TypeError, match="a int is no array or Variable to write to"):
        sw.tree.assign([1], [2])


def test_copies_have_their_own_memory() -> None:
    v = sw.Variable(np.ones(2), name="v")
    for made in (copy.copy(v), copy.deepcopy(v), pickle.loads(pickle.dumps(v)), sw.Variable(v)):
        made += 1
        assert v[0] == 1 and made[0] == 2
    assert copy.deepcopy(v).name == "v"
    model = Plain()
    again = copy.deepcopy(model)
    again.step(0.5)
    assert model.w[0] == 1 and again.w[0] == 0.5


def test_spelled() -> None:
    assert repr(sw.Variable([1, 2], np.float32, name="w")) == (
        "Variable([1., 2.], dtype=float32, name='w')"
    )
    assert repr(sw.Variable(True)) == "Variable(True)"


def test_mistakes() -> None:
    v, count = sw.Variable(np.zeros(3), name="v"), sw.Variable(0)
    for call in (lambda f: f(), lambda f: sw.jit(f)()):
        with pytest.raises(ValueError, match=r"'v' has shape \[3\] and is assigned an array of s"):
            call(lambda: v.assign(np.zeros(2)))
        with pytest.raises(ValueError, match=r"write v\[...\] = x to repeat x along axes"):
            call(lambda: v.assign(1.0))
        with pytest.raises(
            TypeError, match="has dtype int64 and is assigned float64; convert what"
        ):
            call(lambda: count.assign(np.zeros(())))
        with pytest.raises(TypeError):
            call(lambda: count.assign_add(0.5))
    with pytest.raises(TypeError, match="a Variable cannot be of dtype"):
        sw.Variable(np.asarray(["a"]))
    with pytest.raises(TraceError, match="a Variable is made while a function is traced"):
        sw.jit(lambda: sw.Variable(1) + 1)()


def test_a_trace_that_stands_alone(tmp_path: Path) -> None:
    """What is assigned to is an argument and a result, what is only read a constant as it was."""
    count, w = sw.Variable(0, name="count"), sw.Variable(np.ones(3), name="w")
    scale = sw.Variable(np.full(3, 0.5), name="scale")

    @sw.jit
    def step(x: Any) -> Any:
        count.assign_add(1)
        w[...] -= scale * x
        return {"sum": (w * x).sum()}

    x, want = np.ones(3), np.full(3, 0.5)
    assert sw.eval_shape(step, x)["sum"].shape == ()
    traced = step.trace(x)
    assert "%count: tensor<i64>, %w: tensor<3xf64>)" in str(traced)
    traced.compile().save(tmp_path)
    program = sw.load(tmp_path)
    assert [a.name for a in program.signature.arguments] == ["x", "count", "w"]
    n, array = np.array(0), np.ones(3)
    for k in (1, 2):
        total, *_ = program.update(x, n, array)
        np.testing.assert_array_equal(array, 1 - 0.5 * k)
        assert n == k and total == 3 * (1 - 0.5 * k)
    fresh = program(x, np.array(7), np.ones(3))  # called, it changes nothing
    assert fresh[1] == 8
    np.testing.assert_array_equal(fresh[2], want)
    assert int(count) == 0 and w.value[0] == 1
    explained = step.explain(x)
    assert explained.assigned == ("count", "w") and int(count) == 0
    view = sw.jit(lambda: np.asarray(w.value).sum())
    assert view.trace().compile()() == 3
    with pytest.raises(ValueError, match="read-only"):
        sw.jit(lambda: FROZEN.__setitem__(0, 1.0)).trace()


FROZEN = np.zeros(2)
FROZEN.flags.writeable = False


def test_the_same_one_twice() -> None:
    @sw.jit
    def step(a: Any, b: Any) -> Any:
        a += 1
        return np.sum(a * b)

    v = sw.Variable(np.ones(2))
    for n in (2.0, 3.0):
        assert step(v, v) == 2 * n * n

    @sw.jit
    def both(a: Any) -> Any:
        a += 1
        return W + a

    with pytest.raises(ValueError, match="is also passed as 'a', and the function assigns to it"):
        both(W)


def test_an_error_in_mid_call_leaves_what_was_written() -> None:
    """As NumPy does: what was done before the error stays done."""
    v, w = sw.Variable(np.zeros(3)), sw.Variable(np.zeros(3))

    def step(i: Any) -> None:
        v[...] = 1
        w[i] = 2

    for call in (sw.jit(step), step):
        v[...] = 0
        with pytest.raises(IndexError):
            call(np.asarray(7))
        assert v[0] in (0, 1) and not np.any(w)
    sw.jit(step)(np.asarray(1))
    assert v[0] == 1 and w[1] == 2


def test_threads_with_variables_of_their_own() -> None:
    @sw.jit
    def step(v: Any, x: Any) -> Any:
        v += x
        return v.sum()

    mine = [sw.Variable(np.zeros(50_000)) for _ in range(4)]

    def run(v: Any) -> None:
        for _ in range(20):
            step(v, 1.0)

    threads = [threading.Thread(target=run, args=(v,)) for v in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [v.value.min() for v in mine] == [20] * 4 == [v.value.max() for v in mine]
