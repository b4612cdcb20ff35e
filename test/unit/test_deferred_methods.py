"""Dataclasses with deferred methods behave as all others, and replace the methods at first use."""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
from copy import copy
from typing import Any

import pytest

from stepwell.core.deferred_methods import deferred_methods


def defined(**options: Any) -> Any:
    """Return a dataclass, a subclass of it, and a subclass that inherits its methods."""
    kind = dataclasses.make_dataclass(
        "Kind", [("x", int), ("y", Any, dataclasses.field(default=2, compare=False))], **options
    )
    more = dataclasses.make_dataclass("More", [("z", int, 3)], bases=(kind,), **options)
    return kind, more, type("Plain", (kind,), {})


def said(kinds: Any, frozen: bool) -> list[str]:
    """Return what all generated methods do with a few objects."""
    found: list[str] = []
    made = [kind(*given) for kind in kinds for given in ((1,), (1, 4), (2,))]
    made[1].__dict__["y"] = made[1]  # an object that contains itself
    for one in made:
        found += [
            re.sub("0x.*", "", repr(one)),
            type(one).__doc__ or "",
            str(dataclasses.fields(one)),
        ]
        found += [str([one == other for other in [*made, 1]])]
        for act in (hash, lambda one: setattr(one, "x", 5), lambda one: delattr(one, "x")):
            try:
                found.append(str(act(copy(one))))
            except (TypeError, AttributeError) as error:
                found.append(f"{type(error).__name__}: {error}")
        if frozen:
            found.append(str(dataclasses.replace(one, x=7)))
    return found


OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"unsafe_hash": True},
    {"order": True},
    {"repr": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_behave_as_others(options: dict[str, bool]) -> None:
    with deferred_methods():
        deferred = defined(**options)
    frozen = options.get("frozen", False)
    assert said(deferred, frozen) == said(defined(**options), frozen)


def test_slots() -> None:
    with deferred_methods():
        kind = dataclasses.make_dataclass("Kind", ["x"], frozen=True, slots=True)
    assert kind(1) == kind(1) and hash(kind(1)) == hash(kind(1)) and repr(kind(1)) == "Kind(x=1)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        kind(1).x = 2


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="compiles a class's methods at once")
def test_a_method_is_generated_once() -> None:
    with deferred_methods():
        kind = dataclasses.make_dataclass("Kind", ["x"])
        below = type("Below", (kind,), {})
    deferred = vars(kind)["__eq__"]
    assert below(1) == below(1)
    generated = vars(kind)["__eq__"]
    assert generated is not deferred and "__eq__" not in vars(below)
    assert generated.__qualname__ == deferred.__qualname__ == "Kind.__eq__"
    assert deferred(kind(1), kind(2)) is False  # one that was read before
    assert vars(kind)["__eq__"] is generated


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="compiles a class's methods at once")
def test_only_inside_the_context() -> None:
    eager = vars(dataclasses)["_create_fn"]
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with deferred_methods():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with deferred_methods():
        thread.start()
        assert inside.wait(10)
    assert vars(dataclasses)["_create_fn"] is not eager
    leave.set()
    thread.join()
    assert vars(dataclasses)["_create_fn"] is eager
    with pytest.raises(KeyError), deferred_methods():
        raise KeyError
    assert vars(dataclasses)["_create_fn"] is eager
