"""Known processors and devices: the files of the folder ``machines``.

A file has one property of `Machine` per line, ``NAME = VALUE``, and the source of the figure after
a #. ``about`` describes the machine in one line. ``fits`` lists the identities of the processors
that the file describes: vendor, family and models, or implementer and parts of ARM. ``like`` lists
words of Linux's feature list: the file stands in for processors that have all of them and no file
of their own; the file with the most words wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

FOLDER = Path(__file__).with_name("machines")


class Known(NamedTuple):
    """A file: properties as ``NAME=VALUE``, and the processors it describes or stands in for."""

    name: str
    about: str
    properties: tuple[str, ...]
    fits: tuple[tuple[str, ...], ...]
    like: tuple[tuple[str, ...], ...]
    sources: tuple[tuple[str, str], ...]
    """Properties with the sources of their figures."""


@cache
def known_machines() -> Mapping[str, Known]:
    """Return the known machines, sorted by name."""
    paths = sorted(FOLDER.glob("*.txt"))
    return MappingProxyType({p.stem: parse(p.stem, p.read_text(encoding="utf-8")) for p in paths})


def parse(name: str, text: str) -> Known:
    """Read the text of a file; `Machine` defines its properties."""
    said: dict[str, list[str]] = {"about": [], "fits": [], "like": []}
    properties: list[str] = []
    sources: list[tuple[str, str]] = []
    for line in text.splitlines():
        content, _, source = line.partition("#")
        key, has_value, value = (part.strip() for part in content.partition("="))
        if not has_value:
            continue
        if key in said:
            said[key].append(value)
            continue
        properties.append(f"{key}={value}")
        if source.strip():
            sources.append((key, source.strip()))
    words = {key: tuple(tuple(each.split()) for each in said[key]) for key in ("fits", "like")}
    about = " ".join(said["about"])
    return Known(name, about, tuple(properties), words["fits"], words["like"], tuple(sources))


def fitting(identity: tuple[str, ...]) -> Known | None:
    """Return the file of a processor itself, None if there is none."""
    known = known_machines().values()
    return next((each for each in known if any(_fits(fit, identity) for fit in each.fits)), None)


def most_like(identity: tuple[str, ...], flags: Collection[str]) -> Known | None:
    """Return the file of a processor, or the one that stands in for it; None if there is none.

    identity : vendor, family and model, or implementer and part
    flags : its features, as Linux lists them, and the vendor
    """
    if (found := fitting(identity)) is not None:
        return found
    known, has = known_machines().values(), {*flags, *identity[:1]}
    alike = [(len(like), each) for each in known for like in each.like if has.issuperset(like)]
    return max(alike, key=lambda found: found[0])[1] if alike else None


def _fits(fit: tuple[str, ...], identity: tuple[str, ...]) -> bool:
    """Whether the last word of an identity is among those of a file, and the others are equal."""
    *first, last = fit
    *mine, model = identity or ("",)
    return first == mine and model in last.split(",")
