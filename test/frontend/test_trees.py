"""Containers of arrays as arguments, results and carries; methods."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw

X = np.arange(4.0)


class Named(NamedTuple):
    a: Any
    b: Any


@dataclass
class Data:
    a: Any
    b: Any


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any


class OfAttrs:
    """A class as `attrs.define` makes it."""

    __slots__ = ("a", "b")
    __attrs_attrs__ = (SimpleNamespace(name="a"), SimpleNamespace(name="b"))

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@sw.tree.register
class Own:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        return (self.a, self.b), "kept"

    @classmethod
    def tree_unflatten(cls, more: Any, children: Any) -> Any:
        assert more == "kept"
        return cls(*children)


MAKERS: dict[str, Any] = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "ordered": lambda a, b: OrderedDict(b=b, a=a),
    "default": lambda a, b: defaultdict(list, a=a, b=b),
    "named": Named,
    "dataclass": Data,
    "attrs": OfAttrs,
    "namespace": lambda a, b: SimpleNamespace(a=a, b=b),
    "frozen": Frozen,
    "registered": Own,
    "nested": lambda a, b: {"x": Data(a, [None, Own(b, None)])},
}


@pytest.mark.parametrize("name", MAKERS)
def test_argument_result_and_carry(name: str) -> None:
    make = MAKERS[name]
    f: Any = sw.jit(lambda t: sw.tree.map(lambda v: v * 2, t))

    def step(_: Any, t: Any) -> Any:
        return sw.tree.map(lambda v: v + 1, t)

    g: Any = sw.jit(lambda t: sw.lax.fori_loop(0, 5, step, t))
    given = make(X, X + 1)
    for _ in range(2):
        for function, want in ((f, (X * 2, X * 2 + 2)), (g, (X + 5, X + 6))):
            got = function(given)
            assert type(got) is type(given)
            assert sw.tree.structure(got) == sw.tree.structure(given)
            for a, b in zip(sw.tree.leaves(got), sw.tree.leaves(make(*want)), strict=True):
                np.testing.assert_array_equal(a, b)
    assert f.cache_info().traces == 1


KEPT = np.zeros(3)


def test_mismatches_are_told_with_their_place() -> None:
    with pytest.raises(ValueError, match=r"tree 2 has nothing at tree\['a'\], where the first has"):
        sw.tree.map(max, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match=r"tree 2 has a leaf at tree\.b"):
        sw.tree.map(max, Data(1, None), Data(1, 2))
    with pytest.raises(ValueError, match="containers of other classes"):
        sw.tree.map(max, [1], (1,))
    with pytest.raises(ValueError, match="the structure has 2 leaves, got 1"):
        sw.tree.unflatten(sw.tree.structure([1, 2]), [1])
    with pytest.raises(
        TypeError, match=r"an array \[3\] that is no argument of the traced function"
    ):
        sw.jit(lambda x: sw.tree.assign({"a": KEPT}, {"a": x}))(np.ones(3))
    with pytest.raises(TypeError, match="is no class with tree_flatten"):
        sw.tree.register(int)
    with pytest.raises(TypeError, match=r"argument 't\.a': expected an array or a number, got str"):
        sw.jit(lambda t: t.b)(Data("x", X))


class Model:
    def __init__(self, scale: float) -> None:
        self.scale, self.w = scale, np.ones(60)

    @sw.jit
    def call(self, x: Any, power: int = 1) -> Any:
        return x * self.scale * self.w[:4] ** power

    @staticmethod
    @sw.jit
    def twice(x: Any) -> Any:
        return x * 2


def test_methods() -> None:
    one, two = Model(2.0), Model(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(one.call(X), X * 2)
        np.testing.assert_array_equal(two.call(X, 1), X * 3)
    assert one.call is one.call
    one.scale = 5.0
    one.w[:] = 2
    np.testing.assert_array_equal(one.call(X), X * 10)
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        other.scale = 1.0
        np.testing.assert_array_equal(other.call(X), X * 2)
    np.testing.assert_array_equal(one.call(X), X * 10)
    np.testing.assert_array_equal(Model.twice(X), X * 2)


class Checked(Named):
    """A named tuple whose class makes it in a way of its own."""

    made = 0

    def __new__(cls, a: Any, b: Any) -> Checked:
        cls.made += 1
        return super().__new__(cls, a, b)


def test_named_tuples_in_c_and_as_their_class_says() -> None:
    f = sw.jit(lambda t: Named(t.b, {"x": t.a}))
    for _ in range(2):
        found = f(Named(X, X + 1))
        assert type(found) is Named and list(found.b) == ["x"]
        np.testing.assert_array_equal(found.a, X + 1)
    g, given = sw.jit(lambda t: t), Checked(X, X)
    g(given)
    for _ in range(2):
        before = Checked.made
        assert type(g(given)) is Checked and Checked.made == before + 1


def test_small_dicts_in_any_order() -> None:
    """Keys in another order than that of the first call, other keys, other values."""
    f = sw.jit(lambda d: d["b"] - d["a"])
    ways: list[dict[Any, Any]] = [
        {"a": X, "b": X * 2},
        {"b": X * 2, "a": X},
        {"b": X * 2, "".join(["", "a"]): X},
        {"b": (X * 2)[::1].copy(), "a": X},
    ]
    for _ in range(2):
        for way in ways:
            np.testing.assert_array_equal(f(way), X)
        np.testing.assert_array_equal(f({"b": 3.0, "a": X}), 3 - X)
        np.testing.assert_array_equal(f({"b": X, "a": 1.0}), X - 1)
        with pytest.raises(KeyError):
            f({"b": X, "c": X})
        np.testing.assert_array_equal(f({"b": X[:1], "a": X}), X[:1] - X)


def test_dicts_keep_the_order_of_their_keys() -> None:
    """Keys were sorted, so that a loop over layers took the tenth before the second."""

    def through(layers: Any, x: Any) -> Any:
        for layer in layers.values():
            scale, shift = layer.values()
            x = x * scale + shift
        return x, {name: layer["w"] for name, layer in layers.items()}

    compiled, slope = sw.jit(through), sw.grad(lambda layers, x: through(layers, x)[0])
    second, tenth = {"w": 2.0, "b": 1.0}, {"w": 3.0, "b": 5.0}
    for _ in range(2):
        for layers in ({"l2": second, "l10": tenth}, {"l10": tenth, "l2": second}):
            value, named = compiled(layers, 1.0)
            assert value == through(layers, 1.0)[0]
            assert list(named.items()) == [(name, each["w"]) for name, each in layers.items()]
            assert list(slope(layers, 1.0)) == list(layers)
    assert compiled.cache_info().traces == 2
    assert sw.tree.map(lambda a, b: a + b, {"z": 1, "a": 2}, {"a": 3, "z": 4}) == {"z": 5, "a": 5}
