"""Every public name says what it takes and has an example, and the example is true."""

from __future__ import annotations

import doctest
import inspect
import re
from enum import EnumType
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest

import stepwell as sw
from stepwell.frontend.functions import Function
from stepwell.tools.reference import OF_JITTED

MODULES = ("debug", "lax", "nn", "nn.initializers", "optim", "random", "tree")
WITHOUT = {"CompileError", "TraceError", "float0"}
"""Exceptions, which are raised, and a dtype."""


def public() -> dict[str, Any]:
    found = {f"sw.{name}": getattr(sw, name) for name in sw.__all__ if name not in WITHOUT}
    found = {name: each for name, each in found.items() if not isinstance(each, ModuleType)}
    for module in MODULES:
        named = attrgetter(module)(sw)
        found |= {f"sw.{module}.{name}": getattr(named, name) for name in named.__all__}
    return found | {f"sw.jit.{name}": getattr(Function, name) for name in OF_JITTED}


PUBLIC = public()


def examples(value: Any) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")


def test_each_public_name_has_an_example() -> None:
    assert [name for name, value in PUBLIC.items() if not examples(value)] == []


def test_each_parameter_is_told_of() -> None:
    missing: list[str] = []
    for name, value in PUBLIC.items():
        words = set(re.findall(r"\w+", inspect.getdoc(value) or ""))
        if name == "sw.Compiled" or isinstance(value, EnumType):  # made by others, or by its name
            continue
        told = set(inspect.signature(value).parameters) - {"self", "args", "kwargs"}
        missing += [f"{name}({each})" for each in sorted(told - words)]
    assert missing == []


def test_what_follows_others_names_them() -> None:
    others = ("sw.nn.", "sw.lax.", "sw.random.", "sw.optim.")
    followed = {n: v for n, v in PUBLIC.items() if n.startswith(others)}
    missing = [name for name, v in followed.items() if "source : " not in (inspect.getdoc(v) or "")]
    assert missing == []


def wrapped() -> list[str]:
    """Return what pytest does not find in its module: a decorator of another module made it."""
    return [
        name
        for name, value in PUBLIC.items()
        if inspect.isfunction(value) and value.__globals__["__name__"] != value.__module__
    ]


@pytest.mark.parametrize("name", wrapped())
def test_examples_of_wrapped_functions(name: str) -> None:
    found = doctest.DocTest(examples(PUBLIC[name]), {}, name, None, None, None)
    assert doctest.DocTestRunner().run(found).failed == 0
