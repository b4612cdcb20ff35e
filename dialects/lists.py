"""Parse lists of plain numbers at once: token by token, a million elements take a minute.

The results equal those of xDSL's parser; it parses everything that is not plain, errors included.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

SHORTEST = 64
"""Length in characters below which a list is left to xDSL's parser."""
_INTEGER = r"-?(?:0|[1-9]\d{0,17})"
_FLOAT = r"-?\d{1,17}\.\d{1,17}(?:[eE][-+]?\d\d?)?"
_TYPED = rf"({_FLOAT}|{_INTEGER})(?:\s*:\s*(i8|i16|i32|i64|index|f32|f64)\b)?"
_ATTRIBUTES = re.compile(rf"\[\s*({_TYPED}(?:\s*,\s*{_TYPED})*+)\s*\]", re.ASCII)
_EACH = re.compile(_TYPED, re.ASCII)
_ELEMENTS = re.compile(r"<\s*(\[[][\d\s,.eE+-]{64,}\])\s*>\s*:", re.ASCII)
_ARRAY = re.compile(r"<\s*(i8|i16|i32|i64|f32|f64)\s*:([\d\s,.eE+-]++)>", re.ASCII)
_NO_POINT = re.compile(r"(?<![\d.])\d++[eE]")
_LARGE = re.compile(r"[eE][-+]?\d{3}")
_INTEGERS: dict[str, IntegerType | IndexType] = {
    "index": IndexType(),
    **{f"i{width}": IntegerType(width) for width in (8, 16, 32, 64)},
}
_FLOATS: dict[str, AnyFloat] = {"f32": Float32Type(), "f64": Float64Type()}

Numbers: TypeAlias = list[int] | list[float]


def attributes_at(text: str, position: int) -> tuple[Attribute, int] | None:
    """Return the list of numbers at ``position``, ``[1, 2 : i32, 0.5]``, and its end."""
    if text.find("]", position, position + SHORTEST) >= 0:
        return None
    match = _ATTRIBUTES.match(text, position)
    if match is None:
        return None
    created: dict[tuple[str, str], Attribute | None] = {}
    found: list[Attribute] = []
    for key in _EACH.findall(match[1]):
        if key not in created:
            created[key] = _number(*key)
        attribute = created[key]
        if attribute is None:
            return None
        found.append(attribute)
    return ArrayAttr(found), match.end()


def _number(text: str, kind: str) -> Attribute | None:
    """Return a number as an attribute; None if the type does not fit it."""
    if "." in text:
        return FloatAttr(float(text), _FLOATS[kind or "f64"]) if kind in ("", *_FLOATS) else None
    integer = _INTEGERS.get(kind or "i64")
    value = int(text)
    return _integer(value, integer) if integer and fits([value], integer) else None


def _integer(value: int, kind: IntegerType | IndexType) -> Attribute:
    """Build a valid attribute without its verifier, which would take most of the time."""
    number, created = object.__new__(IntAttr), object.__new__(IntegerAttr)
    object.__setattr__(number, "data", value)
    object.__setattr__(created, "value", number)
    object.__setattr__(created, "type", kind)
    return created


def _json_lists(text: str) -> Any:
    """Return lists whose syntax is the same in JSON and MLIR; None for others."""
    if _NO_POINT.search(text) or _LARGE.search(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def elements_at(text: str, position: int) -> tuple[list[int], Numbers, int] | None:
    """Return shape and numbers of ``<[[1, 2], [3, 4]]> :``, and its end."""
    match = _ELEMENTS.match(text, position)
    values: Any = None if match is None else _json_lists(match[1])
    if match is None or values is None:
        return None
    shape: list[int] = []
    while values and isinstance(values[0], list):
        shape.append(len(values))
        length = len(values[0])
        if any(not isinstance(each, list) or len(each) != length for each in values):
            return None
        values = [each for inner in values for each in inner]
    if not values or {*map(type, values)} not in ({int}, {float}):
        return None
    rest = len(values)
    for size in shape:
        rest //= size
    return [*shape, rest], values, match.end()


def array_at(text: str, position: int) -> tuple[Any, Numbers, int] | None:
    """Return type and numbers of ``<i32: 1, 2>``, and its end."""
    match = _ARRAY.match(text, position)
    values: Any = None if match is None else _json_lists(f"[{match[2]}]")
    if match is None or not values:
        return None
    kind: Any = _INTEGERS.get(match[1]) or _FLOATS[match[1]]
    return (kind, values, match.end()) if fits(values, kind) else None


def fits(values: Numbers, kind: Any) -> bool:
    """Whether all values are plain numbers of a type and within its range."""
    kinds = {*map(type, values)}
    if isinstance(kind, AnyFloat):
        return kinds == {float}
    if kinds != {int}:
        return False
    if isinstance(kind, IndexType):
        return min(values) >= -(2**63) and max(values) < 2**63
    if not isinstance(kind, IntegerType) or kind.width.data < 8 or kind.width.data > 64:
        return False
    if kind.signedness.data is Signedness.UNSIGNED:
        return min(values) >= 0 and max(values) < 2**kind.width.data
    limit = 2 ** (kind.width.data - 1)
    return -limit <= min(values) and max(values) < limit
