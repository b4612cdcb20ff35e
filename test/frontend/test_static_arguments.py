"""Static arguments choose programs by class and bits: what a function can tell apart is apart."""

from __future__ import annotations

import datetime
import enum
import functools
import math
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.statics import key_of
from stepwell.runtime import program

X = np.arange(3)


class Pair(NamedTuple):
    a: Any
    b: Any = 0


class Other(NamedTuple):
    a: Any
    b: Any = 0


class WithMore(Pair):
    """A named tuple whose values may have attributes."""


@dataclass(frozen=True)
class Config:
    a: Any
    b: Any = 0
    unseen: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Slotted:
    a: Any


@dataclass(unsafe_hash=True)
class Open:
    a: Any


@dataclass(frozen=True)
class Computing:
    a: Any

    @functools.cached_property
    def twice(self) -> Any:
        return self.a * 2


class Jitted:
    """Equal to all of its class; it keeps its jitted method once it is called."""

    def __init__(self) -> None:
        self.by = 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Jitted)

    def __hash__(self) -> int:
        return 1

    @sw.jit
    def scaled(self, x: Any) -> Any:
        return x * self.by


class Named:
    """Equal by its name, whatever its scale."""

    def __init__(self, name: str, scale: Any) -> None:
        self.name, self.scale = name, scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def scaled(self, x: Any) -> Any:
        return x * self.scale


class Plain:
    """Equal to itself only."""

    def scaled(self, x: Any) -> Any:
        return x


class Word(str):
    """Text with an attribute."""

    note: Any = None


class Number(float):
    """A float of a class of its own."""


class Precise(Decimal):
    """A number whose class hides it, with an attribute."""

    note: Any = None


class Level(enum.IntEnum):
    ONE = 1


class Shade(enum.Enum):
    RED = 1
    DARK = 2


class Mode(enum.StrEnum):
    FAST = "fast"


class AlwaysEqual:
    """Equal to anything."""

    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def noted(kind: type[Any], value: Any, note: Any) -> Any:
    made = kind(value)
    made.note = note
    return made


def scale(x: Any, by: Any = 1, of: Any = 0) -> Any:
    return x * by + of


def closure(n: Any) -> Any:
    return lambda x: x * n


NAN = float("nan")
PAYLOAD = np.uint64(0x7FF8000000000001).view(np.float64).item()
PLAIN = Plain()
VENUS, MARS = Named("a", 1), Named("a", 2)

