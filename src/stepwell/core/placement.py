"""The placement of a pass in the pipeline, as text.

A placement is text: ``PASS{option=3}@before:ANCHOR``. An anchor is a pass of the pipeline
(``nd-to-linalg``), a pass of one stage (``structured/cse``), a stage (``after:kernels`` is its end)
or another placed pass. Further relations give the order among placed passes:
``acme-fuse@before:nd-to-linalg,after:beta-fold?``; one that ends in ``?`` may be absent.

Rationale: docs/notes/035-passes-in-the-pipeline.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic

_SHAPE = re.compile(r"(?P<name>[\w.-]+)(?P<options>\{[^{}]*\})?\s*@(?P<relations>[^@]+)")
_RELATION = re.compile(r"(?P<side>before|after):(?P<anchor>[\w./-]+)(?P<optional>\?)?")


@dataclass(frozen=True)
class Relation:
    """One ``before:ANCHOR`` or ``after:ANCHOR``."""

    side: str
    anchor: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.side}:{self.anchor}{'?' * self.optional}"


@dataclass(frozen=True)
class Placement:
    """A pass with its options, and its position."""

    name: str
    options: str
    relations: tuple[Relation, ...]
    owner: str = ""
    """The package that provides the pass; "" if the caller requested it."""
    kind: Any = None
    """The class of the pass if the caller has it, so that no package need be searched."""

    @property
    def element(self) -> str:
        """The pass in pipeline syntax."""
        return self.name + self.options

    def __str__(self) -> str:
        return f"{self.element}@{','.join(map(str, self.relations))}"


def parse_placement(text: str, owner: str = "") -> Placement:
    """Read ``PASS{options}@before:ANCHOR``; raise `CompileError` if it is malformed.

    >>> print(parse_placement("acme-fuse{width=4}@before:nd-to-linalg"))
    acme-fuse{width=4}@before:nd-to-linalg
    """
    found = _SHAPE.fullmatch(text.strip())
    relations = found["relations"].split(",") if found else ()
    read = [_RELATION.fullmatch(each.strip()) for each in relations]
    if found is None or None in read:
        by = f" of {owner}" if owner else ""
        raise _error(
            f"'{text}'{by} does not say which pass stands where",
            "write PASS@before:ANCHOR or PASS@after:ANCHOR, as in acme-fuse@before:nd-to-linalg",
        )
    sides = [Relation(r["side"], r["anchor"], r["optional"] is not None) for r in read if r]
    if sides[0].optional:
        raise _error(
            f"'{text}': the first anchor is where the pass stands and cannot be optional",
            "name a pass of the pipeline first, then the optional anchor",
        )
    return Placement(found["name"], found["options"] or "", tuple(sides), owner)


def parse_placements(texts: Sequence[Any]) -> tuple[Placement, ...]:
    """Read the caller's placements, objects or text."""
    if isinstance(texts, str):
        raise TypeError(f"passes must be a list of placements, got the text {texts!r}")
    return tuple(t if isinstance(t, Placement) else parse_placement(str(t)) for t in texts)


def elements(pipeline: str) -> list[str]:
    """Return the elements of a pipeline with their options.

    >>> elements("cse,schedule{a=1,2 b},dce")
    ['cse', 'schedule{a=1,2 b}', 'dce']
    """
    return [e for e in re.split(r",(?![^{}]*\})", pipeline) if e]


def name_of(element: str) -> str:
    """Return the name of the pass of an element of a pipeline."""
    return element.partition("{")[0]


def _error(message: str, help: str) -> CompileError:
    return CompileError(Diagnostic("error", message, help=help))
