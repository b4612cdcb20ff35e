"""What a function reads outside of itself: guarded, and arguments of the program."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.outside import Outside

K = 3.0
TABLE = np.arange(300.0)
X = np.arange(4.0)


def helper(x: Any) -> Any:
    return x + K


class Counted:
    """A function, jitted; counts how often it is traced."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.traces = 0
        self.function = function
        mark = iter(lambda: self.note(), None)

        def counted(*args: Any) -> Any:
            next(mark)
            return function(*args)

        self.jitted: Any = sw.jit(counted, **options)

    def note(self) -> int:
        self.traces += 1
        return 0

    def check(self, *args: Any, traces: int | None = None) -> None:
        """Compare with Python, twice; the second call must not be traced."""
        for _ in range(2):
            want = self.function(*args)
            np.testing.assert_allclose(self.jitted(*args), want)
        if traces is not None:
            assert self.traces == traces


def test_a_global_number(monkeypatch: pytest.MonkeyPatch) -> None:
    f = Counted(helper)
    f.check(X, traces=1)
    monkeypatch.setitem(globals(), "K", 4.0)
    f.check(X, traces=2)
    monkeypatch.setitem(globals(), "K", float("4.0"))  # equal, another object
    f.check(X, traces=2)
    monkeypatch.setitem(globals(), "K", 3.0)
    f.check(X, traces=2)  # the first program serves again
    monkeypatch.setitem(globals(), "K", 3)
    f.check(X, traces=3)


def test_what_a_helper_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    f = Counted(lambda x: helper(x) * 2)
    f.check(X, traces=1)
    monkeypatch.setitem(globals(), "K", 5.0)
    f.check(X, traces=2)
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1)
    f.check(X, traces=3)


@pytest.mark.parametrize("rewritten", [True, False])
def test_closures(rewritten: bool) -> None:
    n: Any = 2.0
    table = np.arange(100.0)
    words = ("a", "b")

    def f(x: Any) -> Any:
        if not rewritten:
            try:
                pass
            finally:
                pass
        return x * n + table[3] * len(words)

    counted = Counted(f)
    counted.check(X, traces=1)
    n = 2.5
    counted.check(X, traces=2)
    table[3] = 77
    counted.check(X, traces=2)
    table = table * 2  # another array of the same type
    counted.check(X, traces=2)
    words = ("a", "b", "c")
    counted.check(X, traces=3)
    table = table.astype(np.float32)
    counted.check(X, traces=4)
    table = np.arange(500.0)
    counted.check(X, traces=5)


def test_what_is_computed_without_source_is_seen() -> None:
    table, box = np.ones(300), SimpleNamespace(w=np.ones(300))

    def inner() -> Any:
        try:
            return np.sqrt(table) + 1
        finally:
            pass

    def f(x: Any) -> Any:
        try:
            return x + np.sqrt(box.w)[:4] + np.sqrt(table)[:4] + inner()[:4]
        finally:
            pass

    counted = Counted(f)
    counted.check(X)
    table[:] = 4
    counted.check(X)
    box.w[:] = 9
    counted.check(X)


def test_arrays_of_a_module_are_read_at_each_call() -> None:
    before = TABLE.copy()
    f = Counted(lambda x: x + TABLE[:4] * TABLE.sum())
    f.check(X, traces=1)
    TABLE[:] += 1
    f.check(X, traces=1)
    TABLE[:] = before
    f.check(X, traces=1)


def test_small_arrays_become_arguments_when_they_change() -> None:
    step = np.array([1.0, 2.0, 3.0, 4.0])

    def f(x: Any) -> Any:
        return x * step

    counted = Counted(f)
    counted.check(X, traces=1)
    for k in range(5):
        step[:] = k
        counted.check(X, traces=2)


def test_tables_that_tracing_needs_are_known_by_content() -> None:
    offsets = np.array([0, 2, 1])
    mask = np.zeros(300, bool)
    mask[5] = True
    large = np.arange(5000)

    def f(x: Any) -> Any:
        total = x[0] * 0
        for k in offsets:
            total = total + x[k : k + 3].sum()
        return total + x[mask].sum() + x[: large[3]].sum()

    x = np.arange(300.0)
    counted = Counted(f)
    counted.check(x)
    offsets[1] = 7
    counted.check(x)
    mask[9] = True
    counted.check(x)
    large[3] = 6
    counted.check(x)


class Model:
    scale = 2.0

    def __init__(self) -> None:
        self.w = np.ones(100)
        self.n = 3
        self.layers = [SimpleNamespace(b=np.ones(50)), SimpleNamespace(b=np.ones(50))]
        self._hidden = 1.0

    @property
    def hidden(self) -> float:
        return self._hidden * 2

    @staticmethod
    def twice(x: Any) -> Any:
        return x * 2

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer.b[:4]
        return self.twice(x * self.w[:4] * self.n * self.scale + self.hidden)

    def method(self, x: Any) -> Any:
        return x * self.n + self.w[0]