APART: dict[str, tuple[Any, ...]] = {
    "numbers": (1, 1.0, True, np.int64(1), np.float64(1), np.True_, Level.ONE, 1 + 0j),
    "nothing": (0, 0.0, -0.0, False, None, "", (), b"", complex(0.0, -0.0), complex(-0.0, 0.0)),
    "in a tuple": ((1,), (1.0,), (True,), ((1,),), (0.0,), (-0.0,), ("1",), (np.int32(1),)),
    "named tuples": (Pair(1), Other(1), Pair(1.0), (1, 0), Pair(1, False), Pair(1, -0.0)),
    "named tuples with more": (noted(WithMore, 1, 2), noted(WithMore, 1, 2.0), Pair(1)),
    "dataclasses": (Config(1), Config(1.0), Config(1, -0.0), Config(1, 0.0), Config(True)),
    "fields that are not compared": (Config(1, unseen=1), Config(1, unseen=2), Config(1)),
    "with slots": (Slotted(1), Slotted(1.0), Slotted((1,)), Slotted((True,)), Slotted(Slotted(1))),
    "that may change": (Open(1), Open(1.0), Open((0.0,)), Open((-0.0,))),
    "that compute": (Computing(1), Computing(1.0), Computing(True)),
    "inside of others": (Config(Pair((1,))), Config(Pair((1.0,))), Config(Pair(Config(1)))),
    "an == of their own": (VENUS, MARS, Named("a", 1.0), Named("a", True)),
    "in a tuple with an ==": ((VENUS,), (MARS,), (Named("a", 1.0), 1), (Named("a", 1.0), 1.0)),
    "equal to anything": (AlwaysEqual(1), AlwaysEqual(1.0), AlwaysEqual(Plain())),
    "equal to themselves": (Plain(), Plain(), Plain),
    "text": ("fast", Word("fast"), b"fast", Mode.FAST, np.str_("fast")),
    "text with attributes": (noted(Word, "a", 1), noted(Word, "a", 1.0), noted(Word, "a", "1")),
    "floats": (1.5, Number(1.5), np.float32(1.5), np.float16(1.5), np.longdouble(1.5)),
    "floats of another class": (Number(0.0), Number(-0.0), Number(NAN)),
    "zeros of NumPy": tuple(np.float32(s) * 0 for s in (1, -1)),
    "zeros with a part": (np.complex64(complex(0.0, 0.0)), np.complex64(complex(0.0, -0.0))),
    "long zeros": (np.longdouble(0.0), -np.longdouble(0.0)),
    "not a number": (NAN, -NAN, PAYLOAD, np.float32(NAN), math.inf),
    "times": (np.timedelta64(1, "s"), np.timedelta64(1000, "ms"), np.int64(1)),
    "widths": (np.int32(1), np.int64(1), np.uint8(1), np.longlong(1)),
    "members": (Level.ONE, Shade.RED, Shade.DARK, 1),
    "sets": (frozenset((1, 2)), frozenset((1.0, 2)), frozenset((True, 2)), frozenset((1,))),
    "ranges": (range(0), range(1, 1), range(0, 10, 3), range(0, 12, 3)),
    "decimals": (Decimal("1"), Decimal("1.0"), Decimal("-0"), Decimal("0"), Fraction(1)),
    "decimals with more": (noted(Precise, "1", 2), noted(Precise, "1", 3)),
    "instants": (
        datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    ),
    "dtypes": (np.dtype("f4"), np.dtype(">f4"), np.float32, "float32"),
    "functions": (scale, closure(1), closure(1), np.sum, math.sin, snp.sin),
    "partials": (
        functools.partial(scale, by=1),
        functools.partial(scale, by=1.0),
        functools.partial(scale, 1),
        functools.partial(scale, True),
        functools.partial(scale, by=1, of=2),
        functools.partial(scale, of=2, by=1),
    ),
    "methods": (VENUS.scaled, MARS.scaled, Plain().scaled, Plain().scaled),
    "methods of C": ("a".upper, "a".lower, Word("a").upper, np.add.reduce, (1).__add__),
}


@pytest.mark.parametrize("name", APART)
def test_what_differs_has_its_own_program(name: str) -> None:
    values = APART[name]
    seen: list[Any] = []
    numbers = count()

    def number(x: Any, s: Any) -> Any:
        seen.append(s)
        return snp.full((), next(numbers))

    f = sw.jit(number, static_argnames="s")
    for _ in range(3):
        assert [int(f(X, v)) for v in values] == list(range(len(values)))
    for value in reversed(values):
        assert seen[int(f(X, s=value))] is value
    assert len(seen) == len(values)


def made_twice(make: Callable[[], Any]) -> tuple[Callable[[], Any]]:
    return (make,)


