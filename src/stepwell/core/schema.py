"""Readers of JSON from files: they accept the specified form and refuse all others.

A reader takes a value and its place in the file ("arguments[0].shape") and returns it in the form
the program uses, with lists as tuples; ValueError states the expected form. Readers bound the
length, magnitude and depth of everything they accept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from stepwell.core.escape import quoted

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any, str], T]

LONGEST_TEXT = 1 << 20
"""Maximum characters of a name."""
LONGEST_LIST = 1 << 16
"""Maximum elements of a list: a program with more arguments would overflow the stack."""
LARGEST = 1 << 62
"""The largest valid number: sizes, strides and bytes all stay below it."""


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object of a text; ValueError or RecursionError if it is not one."""
    found: Any = json.loads(text, parse_constant=_no_number)
    if not isinstance(found, dict):
        raise ValueError(f"it holds {shown(found)}, not an object")
    return cast(dict[str, Any], found)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def wrong(place: str, expected: str, value: Any) -> ValueError:
    """Return the error for an invalid value.

    >>> wrong("arguments[0].dtype", "a dtype", "f33").args[0]
    "arguments[0].dtype must be a dtype, not 'f33'"
    """
    return ValueError(f"{place or 'it'} must be {expected}, not {shown(value)}")


def shown(value: Any) -> str:
    """Spell a value for a message, shortened."""
    match value:
        case dict():
            return "an object"
        case list():
            found = cast(list[Any], value)
            plain = len(found) <= 8 and not any(isinstance(each, list | dict) for each in found)
            return json.dumps(found)[:60] if plain else f"a list of {len(found)}"
        case str():
            return f"'{quoted(value, 40)}'"
        case _:
            return json.dumps(value)[:40]


def whole(least: int = 0, most: int = LARGEST) -> Reader[int]:
    """Return a reader of integers within bounds."""
    bounds = f"a whole number from {least:,} to {most:,}"

    def read(value: Any, place: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise wrong(place, bounds, value)
        return value

    return read


def text(longest: int = LONGEST_TEXT) -> Reader[str]:
    """Return a reader of texts of up to ``longest`` characters."""

    def read(value: Any, place: str) -> str:
        if type(value) is not str or len(value) > longest:
            raise wrong(place, f"a text of {longest:,} letters at most", value)
        return value

    return read


def flag(value: Any, place: str) -> bool:
    """Read true or false."""
    if type(value) is not bool:
        raise wrong(place, "true or false", value)
    return value


def choice(*known: str) -> Reader[str]:
    """Return a reader of one of some names."""

    def read(value: Any, place: str) -> str:
        if type(value) is not str or value not in known:
            raise wrong(place, f"one of {', '.join(known)}", value)
        return value

    return read


def maybe(reader: Reader[T]) -> Reader[T | None]:
    """Return a reader that accepts null as well as the values that ``reader`` accepts."""
    return lambda value, place: None if value is None else reader(value, place)


def listed(reader: Reader[T], least: int = 0, most: int = LONGEST_LIST) -> Reader[tuple[T, ...]]:
    """Return a reader of lists of ``least`` to ``most`` elements."""

    def read(value: Any, place: str) -> tuple[T, ...]:
        if type(value) is not list or not least <= len(cast(list[Any], value)) <= most:
            raise wrong(place, f"a list of {least:,} to {most:,} elements", value)
        found = cast(list[Any], value)
        return tuple(reader(each, f"{place}[{k}]") for k, each in enumerate(found))

    return read


def fields(known: Mapping[str, Reader[Any]]) -> Reader[dict[str, Any]]:
    """Return a reader of objects with exactly these fields."""

    def read(value: Any, place: str) -> dict[str, Any]:
        if type(value) is not dict:
            raise wrong(place, "an object", value)
        found = cast(dict[str, Any], value)
        if found.keys() != known.keys():
            check_names(found, known, place)
        dot = f"{place}." if place else ""
        return {name: reader(found[name], dot + name) for name, reader in known.items()}

    return read


def check_names(found: Mapping[str, Any], known: Mapping[str, Any], place: str) -> None:
    """Raise an error that names a missing or unknown field."""
    where = place or "it"
    for name in known:
        if name not in found:
            raise ValueError(f"{where} has no '{name}'")
    for name in found:
        if name not in known:
            raise ValueError(f"{where} has '{quoted(name, 40)}', which is no field of it")
