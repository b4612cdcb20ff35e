"""Types, properties and locations as generic textual IR."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any, TypeAlias

from stepwell.core.dtypes import DType
from stepwell.core.escape import literal
from stepwell.core.shapes import DYNAMIC, Shape


class Verbatim(str):
    """An attribute that is already IR text."""

    __slots__ = ()


def type_text(kind: DType, shape: Shape) -> str:
    """Return a tensor type as text.

    >>> from stepwell.core.dtypes import DTYPES
    >>> type_text(DTYPES["f32"], (2, 3))
    'tensor<2x3xf32>'
    """
    sizes = "".join("?x" if n == DYNAMIC else f"{n}x" for n in shape)
    return f"tensor<{sizes}{kind.name}>"


def fresh_name(taken: dict[str, int], stem: str) -> str:
    """Return an unused value name made from ``stem``, and mark it as used.

    taken : each name, and the last number appended to it

    >>> taken: dict[str, int] = {}
    >>> [fresh_name(taken, stem) for stem in ("add_1", "add", "add", "2 x")]
    ['%add_1', '%add', '%add_2', '%v2_x']
    """
    stem = re.sub(r"\W", "_", stem, flags=re.ASCII) or "v"
    name = stem = stem if not stem[0].isdigit() else f"v{stem}"
    while name in taken:
        taken[stem] += 1
        name = f"{stem}_{taken[stem]}"
    taken[name] = 0
    return f"%{name}"


def properties_text(properties: Mapping[str, Any]) -> str:
    """Return properties as text; None and False are omitted, True is a unit attribute.

    >>> properties_text({"axis": 1, "reverse": True, "eps": 1e-05, "axes": (0, 2)})
    ' <{axis = 1 : i64, reverse, eps = 1.0e-05 : f64, axes = array<i64: 0, 2>}>'
    """
    parts = [_entry(k, v) for k, v in properties.items() if v is not None and v is not False]
    return f" <{{{', '.join(parts)}}}>" if parts else ""


def number_text(value: Any, kind: DType) -> str:
    """Return a finite number as an attribute.

    >>> from stepwell.core.dtypes import DTYPES
    >>> number_text(2.5, DTYPES["f32"]), number_text(True, DTYPES["i1"])
    ('2.5 : f32', 'true')
    """
    if kind.kind == "bool":
        return "true" if value else "false"
    return f"{float_text(value) if kind.kind == 'float' else value} : {kind.name}"


def _entry(key: str, value: Any) -> str:
    match value:
        case True:
            return key
        case Verbatim():
            return f"{key} = {value}"
        case str():
            return f"{key} = {literal(value)}"
        case int():
            return f"{key} = {value} : i64"
        case float():
            return f"{key} = {float_text(value)} : f64"
        case DType():
            return f"{key} = {value.name}"
        case _:
            numbers = ", ".join(map(str, value))
            return f"{key} = array<i64{': ' if numbers else ''}{numbers}>"


def float_text(value: float) -> str:
    """Return a float that parses to the same value; MLIR needs a point before the exponent."""
    text = repr(float(value))
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"


def location(frame: FrameType | None) -> str:
    """Return the source position of ``frame`` as the location of an op."""
    if frame is None:
        return ""
    at = _positions(frame.f_code)[frame.f_lasti // 2]
    line, column = at[0] or frame.f_lineno, (at[2] or 0) + 1
    return f" loc({literal(frame.f_code.co_filename)}:{line}:{column})"


_Positions: TypeAlias = "list[tuple[int | None, int | None, int | None, int | None]]"
_KNOWN: dict[int, tuple[CodeType, _Positions]] = {}
_MOST = 256
"""The most functions whose positions are cached."""


def _positions(code: CodeType) -> _Positions:
    """Return the source position of each instruction; it takes a walk over the whole code."""
    known = _KNOWN.get(id(code))
    if known is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        known = _KNOWN[id(code)] = code, list(code.co_positions())
    return known[1]