EQUAL: dict[str, Callable[[], Any]] = {
    "int": lambda: 10**20,
    "float": lambda: float("1.25"),
    "nan": lambda: float("nan"),
    "nan in a tuple": lambda: (1, (float("nan"),)),
    "nan of NumPy": lambda: np.float32("nan"),
    "complex": lambda: complex(1, float("nan")),
    "text": lambda: "".join(["re", "lu"]),
    "text of another class": lambda: noted(Word, "a", (1, 2.0)),
    "bytes": lambda: bytes([1, 2]),
    "tuple": lambda: (1, 2.0, ("a", None), ..., np.int8(1)),
    "named tuple": lambda: Pair(1, (2.0,)),
    "named tuple with more": lambda: noted(WithMore, 1, 2),
    "dataclass": lambda: Config(1, (2.0, Pair(3))),
    "with slots": lambda: Slotted((1,)),
    "that may change": lambda: Open(1),
    "that computes": lambda: Computing(1),
    "with an array": lambda: Config(0, unseen=np.arange(5)),
    "with a list": lambda: Config(0, unseen=[1, {"a": (2,), "b": {3}}]),
    "an == of its own": lambda: Named("a", (1, 2)),
    "method": lambda: Named("a", 2).scaled,
    "method of one": lambda: PLAIN.scaled,
    "method of C": lambda: "a".upper,
    "partial": lambda: functools.partial(scale, by=1),
    "partial with two": lambda: functools.partial(scale, by=1, of=2),
    "set": lambda: frozenset(("a", 1)),
    "range": lambda: range(0, 10, 3),
    "decimal": lambda: Decimal("1.10"),
    "fraction": lambda: Fraction(1, 3),
    "instant": lambda: datetime.datetime(2026, 1, 1),
    "dtype": lambda: np.dtype([("a", "f4")]),
    "long double": lambda: np.longdouble(1) / 3,
    "time": lambda: np.timedelta64(1, "s"),
    "path": lambda: pathlib.PurePosixPath("a/b"),
    "pattern": lambda: re.compile("a+"),
    "deep": lambda: functools.reduce(lambda t, _: (t, Open(1)), range(20), ()),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_made_alike_shares_a_program(name: str) -> None:
    make = EQUAL[name]
    seen: list[Any] = []

    def once(x: Any, s: Any) -> Any:
        seen.append(s)
        return x + 1

    f: Any = sw.jit(once, static_argnames="s")
    for _ in range(3):
        np.testing.assert_array_equal(f(X, make()), X + 1)
    assert len(seen) == 1
    f._take_apart = None  # a call that leaves C fails
    np.testing.assert_array_equal(f(2 * X, make()), 2 * X + 1)
    assert key_of(make()) == key_of(make())


def test_a_nan_is_not_traced_again_and_again() -> None:
    seen: list[Any] = []
    f = sw.jit(lambda x, s: seen.append(s) or x * s, static_argnames="s")
    x = np.ones(2, np.float32)
    for _ in range(10):
        assert np.isnan(f(x, float("nan"))).all()
        assert np.isnan(f(x, np.float64("nan"))).all()
    assert len(seen) == 2


def test_results_are_those_of_the_value_itself() -> None:
    f = sw.jit(lambda x, s: x * s, static_argnames="s")
    kinds = [f(X, s).dtype for s in (1, 1.0, True, 1, 1.0)]
    assert kinds == [np.int64, np.float64, np.int64, np.int64, np.float64]
    x = np.ones(2, np.float32)
    signs = [bool(np.signbit(f(x, s)).all()) for s in (0.0, -0.0, 0.0, -0.0)]
    assert signs == [False, True, False, True]


def test_what_may_change_is_compared_as_it_is_now() -> None:
    for value in (Open(1), Named("a", 1)):
        name = "a" if isinstance(value, Open) else "scale"
        f = sw.jit(lambda x, s, n: x * getattr(s, n), static_argnames=("s", "n"))
        for factor in (1, 2, 3.0, 2, 1):
            setattr(value, name, factor)
            for _ in range(2):
                got = f(X, value, name)
                np.testing.assert_array_equal(got, X * factor)
                assert (got.dtype == np.int64) is isinstance(factor, int)


def test_a_default_that_may_change_is_compared_as_it_is_now() -> None:
    default = Open(1)
    f = sw.jit(lambda x, s=default: x * s.a, static_argnames="s")
    for factor in (1, 2, 1):
        default.a = factor
        np.testing.assert_array_equal(f(X), X * factor)


def test_a_value_that_the_trace_changes() -> None:
    def f(x: Any, s: Any) -> Any:
        s.a += 1
        return x * s.a

    jitted, value = sw.jit(f, static_argnames="s"), Open(1)
    np.testing.assert_array_equal(jitted(X, value), X * 2)  # leaves 2 behind
    np.testing.assert_array_equal(jitted(X, value), X * 3)
    np.testing.assert_array_equal(jitted(X, Open(1)), X * 2)


def test_static_more_and_named() -> None:
    seen: list[Any] = []
    numbers = count()

    def f(x: Any, *more: Any, **named: Any) -> Any:
        seen.append((more, dict(named)))
        return snp.full((), next(numbers))

    jitted = sw.jit(f, static_argnames=("more", "named"))
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        ((1,), {}),
        ((1.0,), {}),
        ((0.0, 1), {}),
        ((-0.0, 1), {}),
        ((), {"a": 1}),
        ((), {"a": True}),
        ((), {"a": 1, "b": 2}),
        ((), {"b": 2, "a": 1}),
    ]
    for _ in range(3):
        assert [int(jitted(X, *a, **k)) for a, k in calls] == list(range(len(calls)))
    assert [list(k.items()) for _, k in seen] == [list(k.items()) for _, k in calls]
    with pytest.raises(TypeError, match="the static argument 'named' must be hashable"):
        jitted(X, a=[1])


