"""Jitted functions pickled and copied: as Python's functions are."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.ones(3)


@sw.jit(static_argnames="times")
def scaled(x: Any, times: int = 2) -> Any:
    return x * times


def plain(x: Any) -> Any:
    return x + 1


renamed = sw.jit(plain, threads=1)


class Layer:
    """Holds jitted functions: of the module, of itself, and one of its methods."""

    def __init__(self, w: float) -> None:
        self.w = w
        self.scaled, self.own = scaled, sw.jit(self.forward)

    def forward(self, x: Any) -> Any:
        return x * self.w

    @staticmethod
    @sw.jit
    def doubled(x: Any) -> Any:
        return x * 2


def test_a_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert pickle.loads(pickle.dumps(Layer.doubled)) is Layer.doubled


def test_cloudpickle_gets_a_function_of_main_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled.__wrapped__, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "scaled", scaled, raising=False)
    assert scaled.__reduce__()[1] == ("__main__", "scaled")
    space: dict[str, Any] = {"__name__": "joblib.externals.cloudpickle.cloudpickle"}
    exec("def reduced(f): return f.__reduce__()", space)
    make, given = space["reduced"](scaled)
    np.testing.assert_array_equal(make(*given)(X), X * 2)


def test_another_name_has_the_function_and_its_options() -> None:
    again = pickle.loads(pickle.dumps(renamed))
    assert again is not renamed
    assert again.__wrapped__ is plain
    np.testing.assert_array_equal(again(X), X + 1)


def test_a_copy_is_the_function_itself() -> None:
    local = sw.jit(lambda x: x - 1)
    assert copy.deepcopy(local) is local
    assert copy.copy(scaled) is scaled


def test_an_object_is_copied_with_its_jitted_functions() -> None:
    for of in (copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))):
        layer = Layer(3.0)
        layer.own(X)
        again = of(layer)
        again.w = 5.0
        np.testing.assert_array_equal(again.own(X), X * 5)
        np.testing.assert_array_equal(layer.own(X), X * 3)
        assert again.scaled is scaled


class Scales:
    """Has a jitted method, and one that is jitted under another name."""

    def __init__(self, w: float) -> None:
        self.w = w

    @sw.jit
    def scale(self, x: Any) -> Any:
        return x * self.w

    renamed = sw.jit(Layer.forward)


def test_a_bound_method_is_pickled_and_copied_with_its_object() -> None:
    scales = Scales(2.0)
    for of in (copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))):
        again, method, renamed = of((scales, scales.scale, scales.renamed))
        assert method is again.scale
        assert again is not scales
        again.w = 3.0
        np.testing.assert_array_equal(method(X), X * 3)
        np.testing.assert_array_equal(renamed.__wrapped__(X), X * 3)
    assert copy.copy(scales.scale) is scales.scale
    np.testing.assert_array_equal(copy.copy(scales).scale(X), X * 2)