@pytest.mark.parametrize("how", ["closure", "method", "object", "partial"])
def test_attributes(how: str) -> None:
    model: Any = Model()
    function = {
        "closure": lambda x: model(x),
        "method": model.__call__,
        "object": model,
        "partial": partial(Model.__call__, model),
    }[how]
    f: Any = sw.jit(function)

    def check() -> None:
        for _ in range(2):
            np.testing.assert_allclose(f(X), model(X))

    check()
    model.w[:] = 5
    check()
    model.w = model.w * 2
    check()
    model.n = 7
    check()
    model._hidden = 4.0
    check()
    model.layers[1].b = np.arange(50.0)
    check()
    model.layers.append(SimpleNamespace(b=np.ones(50)))
    check()
    model.layers[0] = SimpleNamespace(b=np.ones(60))
    check()
    try:
        Model.scale = 3.0
        check()
    finally:
        Model.scale = 2.0
    made, kept = property(lambda self: lambda x: x + self.n), vars(Model)["twice"]
    for other in (staticmethod(lambda x: x - 1), made, kept):
        Model.twice = other  # pyright: ignore[reportAttributeAccessIssue]
        check()
    model.twice = lambda x: x * 3
    check()
    if how == "closure":
        model = Model()
        check()


def test_only_what_is_read_is_guarded() -> None:
    options: dict[str, Any] = {"lr": 0.5, "step": 0, "more": {"a": 1.0, "b": 2.0}}
    config = SimpleNamespace(rate=1.0, step=0)
    f = Counted(lambda x: x * options["lr"] * options["more"]["a"] * config.rate)

    def g(x: Any) -> Any:
        return x * options["lr"] * options["more"]["a"] * config.rate

    exact = Counted(g)
    exact.check(X, traces=1)
    f.check(X, traces=1)
    options["step"], config.step, options["more"]["b"] = 1, 1, 7.0
    exact.check(X, traces=1)
    options["more"]["a"] = 3.0
    exact.check(X, traces=2)
    f.check(X)
    options["lr"] = 0.25
    exact.check(X, traces=3)
    f.check(X)
    options["more"] = {"a": 9.0}
    exact.check(X, traces=4)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass(frozen=True)
class Config:
    rate: float
    name: str = "x"


def test_containers_of_arrays() -> None:
    params: dict[str, Any] = {"layers": [(np.ones((4, 4)), np.zeros(4)), (np.ones((4, 4)), 1.0)]}
    pair = Pair(np.ones(60), 2.0)

    def f(x: Any) -> Any:
        for w, b in params["layers"]:
            x = x @ w + b
        total = sum(v.sum() for v in pair if not isinstance(v, float))
        return x * pair.b + total + np.sqrt(pair.a)[:4]

    counted = Counted(f)
    counted.check(X, traces=1)
    params["layers"][0][0][:] = 2
    counted.check(X, traces=2)  # it is small, and an argument from now on
    pair.a[:] = 4
    params["layers"][0][0][:] = 3
    counted.check(X, traces=2)
    params["layers"][1] = (np.ones((4, 4)), 1.0)
    counted.check(X, traces=2)
    params["layers"][1] = (np.ones((4, 4)), 2.0)
    counted.check(X, traces=3)
    pair = Pair(np.ones(60), 3.0)
    counted.check(X, traces=4)


def test_modules_and_frozen_dataclasses() -> None:
    module: Any = ModuleType("settings")
    module.RATE, module.TABLE = 2.0, np.ones(40)
    config = Config(1.5)
    f = Counted(lambda x: x * module.RATE + module.TABLE[:4] * config.rate)
    f.check(X, traces=1)
    module.TABLE[:] = 3
    config = Config(1.5)
    f.check(X, traces=1)
    module.RATE = 3.0
    f.check(X, traces=2)
    config = Config(2.5)
    f.check(X, traces=3)


def test_getattr_and_properties_that_come() -> None:
    thing = SimpleNamespace()

    def f(x: Any) -> Any:
        return x * getattr(thing, "rate", 2.0)

    counted = Counted(f)
    counted.check(X, traces=1)
    thing.rate = 5.0
    counted.check(X, traces=2)


def test_frozen_arrays_are_constants() -> None:
    w = np.ones((4, 4))
    frozen = sw.freeze({"w": w})
    f: Any = sw.jit(lambda x: x @ frozen["w"].T)
    np.testing.assert_array_equal(f(X), X @ np.ones((4, 4)))
    w[:] = 0
    np.testing.assert_array_equal(f(X), X @ np.ones((4, 4)))
    for array in (frozen["w"], frozen["w"].T, frozen["w"][0]):
        with pytest.raises(ValueError):
            array.flags.writeable = True
        with pytest.raises(ValueError):
            array[0] = 1
    assert sw.freeze(frozen)["w"] is frozen["w"]
    with pytest.raises(TypeError, match=r"tree\['a'\]: expected an array, got object"):
        sw.freeze({"a": object()})


