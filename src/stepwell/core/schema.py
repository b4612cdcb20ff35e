"""What JSON from a file must be like: readers that take what they know and refuse all else.

A reader gets a value and its place in the file ("arguments[0].shape") and returns it as the program
works with it, lists as tuples; ValueError says in one sentence what the place must hold. Nothing
that a reader lets through is longer, larger or deeper than it says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from stepwell.core.escape import quoted

T = TypeVar("T")
Reader: TypeAlias = Callable[[Any, str], T]

LONGEST_TEXT = 1 << 20
"""Letters of a name."""
LONGEST_LIST = 1 << 16
"""Elements of a list: programs with as many arguments would need the whole stack for them."""
LARGEST = 1 << 62
"""The largest number there is a use for: sizes, strides and bytes all stay below it."""


def parsed(text: str) -> dict[str, Any]:
    """Return the object that a text holds; ValueError where it holds none, or RecursionError."""
    found: Any = json.loads(text, parse_constant=_no_number)
    if not isinstance(found, dict):
        raise ValueError(f"it holds {shown(found)}, not an object")
    return cast(dict[str, Any], found)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def wrong(place: str, expected: str, value: Any) -> ValueError:
    """Return the error for a value that is not what it must be.

    >>> wrong("arguments[0].dtype", "a dtype", "f33").args[0]
    "arguments[0].dtype must be a dtype, not 'f33'"
    """
    return ValueError(f"{place or 'it'} must be {expected}, not {shown(value)}")


def shown(value: Any) -> str:
    """Spell a value for a message, however long it is."""
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
    """Read a whole number within bounds."""
    bounds = f"a whole number from {least:,} to {most:,}"

    def read(value: Any, place: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise wrong(place, bounds, value)
        return value

    return read


def text(longest: int = LONGEST_TEXT) -> Reader[str]:
    """Read a text of so many letters."""

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
    """Read one of some names."""

    def read(value: Any, place: str) -> str:
        if type(value) is not str or value not in known:
            raise wrong(place, f"one of {', '.join(known)}", value)
        return value

    return read


def maybe(reader: Reader[T]) -> Reader[T | None]:
    """Read null, or what ``reader`` does."""
    return lambda value, place: None if value is None else reader(value, place)


def listed(reader: Reader[T], least: int = 0, most: int = LONGEST_LIST) -> Reader[tuple[T, ...]]:
    """Read a list of between ``least`` and ``most`` elements."""

    def read(value: Any, place: str) -> tuple[T, ...]:
        if type(value) is not list or not least <= len(cast(list[Any], value)) <= most:
            raise wrong(place, f"a list of {least:,} to {most:,} elements", value)
        found = cast(list[Any], value)
        return tuple(reader(each, f"{place}[{k}]") for k, each in enumerate(found))

    return read


def fields(known: Mapping[str, Reader[Any]]) -> Reader[dict[str, Any]]:
    """Read an object that has these fields and no others."""

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
    """Say which field is missing, or is none."""
    where = place or "it"
    for name in known:
        if name not in found:
            raise ValueError(f"{where} has no '{name}'")
    for name in found:
        if name not in known:
            raise ValueError(f"{where} has '{quoted(name, 40)}', which is no field of it")