def test_keys_of_dicts_are_known_by_class() -> None:
    f = sw.jit(lambda p: [v * k for k, v in p.items()])
    for _ in range(3):
        for key in (1, 1.0, True):
            (got,) = f({key: X})
            assert got.dtype == (np.float64 if key.__class__ is float else np.int64)
    g = sw.jit(lambda p: [snp.full((), type(k) is str) for k in p])
    for _ in range(3):
        for key in ("fast", Mode.FAST, Word("fast"), "fast"):
            assert bool(g({key: X})[0]) is (type(key) is str)
        for keys in (("a", "fast"), ("a", Mode.FAST), (Word("a"), "fast")):
            assert [bool(v) for v in g(dict.fromkeys(keys, X))] == [type(k) is str for k in keys]


def test_unhashable_values_are_refused_by_name() -> None:
    f = sw.jit(lambda x, s: x, static_argnames="s")
    for value, advice in (
        ([1], "pass a tuple"),
        ({1}, "pass a frozenset"),
        ({"a": 1}, "pass a tuple, a NamedTuple or an object of a frozen dataclass"),
        (X, "an array is data: do not name it in static_argnames"),
        (([1],), "pass a tuple, a NamedTuple or an object of a frozen dataclass"),
    ):
        with pytest.raises(TypeError) as caught:
            f(X, value)
        assert str(caught.value).startswith("the static argument 's' must be hashable: unhash")
        assert str(caught.value).endswith(f"; {advice}")


def test_errors_of_attributes_are_the_callers() -> None:
    class Failing(Named):
        def __getattribute__(self, name: str) -> Any:
            if failing and name == "__dict__":
                raise ZeroDivisionError
            return super().__getattribute__(name)

    failing = False
    f = sw.jit(lambda x, s: x, static_argnames="s")
    f(X, Failing("a", 1))
    failing = True
    with pytest.raises(ZeroDivisionError):
        f(X, Failing("a", 1))


def test_without_the_extension_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load_extension", lambda: None)
    for name in ("numbers", "nothing", "dataclasses", "an == of their own"):
        test_what_differs_has_its_own_program(name)


def test_objects_that_hold_themselves() -> None:
    first, second = Open(1), Open(1)
    for each in (first, second):
        each.__class__.__hash__ = lambda self: 1  # a hash of its fields would never end
        each.a = (each,)
    assert key_of(first) == key_of(second)
    f = sw.jit(lambda x, s: x + 1, static_argnames="s")
    for each in (first, second):
        np.testing.assert_array_equal(f(X, each), X + 1)


def test_a_jitted_method_that_was_called_is_no_other_value() -> None:
    f, value = sw.jit(lambda value, x: value.scaled(x), static_argnames="value"), Jitted()
    for given in (value, value, Jitted()):
        assert f(given, np.ones(2)).tolist() == [2, 2]
    assert f.cache_info().traces == 1