def test_assigning_to_an_array_from_outside_reaches_it() -> None:
    class Walk:
        def __init__(self) -> None:
            self.u = np.zeros(100)

        def step(self, x: Any) -> Any:
            self.u[1:-1] += x.sum()
            self.u[0] = 5
            return self.u.sum()

    mine, plain = Walk(), Walk()
    f: Any = sw.jit(mine.step)
    for _ in range(3):
        np.testing.assert_allclose(f(X), plain.step(X))
        np.testing.assert_allclose(mine.u, plain.u)
    mine.u.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(X)


def test_side_effects_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    cache: dict[str, Any] = {}
    thing = SimpleNamespace(count=0)

    def f(x: Any) -> Any:
        seen.append(1)
        cache["x"] = 1
        thing.count += 1
        return x * np.random.default_rng(0).random()

    with caplog.at_level(logging.WARNING, "stepwell"):
        sw.jit(f)(X)
        sw.jit(f)(X)
    told = [
        r.getMessage() for r in caplog.records if "while the function is traced" in r.getMessage()
    ]
    line = f.__code__.co_firstlineno
    for number, what in enumerate(
        ("'seen' is changed by append()", "'cache' is assigned to", "'thing.count' is assigned to"),
        line + 1,
    ):
        assert len([t for t in told if f"test_captures.py:{number}: {what}" in t]) == 1
    assert any("is called" in t for t in told)


def test_threads_stay_apart() -> None:
    rate = [1.0]
    table = np.ones(100)

    def f(x: Any) -> Any:
        return x * rate[0] + table[:4]

    jitted: Any = sw.jit(f)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                got = jitted(X)
                assert any(np.array_equal(got, X * r + 1) for r in (1.0, 2.0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for k in range(200):
        rate[0] = float(1 + k % 2)
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_python_and_c_agree() -> None:
    """`Outside.collect` and the dispatcher look at the same things."""
    box: dict[str, Any] = {"a": 1.0, "b": (1, "x"), "c": [np.ones(50), None], "d": Config(1.0)}

    def f(x: Any) -> Any:
        a, b = box["a"], box["b"]
        c = box["c"]
        return x * a + b[0] + c[0][:4] + box["d"].rate

    jitted: Any = sw.jit(f)
    changes: list[tuple[str, Any]] = [
        ("a", 1.0), ("a", 1), ("a", True), ("a", np.float64(1)), ("b", (1, "x")), ("b", (1.0, "x")),
        ("c", [np.zeros(50), None]), ("c", (np.zeros(50), None)), ("c", [np.zeros(51), None]),
        ("d", Config(1.0)), ("d", Config(2.0)), ("a", -0.0), ("a", 0.0), ("a", 1.0),
    ]  # fmt: skip
    for key, value in changes:
        box[key] = value
        for _ in range(2):
            got, want = jitted(X), f(X)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_programs_of_what_was_let_go_of_are_let_go() -> None:
    import gc
    import weakref

    def make() -> Any:
        big = np.ones(1000)
        f: Any = sw.jit(lambda x: x + big[:4])
        f(X)
        return weakref.ref(f), weakref.ref(big)

    refs = make()
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_calls_stay_in_c() -> None:
    box: dict[str, Any] = {"w": np.ones(60), "n": 2.0, "l": [np.ones(70), np.ones(80)]}
    model = Model()

    def f(x: Any, y: Any) -> Any:
        for w in box["l"]:
            y = y + w[:4]
        return x * box["w"][:4] * box["n"] + model.w[0] + y

    def g(x: Any) -> None:
        model.w[:4] += x

    jitted: Any = sw.jit(f)
    writing: Any = sw.jit(g)
    dynamic: Any = sw.jit(lambda x: x + box["n"])
    jitted(X, X)
    writing(X)
    for n in (4, 5, 6):
        dynamic(np.ones(n))
    for function in (jitted, writing, dynamic):
        function._take_apart = None  # a call that leaves C fails
    box["w"] = np.ones(60) * 3
    box["l"][1] = np.ones(80) * 5
    before = model.w.copy()
    writing(X)
    np.testing.assert_array_equal(model.w[:4], before[:4] + X)
    np.testing.assert_allclose(jitted(X, X), f(X, X))
    for n in (4, 5, 6):
        np.testing.assert_array_equal(dynamic(np.ones(n)), np.ones(n) + 2)
    box["n"] = 3.0
    with pytest.raises(TypeError):
        jitted(X, X)


def test_nothing_outside_costs_nothing() -> None:
    assert Outside().collect() == []
    assert Outside().watch() is None
