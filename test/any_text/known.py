"""What may differ between a module and what mlir-opt reads of ours: in form, never in meaning.

Each difference is made away with in both texts before they are compared again; one that is not here
is told as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

OURS = frozenset({"acme", "kernel", "nd", "testing"})
"""Dialects that only Stepwell and its tests have."""
XDSL = frozenset(
    {
        *("accfg", "air", "arm", "arm_func", "bigint", "comb", "csl", "csl_stencil"),
        *("csl_wrapper", "dmp", "ematch", "equivalence", "eqsat_pdl_interp", "fir", "fsm"),
        *("hlfir", "hls", "hw", "ltl", "math_xdsl", "memref_stream", "mod_arith", "polynomial"),
        *("printf", "ptr_xdsl", "riscv", "rv32", "rv64", "riscv_cf", "riscv_debug", "riscv_func"),
        *("riscv_scf", "riscv_snitch", "seq", "snitch", "snitch_stream", "snrt", "stencil"),
        *("symref", "test", "varith", "wasm", "x86", "x86_cf", "x86_func", "x86_scf"),
    }
)
"""Dialects of xDSL that mlir-opt has not: it reads their generic form only."""
_FOREIGN = "|".join(sorted(OURS | XDSL))
_NOT_FOUND = re.compile(r"Dialect `(\w+)' not found for custom op")
_COMMUTES = re.compile(r'("arith\.(?:add|mul|maximum|max)\w+")\((%[\w#]+), (%[\w#]+)\)')
_OP = re.compile(rf'\s*(?:%[^"]*= )?"(?:{_FOREIGN})\.')
_OPAQUE = re.compile(rf"[#!](?:{_FOREIGN})(?=[.<])")
_OF_TYPE = re.compile(rf" : !(?:{_FOREIGN})(?=[.<])")
_MAP = re.compile(r"affine_map<[^>]*->.*?\)>")
_POINTS = ((3, 5, 7, 11, 13, 17, 19, 23), (29, 2, 31, 1, 37, 8, 41, 6))


@dataclass(frozen=True)
class Known:
    """One difference of form."""

    what: str
    why: str
    without: Callable[[str], str]
    """Makes away with it in a module in generic form."""


def _dropped(pattern: str) -> Callable[[str], str]:
    made = re.compile(pattern)
    return lambda text: made.sub("", text)


def _in_order(text: str) -> str:
    """Sort the operands of what commutes."""

    def ordered(match: re.Match[str]) -> str:
        low, high = sorted(match.groups()[1:])
        return f"{match[1]}({low}, {high})"

    return _COMMUTES.sub(ordered, text)


@cache
def _values(text: str) -> str:
    """Return what an affine map is at a few points."""
    try:
        map = Parser(Context(), text).parse_attribute()
    except (ParseError, NotImplementedError):
        return text
    assert isinstance(map, AffineMapAttr)
    dims, symbols = map.data.num_dims, map.data.num_symbols
    if dims + symbols > len(_POINTS[0]):
        return text
    found = [map.data.eval(p[:dims], p[dims : dims + symbols]) for p in _POINTS]
    return f"affine_map<{dims} {symbols} {found}>"


def _evaluated(text: str) -> str:
    return _MAP.sub(lambda match: _values(match[0]), text)


def _parts(text: str) -> Iterator[str]:
    """Split at commas outside of brackets and strings."""
    depth, first, quoted = 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted:
            arrow = text[at - 1 : at + 1] == "->"
            depth += (letter in "([{<") - (letter in ")]}>" and not arrow)
            if letter == "," and not depth:
                yield text[first:at].strip()
                first = at + 1
    yield text[first:].strip()


def _together(row: str, properties: str) -> str:
    """Add properties to the attributes of a row, in order of their names."""
    begin, end = row.find(" {"), row.rfind("} : ")
    attributes = row[begin + 2 : end] if 0 <= begin < end else ""
    rest = row[:begin] + row[end + 1 :] if attributes else row
    both = sorted(filter(None, (*_parts(properties), *_parts(attributes))))
    return f"{rest} {both}" if both else rest


def _as_attributes(text: str) -> str:
    """Make attributes of the properties of ops that mlir-opt does not know."""
    rows: list[str] = []
    opened: list[str | None] = []
    for row in text.split("\n"):
        properties: str | None = None
        if _OP.match(row):
            begin, end = row.find(" <{"), row.rfind("}>")
            properties = row[begin + 3 : end] if 0 <= begin < end else ""
            row = row[:begin] + row[end + 2 :] if properties else row
        if row.endswith("({"):
            opened.append(properties)
        elif row.lstrip().startswith("})") and opened:
            properties = opened.pop()
            row = row if properties is None else _together(row, properties)
        elif properties is not None:
            row = _together(row, properties)
        rows.append(row)
    return "\n".join(rows)


def _without_opaque(text: str) -> str:
    """Leave the dialect only of attributes and types that mlir-opt does not know."""
    pieces: list[str] = []
    at = 0
    for match in _OPAQUE.finditer(text):
        if match.start() < at:
            continue
        pieces.append(text[at : match.end()])
        at = _end(text, match.end())
        if (type := _OF_TYPE.match(text, at)) is not None:
            at = _end(text, type.end())
    return "".join((*pieces, text[at:]))


def _end(text: str, at: int) -> int:
    """Return where an attribute or type ends whose dialect ends at ``at``."""
    depth = 0
    while at < len(text):
        letter = text[at]
        arrow = text[at - 1 : at + 1] == "->"
        depth += (letter in "([{<") - (letter in ")]}>" and not arrow)
        if depth < 0 or (not depth and not (letter.isalnum() or letter in "._>")):
            return at
        at += 1
        if not depth and letter == ">":
            return at
    return at


KNOWN: Sequence[Known] = (
    Known(
        "nontemporal = false",
        "it is the default: mlir-opt keeps it where a text says it, xDSL's custom form leaves it out",
        _dropped(r" <\{nontemporal = false\}>|, nontemporal = false|nontemporal = false, "),
    ),
    Known(
        "unnamed_addr = 0",
        "it is the default: custom form gives it to functions and globals, generic form may not",
        _dropped(r"unnamed_addr = 0 : i64, |, unnamed_addr = 0 : i64"),
    ),
    Known(
        "order in bodies",
        "xDSL adds what is there to the product, mlir-opt the product to what is there: the same bits",
        _in_order,
    ),
    Known(
        "affine maps",
        "xDSL multiplies sums out as it reads them, mlir-opt does not: the same numbers",
        _evaluated,
    ),
    Known(
        "properties of xDSL's ops",
        "mlir-opt has no such op: to it a property is what stands in <{}>, whatever xDSL declares",
        _as_attributes,
    ),
    Known(
        "attributes of xDSL's dialects",
        "mlir-opt repeats their letters, it does not read them; we print them anew",
        _without_opaque,
    ),
)


def reasons(want: str, got: str) -> list[str] | None:
    """Return the known differences that tell two modules apart; None if there are others."""
    found: list[str] = []
    for known in KNOWN:
        less, ours = known.without(want), known.without(got)
        if _rows_apart(less, ours) < _rows_apart(want, got):
            want, got = less, ours
            found.append(known.what)
        if want.strip() == got.strip():
            return found
    return None


def _rows_apart(want: str, got: str) -> int:
    """Count the rows in which two modules differ; their lengths, where they have other ones."""
    one, other = want.strip().split("\n"), got.strip().split("\n")
    if len(one) != len(other):
        return len(one) + len(other)
    return sum(a != b for a, b in zip(one, other, strict=True))


def is_foreign(said: str) -> bool:
    """Whether mlir-opt refuses custom form because only xDSL or Stepwell has the dialect."""
    match = _NOT_FOUND.search(said)
    return match is not None and match[1] in XDSL | OURS
