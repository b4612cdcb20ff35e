"""Escape text from a program for its destination: comments, names of functions, variables.

All text of a module, trace or file (locations, names of functions, arguments, weights) goes through
one of these functions on its way into C, OpenCL C, a header or a table. JSON escapes by itself, and
no name of a program is part of a path.
"""

from __future__ import annotations

import re

from stepwell.core.hashing import sha256

LONGEST = 120
"""Maximum characters shown of a name: some compilers fail beyond a few thousand."""
SUFFIXES = ("shapes", "arena", "constants", "checks")
"""The suffixes of the names of functions that belong to an entry."""

_PLAIN = re.compile(r"(?!/)[\w .,:;()\[\]{}<>=+@$#&|!^~'\"`/-]*(?<!/)", re.ASCII)
_UNSAFE = re.compile(r"[%\\]|[^ -~]|^[*?/]|[*?/]\Z|(?<=\*)/|(?<=/)\*|(?<=\?)\?")
_NOT_LITERAL = re.compile(r"[\x00-\x1f\x7f\"\\]")
_OWNED = "|".join(SUFFIXES)
_SUFFIX = re.compile(rf"(.*)\.({_OWNED})", re.DOTALL)
_UNFIT = re.compile(rf"[^A-Za-z0-9_]|_(?=0x)|_(?=(?:{_OWNED})\Z)")


def quoted(text: str, longest: int = LONGEST) -> str:
    r"""Return ``text`` escaped for comments, on one line; the result is unique for the text.

    Printable characters stay. Characters that end a line, begin or end a comment, or join two lines
    become percent-encoded UTF-8; a digest of the whole replaces the middle of a long text.

    >>> quoted("dir/model.mlir"), quoted("a\n*/ b\\"), quoted("50%")
    ('dir/model.mlir', 'a%0A*%2F b%5C', '50%25')
    >>> len(quoted("x" * 5000))
    120
    """
    if len(text) > longest:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        kept = (longest - len(digest) - 2) // 2
        return f"{_escaped(text[:kept])}%~{digest}{_escaped(text[-kept:])}"
    return text if _PLAIN.fullmatch(text) else _escaped(text)


def _escaped(text: str) -> str:
    return _UNSAFE.sub(_as_bytes, text)


def _as_bytes(found: re.Match[str]) -> str:
    letter = found[0]
    if letter > "~" and letter.isprintable():
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def literal(text: str) -> str:
    r"""Spell ``text`` as a string literal of textual IR that xDSL parses as text.

    With non-ASCII characters xDSL allows no escapes: such a text is first `quoted` if it needs any.

    >>> print(literal('a"b\n'), literal("\u00e9"), literal("\u00e9\n"))
    "a\22b\0A" "é" "é%0A"
    """
    if not text.isascii() and (_NOT_LITERAL.search(text) or not text.isprintable()):
        text = quoted(text)
    return '"' + _NOT_LITERAL.sub(lambda letter: f"\\{ord(letter[0]):02X}", text) + '"'


def mangled(name: str) -> str:
    """Return the name of a function as part of a C identifier, unique for the name.

    Characters that are invalid in identifiers become their hexadecimal code. Only the functions
    that belong to another (`main.shapes`) have names ending in `_shapes` and the like (`SUFFIXES`).

    >>> mangled("main"), mangled("main.constants"), mangled("a(b"), mangled("main_arena")
    ('main', 'main_constants', 'a_0x28_b', 'main_0x5F_arena')
    """
    whole = _mangled(name)
    if len(whole) <= 2 * LONGEST:
        return whole
    return f"{whole[:LONGEST]}_0x_{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _mangled(name: str) -> str:
    ends = ""
    while found := _SUFFIX.fullmatch(name):
        name, ends = found[1], f"_{found[2]}{ends}"
    return _UNFIT.sub(lambda letter: f"_0x{ord(letter[0]):X}_", name) + ends
